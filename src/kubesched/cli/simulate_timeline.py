"""Runs of a scenario on a terminal, and the output of its report."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from kubesched.cli.errors import printable
from kubesched.cli.files import replacing, write_text
from kubesched.cli.options import OutputFormat
from kubesched.cli.output import write_document, write_line
from kubesched.cli.simulate_run import Interruption, catching_interrupt
from kubesched.config.field_errors import ConfigError
from kubesched.inputs.loading import in_file
from kubesched.inputs.scenario_input import Play
from kubesched.page.render import render
from kubesched.simulator.playback_recorder import PlaybackRecorder
from kubesched.simulator.run import simulate
from kubesched.simulator.svg import duration, percent
from kubesched.simulator.timeline_report import TimelineReport
from kubesched.simulator.timeline_tables import render_text, title_of

_PATIENCE_SECONDS: Final = 1.0
_RENEWAL_SECONDS: Final = 0.2
_RATE_SECONDS: Final = 2.0
_CLEAR: Final = "\r\x1b[K"


class _Watch:
    """Shows progress on a terminal after a second; stops the run on Ctrl-C."""

    def __init__(self, duration_seconds: float, interruption: Interruption) -> None:
        self._duration_seconds = duration_seconds
        self._interruption = interruption
        self._is_watched = sys.stderr.isatty()
        self._due = time.perf_counter() + _PATIENCE_SECONDS
        self._is_shown = False
        self._rate = 0.0
        self._rated = (time.perf_counter(), 0)

    def __call__(self, at_seconds: float, attempts: int, bound: int) -> bool:
        """Return whether to continue."""
        if self._is_watched and (now := time.perf_counter()) >= self._due:
            self._due = now + _RENEWAL_SECONDS
            self._show(at_seconds, attempts, bound, now)
        return not self._interruption.requested

    def _show(self, at_seconds: float, attempts: int, bound: int, now: float) -> None:
        since, before = self._rated
        if not self._is_shown or now - since >= _RATE_SECONDS:
            self._rate = (attempts - before) / (now - since)
            self._rated = (now, attempts)
        self._is_shown = True
        share = percent(at_seconds / self._duration_seconds)
        text = (
            f"{duration(at_seconds)} of {duration(self._duration_seconds)} ({share}), "
            f"{attempts:,} attempts, {bound:,} pods bound, {self._rate:,.0f} attempts/s"
        )
        width = shutil.get_terminal_size().columns - 1
        click.echo(_CLEAR + text[:width], nl=False, err=True)

    def clear(self) -> None:
        """Remove the progress line."""
        if self._is_shown:
            click.echo(_CLEAR, nl=False, err=True)


class _InterruptedError(Exception):
    """Ctrl-C ended the simulation, so the decision log is incomplete."""

    def __init__(self, report: TimelineReport) -> None:
        super().__init__()
        self.report = report


def play(
    play: Play, decision_log: Path | None = None, recorder: PlaybackRecorder | None = None
) -> TimelineReport:
    """Run a scenario to its end, or until Ctrl-C; then the report is partial.

    Args:
        play: The scenario.
        decision_log: The file for decisions; None for none.
        recorder: Records what happens to nodes and pods; None for no record.

    Raises:
        UserError: The configuration is invalid.
        OSError: The decision log cannot be written.
        DecodeError: A file of the scenario cannot be read.
    """
    try:
        return _played(play, decision_log, recorder)
    except _InterruptedError as interrupted:
        return interrupted.report


def _played(
    play: Play, decision_log: Path | None, recorder: PlaybackRecorder | None
) -> TimelineReport:
    scenario = play.scenario
    with ExitStack() as stack:
        write = None
        if decision_log is not None:
            write = stack.enter_context(replacing(decision_log, keeps_part=True))
        interruption = stack.enter_context(catching_interrupt())
        watch = _Watch(scenario.duration, interruption)
        stack.callback(watch.clear)
        try:
            report = simulate(
                scenario, play.registry, write_decision=write, watch=watch, recorder=recorder
            )
        except ConfigError as error:
            raise in_file(error, play.file) from error
        if report.partial:
            raise _InterruptedError(report)
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
    if output is OutputFormat.TABLE:
        for line in render_text(report).splitlines():
            write_line(printable(line))
    else:
        write_document(report, output)
