"""The report of a simulation over time as text and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.cli.output import Writer, in_parts, is_colourful, simple_table
from kubesched.simulator.figures import duration, number, percent
from kubesched.simulator.timeline_report import TimelineReport

_MOVES_SHOWN: Final = 20
_ABSENT: Final = "-"

_Titled = tuple[str, tuple[str, ...], Sequence[tuple[str, ...]], int]
"""A title, headings, rows, and the number of leading columns that are text, not numbers."""


def title_of(report: TimelineReport) -> str:
    """Return the scenario's name and the simulated duration."""
    simulated = f"{report.scenario}: {duration(report.duration_seconds)} simulated"
    return f"{simulated} before it was interrupted" if report.partial else simulated


def write_tables(writer: Writer, report: TimelineReport) -> None:
    """Write the report; tables without rows are left out."""
    writer.headline(f"{title_of(report)}, seed {report.seed}")
    for title, headings, rows, num_words in _tables(report):
        if rows:
            writer.heading(title)
            table = simple_table(headings, rows, *headings[num_words:])
            # On a terminal, wide tables are split; elsewhere a line is a row.
            for part in in_parts(table, 1) if is_colourful() else (table,):
                writer.table(part, indent=0)


def _tables(report: TimelineReport) -> Iterator[_Titled]:
    yield _totals(report)
    yield (
        "From creation to binding, by priority",
        (
            "priority",
            "arrived",
            "bound",
            "pending",
            "preempted",
            "mean",
            "p50",
            "p90",
            "p99",
            "max",
            "pod hours pending",
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
        1,
    )
    yield (
        "Requested of allocatable",
        ("resource", "mean", "peak", "at the end", "fragmented"),
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
        1,
    )
    yield (
        "Moves in the queue",
        ("from", "to", "event", "count"),
        tuple(
            (move.origin or _ABSENT, move.destination or _ABSENT, move.event, number(move.count))
            for move in report.moves[:_MOVES_SHOWN]
        ),
        3,
    )
    yield (
        "Requests to the API server",
        ("request", "sent", "failed"),
        tuple((row.kind, number(row.sent), number(row.failed)) for row in report.requests),
        1,
    )


def _share(value: float | None) -> str:
    return _ABSENT if value is None else percent(value)


def _totals(report: TimelineReport) -> _Titled:
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
    return "Totals", ("what", "count"), [(name, number(count)) for name, count in rows], 1
