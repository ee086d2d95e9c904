"""Plays a scenario with a person waiting, and writes the report over virtual time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from kubesched.cli.errors import printable
from kubesched.cli.loading import in_file
from kubesched.cli.options import OutputFormat
from kubesched.cli.output import Progress, progress, write_document, write_line
from kubesched.cli.output_files import replacing, write_text
from kubesched.cli.scenario_input import Play
from kubesched.config.faults import ConfigError
from kubesched.simulator.html_report import html_report
from kubesched.simulator.run import simulate
from kubesched.simulator.timeline_report import TimelineReport
from kubesched.simulator.timeline_tables import render_text

_STEPS: Final = 1000
_PATIENCE_SECONDS: Final = 1.0
_RENEWAL_SECONDS: Final = 0.1


class _Line(msgspec.Struct, frozen=True):
    at: float


class VirtualProgress:
    """A bar of virtual time, read off the decision log; on a terminal, when the wait is long."""

    def __init__(self, label: str, duration_seconds: float, stack: ExitStack) -> None:
        self._label = label
        self._duration_seconds = duration_seconds
        self._stack = stack
        self._decode = msgspec.json.Decoder(_Line).decode
        self._bar: Progress | None = None
        self._shown = 0
        self._is_watched = sys.stderr.isatty()
        self._due = time.perf_counter() + _PATIENCE_SECONDS

    def note(self, line: bytes) -> None:
        """Show how far it is; most lines cost a look at the clock."""
        if not self._is_watched or time.perf_counter() < self._due:
            return
        self._due = time.perf_counter() + _RENEWAL_SECONDS
        if self._bar is None:
            self._bar = self._stack.enter_context(progress(self._label, _STEPS))
        step = int(self._decode(line).at / self._duration_seconds * _STEPS)
        if step > self._shown:
            self._bar.advance(step - self._shown)
            self._shown = step


def play(play: Play, decision_log: Path | None = None) -> TimelineReport:
    """Play a scenario to its end.

    Args:
        play: The scenario.
        decision_log: Where each decision is written.

    Raises:
        UserError: The configuration is wrong.
        OSError: The decision log cannot be written.
        DecodeError: A file of the scenario cannot be read.
        KeyboardInterrupt: The user does not want to wait.
    """
    scenario = play.scenario
    with ExitStack() as stack, _no_partial_report():
        log: Callable[[bytes], object] | None = None
        if decision_log is not None:
            log = stack.enter_context(replacing(decision_log, keeps_part=True))
        shown = VirtualProgress(f"Playing {printable(scenario.name)}", scenario.duration, stack)

        def write(line: bytes) -> None:
            if log is not None:
                log(line)
            shown.note(line)

        try:
            return simulate(scenario, play.registry, write_decision=write)
        except ConfigError as error:
            raise in_file(error, play.file) from error


@contextmanager
def _no_partial_report() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        text = "no report: a simulation over time has none before its end; see --duration"
        click.echo(f"kubesched: {text}", err=True)
        raise


def write_timeline(report: TimelineReport, output: OutputFormat, html: Path | None) -> None:
    """Write a report to stdout, and as a page if asked for."""
    if html is not None:
        write_text(html, html_report(report))
    if output is OutputFormat.TABLE:
        for line in render_text(report).splitlines():
            write_line(printable(line))
    else:
        write_document("TimelineReport", report, output)
