"""The report of a simulation over time as text and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.cli.output import Writer, in_parts, is_colourful
from kubesched.explain.tables import TextTable
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
    for table_of in (_totals, _waits, _resources, _moves, _requests):
        title, headings, rows, num_words = table_of(report)
        if rows:
            writer.heading(title)
            table = TextTable(headings, rows, headings[num_words:])
            # On a terminal, wide tables are split; elsewhere a line is a row.
            for part in in_parts(table, 1) if is_colourful() else (table,):
                writer.table(part, indent=0)


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


def _waits(report: TimelineReport) -> _Titled:
    headings = ("priority", "arrived", "bound", "pending", "preempted")
    times = ("mean", "p50", "p90", "p99", "max")
    rows = [
        (
            row.priority,
            number(row.arrived),
            number(row.bound),
            number(row.pending),
            number(row.disrupted),
            _time(row.mean_seconds),
            _time(row.p50_seconds),
            _time(row.p90_seconds),
            _time(row.p99_seconds),
            _time(row.max_seconds),
            number(row.pending_pod_hours),
        )
        for row in report.waits
    ]
    columns = (*headings, *times, "pod hours pending")
    return "From creation to binding, by priority", columns, rows, 1


def _resources(report: TimelineReport) -> _Titled:
    rows = [
        (
            row.resource,
            _share(row.mean_share),
            percent(row.peak_share),
            percent(row.final_share),
            _share(row.mean_fragmentation),
        )
        for row in report.resources
    ]
    headings = ("resource", "mean", "peak", "at the end", "fragmented")
    return "Requested of allocatable", headings, rows, 1


def _moves(report: TimelineReport) -> _Titled:
    rows = [
        (move.origin or _ABSENT, move.destination or _ABSENT, move.event, number(move.count))
        for move in report.moves[:_MOVES_SHOWN]
    ]
    return "Moves in the queue", ("from", "to", "event", "count"), rows, 3


def _requests(report: TimelineReport) -> _Titled:
    rows = [(row.kind, number(row.sent), number(row.failed)) for row in report.requests]
    return "Requests to the API server", ("request", "sent", "failed"), rows, 1


def _time(seconds: float | None) -> str:
    return _ABSENT if seconds is None else duration(seconds)


def _share(value: float | None) -> str:
    return _ABSENT if value is None else percent(value)
