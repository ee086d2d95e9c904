"""Runs of a scenario on a terminal, and the output of its report."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from kubesched.answers.scenario_play import ScenarioPlay
from kubesched.cli.files import replacing, write_text
from kubesched.cli.flags import OutputFormat
from kubesched.cli.output import write_answer
from kubesched.cli.simulate_run import Show, watched
from kubesched.cli.snapshot_file import recording_to
from kubesched.cli.timeline_text import title_of, write_tables
from kubesched.inputs.scenario_input import Play
from kubesched.page.render import render
from kubesched.scheduler.decision_recorder import RecordedBy
from kubesched.simulator.figures import duration, percent
from kubesched.simulator.playback_recorder import PlaybackRecorder
from kubesched.simulator.timeline_report import TimelineReport

_RATE_SECONDS: Final = 2.0


class _Watch:
    """Shows progress; stops the run on Ctrl-C."""

    def __init__(self, duration_seconds: float, show: Show) -> None:
        self._duration_seconds = duration_seconds
        self._show = show
        self._rate: float | None = None
        self._rated = (time.perf_counter(), 0)

    def __call__(self, at_seconds: float, attempts: int, bound: int) -> bool:
        """Return whether to continue."""
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

    Raises:
        UserError: The configuration is invalid.
        OSError: The decision log cannot be written.
        DecodeError: A file of the scenario cannot be read.
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


def write_timeline(
    report: TimelineReport,
    output: OutputFormat,
    html: Path | None,
    recorder: PlaybackRecorder | None,
) -> None:
    """Write a report to stdout, and with its playback as an HTML page if `html` names a file."""
    if html is not None and recorder is not None:
        playback = recorder.playback(report.scenario, report.duration_seconds)
        write_text(html, render([playback, report], title_of(report)))
    write_answer(report, output, write_tables)
