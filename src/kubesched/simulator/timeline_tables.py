"""Tables of a report of a simulation over time, independent of rendering."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kubesched.simulator.figures import duration, number, percent
from kubesched.simulator.timeline_report import TimelineReport

_MOVES_SHOWN = 20
_ABSENT = "-"


class Table(msgspec.Struct, frozen=True):
    """A table.

    Attributes:
        title: The title.
        columns: The column headings.
        rows: One text per column.
        text_columns: The number of leading columns that are text; the others are numbers.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: int = 1


def tables_of(report: TimelineReport) -> tuple[Table, ...]:
    """Return the tables in display order."""
    return tuple(table for table in _tables(report) if table.rows)


def title_of(report: TimelineReport) -> str:
    """Return the scenario's name and the simulated duration."""
    simulated = f"{report.scenario}: {duration(report.duration_seconds)} simulated"
    return f"{simulated} before it was interrupted" if report.partial else simulated


def render_text(report: TimelineReport) -> str:
    """Return the tables as plain text."""
    head = f"{title_of(report)}, seed {report.seed}\n"
    return head + "".join(f"\n{_as_text(table)}" for table in tables_of(report))


def _as_text(table: Table) -> str:
    rows = (table.columns, *table.rows)
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.columns))]
    lines = [
        "  ".join(
            text.ljust(widths[at]) if at < table.text_columns else text.rjust(widths[at])
            for at, text in enumerate(row)
        ).rstrip()
        for row in rows
    ]
    return "\n".join((table.title, *lines)) + "\n"


def _tables(report: TimelineReport) -> Iterator[Table]:
    yield _totals(report)
    yield Table(
        "From creation to binding, by priority",
        (
            "PRIORITY",
            "ARRIVED",
            "BOUND",
            "PENDING",
            "PREEMPTED",
            "MEAN",
            "P50",
            "P90",
            "P99",
            "MAX",
            "POD HOURS PENDING",
        ),
        tuple(
            (
                row.priority,
                number(row.arrived),
                number(row.bound),
                number(row.pending),
                number(row.disrupted),
                *(
                    _ABSENT if seconds is None else duration(seconds)
                    for seconds in (
                        row.mean_seconds,
                        row.p50_seconds,
                        row.p90_seconds,
                        row.p99_seconds,
                        row.max_seconds,
                    )
                ),
                number(row.pending_pod_hours),
            )
            for row in report.waits
        ),
    )
    yield Table(
        "Requested of allocatable",
        ("RESOURCE", "MEAN", "PEAK", "AT THE END", "FRAGMENTED"),
        tuple(
            (
                row.resource,
                _share(row.mean_share),
                percent(row.peak_share),
                percent(row.final_share),
                _share(row.mean_fragmentation),
            )
            for row in report.resources
        ),
    )
    yield Table(
        "Moves in the queue",
        ("FROM", "TO", "EVENT", "COUNT"),
        tuple(
            (move.origin or _ABSENT, move.destination or _ABSENT, move.event, number(move.count))
            for move in report.moves[:_MOVES_SHOWN]
        ),
        3,
    )
    yield Table(
        "Requests to the API server",
        ("REQUEST", "SENT", "FAILED"),
        tuple((row.kind, number(row.sent), number(row.failed)) for row in report.requests),
    )


def _share(value: float | None) -> str:
    return _ABSENT if value is None else percent(value)


def _totals(report: TimelineReport) -> Table:
    totals = report.totals
    rows = (
        ("pods arrived", totals.arrived),
        ("pods bound", totals.bound),
        ("pods finished", totals.finished),
        ("pods deleted before they got a node", totals.gave_up),
        ("pods preempted", totals.disrupted),
        ("pods drained from their node", totals.drained),
        ("pods evicted from a failed node", totals.evicted),
        ("pods deleted because their node was removed", totals.removed),
        ("pods that started over after their node failed", totals.restarted),
        ("pods lost: stopped before their end, and not created again", totals.lost),
        ("pods pending at the end", totals.pending),
        ("pods on nodes at the end", totals.running),
        ("nodes at the end", totals.nodes),
        ("scheduling attempts", totals.attempts),
        ("attempts that found no node", totals.rejected),
        ("attempts that ended in an error", totals.failed),
        ("bindings that were undone", totals.binding_failures),
        ("times everything was listed again", report.relists),
        ("times all invariants were checked", report.checks),
    )
    return Table("Totals", ("WHAT", "COUNT"), tuple((name, number(count)) for name, count in rows))
