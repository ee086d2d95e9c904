"""Simulations over time on a terminal: progress, and the report as text and tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from kubesched.answers.scenario_play import ScenarioPlay
from kubesched.cli.asking import Show, watched
from kubesched.cli.errors import EXIT_INTERRUPTED, write_warnings
from kubesched.cli.files import check_outputs, replacing, write_file
from kubesched.cli.flags import is_given
from kubesched.cli.output import (
    OutputFormat,
    TextTable,
    Writer,
    in_parts,
    is_colourful,
    write_answer,
)
from kubesched.cli.simulate import TimelineOptions
from kubesched.cli.snapshot import recording_to
from kubesched.inputs.errors import UserError
from kubesched.inputs.scenario_input import (
    Play,
    named_files,
    read_scenario,
    read_trace,
    with_scheduler,
    workload_warnings,
)
from kubesched.inputs.sources import SchedulerOptions
from kubesched.page.render import render
from kubesched.scheduler.decision_recorder import RecordedBy
from kubesched.simulator.playback import PlaybackRecorder
from kubesched.simulator.timeline_report import TimelineReport, duration, number, percent

_RATE_SECONDS: Final = 2.0
_MOVES_SHOWN: Final = 20
_ABSENT: Final = "-"


def play_files(
    timeline: TimelineOptions,
    options: SchedulerOptions,
    files: Sequence[Path],
    pod_files: Sequence[Path],
    output: OutputFormat,
) -> int:
    """Play a scenario, or lists of the openb trace; write the report, and return the exit code."""
    if timeline.times:
        found = read_trace([*files, *pod_files])
    elif len(files) > 1 or pod_files:
        raise UserError(
            "a scenario is simulated alone: it names its files itself, and `kubesched compare` "
            "compares several"
        )
    else:
        found = read_scenario(files[0])
    check_outputs(
        {
            "--html": timeline.html,
            "--decision-log": timeline.decision_log,
            "--record": timeline.record,
        },
        [*files, *pod_files, options.config, *named_files(found.scenario).values()],
    )
    seed = options.seed if is_given("seed") else None
    played = with_scheduler(found, options).changed(seed, timeline.duration_seconds)
    write_warnings(workload_warnings(played))
    recorder = None if timeline.html is None else PlaybackRecorder()
    report = play(played, timeline.decision_log, timeline.record, recorder)
    if timeline.html is not None and recorder is not None:
        playback = recorder.playback(report.scenario, report.duration_seconds)
        write_file(timeline.html, render([playback, report], _title(report)).encode())
    write_answer(report, output, _write)
    return EXIT_INTERRUPTED if report.partial else 0


class _Watch:
    """Shows progress; stops the run on Ctrl-C."""

    def __init__(self, duration_seconds: float, show: Show) -> None:
        self._duration_seconds = duration_seconds
        self._show = show
        self._rate: float | None = None
        self._rated = (time.perf_counter(), 0)

    def __call__(self, at_seconds: float, attempts: int, bound: int) -> bool:
        return self._show(lambda: self._text(at_seconds, attempts, bound))

    def _text(self, at_seconds: float, attempts: int, bound: int) -> str:
        now = time.perf_counter()
        since, before = self._rated
        if self._rate is None or now - since >= _RATE_SECONDS:
            self._rate = (attempts - before) / (now - since)
            self._rated = (now, attempts)
        share = percent(at_seconds / self._duration_seconds)
        return (
            f"{duration(at_seconds)} of {duration(self._duration_seconds)} ({share}), "
            f"{attempts:,} attempts, {bound:,} pods bound, {self._rate:,.0f} attempts/s"
        )


class _InterruptedError(Exception):
    """Ctrl-C ended the simulation, so decision log and recording are incomplete."""


def play(
    play: Play,
    decision_log: Path | None = None,
    record: Path | None = None,
    recorder: PlaybackRecorder | None = None,
) -> TimelineReport:
    """Run a scenario to its end, or until Ctrl-C; then the report is partial.

    `decision_log` is the file for decisions, `record` the one for events and decisions.
    """
    with suppress(_InterruptedError), ExitStack() as stack:
        write = None
        if decision_log is not None:
            write = stack.enter_context(replacing(decision_log, keeps_part=True))
        recording = stack.enter_context(recording_to(record, RecordedBy.SIMULATE))
        watch = _Watch(play.scenario.duration, stack.enter_context(watched()))
        report = ScenarioPlay(play).simulated(
            watch=watch, write_decision=write, recorder=recorder, recording=recording
        )
        if report.partial:
            raise _InterruptedError
    return report


# The report.


def _title(report: TimelineReport) -> str:
    """Return the scenario's name and the simulated duration."""
    simulated = f"{report.scenario}: {duration(report.duration_seconds)} simulated"
    return f"{simulated} before it was interrupted" if report.partial else simulated


def _write(writer: Writer, report: TimelineReport) -> None:
    """Write the report; tables without rows are left out."""
    writer.headline(f"{_title(report)}, seed {report.seed}")
    tables = {
        "Totals": _totals(report),
        "From creation to binding, by priority": _waits(report),
        "Requested of allocatable": _resources(report),
        "Moves in the queue": _moves(report),
        "Requests to the API server": _requests(report),
    }
    for title, table in tables.items():
        if table.rows:
            writer.heading(title)
            # On a terminal, wide tables are split; elsewhere a line is a row.
            for part in in_parts(table, 1) if is_colourful() else (table,):
                writer.table(part, indent=0)


def _totals(report: TimelineReport) -> TextTable:
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
    return TextTable(("what", "count"), [(name, number(n)) for name, n in rows], ("count",))


def _waits(report: TimelineReport) -> TextTable:
    counts = ("arrived", "bound", "pending", "preempted")
    numbers = (*counts, "mean", "p50", "p90", "p99", "max", "pod hours pending")
    rows = [
        (
            row.priority,
            *map(number, (row.arrived, row.bound, row.pending, row.disrupted)),
            *map(_time, (row.mean_seconds, row.p50_seconds, row.p90_seconds)),
            *map(_time, (row.p99_seconds, row.max_seconds)),
            number(row.pending_pod_hours),
        )
        for row in report.waits
    ]
    return TextTable(("priority", *numbers), rows, numbers)


def _resources(report: TimelineReport) -> TextTable:
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
    numbers = ("mean", "peak", "at the end", "fragmented")
    return TextTable(("resource", *numbers), rows, numbers)


def _moves(report: TimelineReport) -> TextTable:
    rows = [
        (move.origin or _ABSENT, move.destination or _ABSENT, move.event, number(move.count))
        for move in report.moves[:_MOVES_SHOWN]
    ]
    return TextTable(("from", "to", "event", "count"), rows, ("count",))


def _requests(report: TimelineReport) -> TextTable:
    rows = [(row.kind, number(row.sent), number(row.failed)) for row in report.requests]
    return TextTable(("request", "sent", "failed"), rows, ("sent", "failed"))


def _time(seconds: float | None) -> str:
    return _ABSENT if seconds is None else duration(seconds)


def _share(value: float | None) -> str:
    return _ABSENT if value is None else percent(value)
