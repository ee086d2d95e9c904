"""Runs of a simulation on a terminal: a progress bar, and a whole report after Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Final, Self

import click

from kubesched.answers.cluster import Cluster
from kubesched.cli.errors import naming
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.simulation import SimulationEnd


class Interruption:
    """Records Ctrl-C; a second one raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.requested = False

    def handle(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle SIGINT."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def catching_interrupt() -> Iterator[Interruption]:
    """Record Ctrl-C instead of raising in the middle of a step."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set signal handlers.
        yield interruption
        return
    before = signal.signal(signal.SIGINT, interruption.handle)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)


_PATIENCE_SECONDS: Final = 1.0


def run_simulation(cluster: Cluster) -> tuple[SimulationEnd, float]:
    """Place the pending pods, or some until Ctrl-C; return the end and the seconds it took."""
    began = time.perf_counter()
    with catching_interrupt() as interruption, _LateProgress() as bar:

        def watch(tried: int, total: int) -> bool:
            bar.update(tried, total)
            return not interruption.requested

        end = cluster.simulated(watch=watch)
    return end, time.perf_counter() - began


def write_timing(report: SimulationReport, seconds: float) -> None:
    """Write to stderr how long it took."""
    rate = report.summary.attempts / seconds if seconds else 0.0
    text = f"{report.summary.attempts} scheduling cycles in {seconds:.1f} s, {rate:.0f} per second"
    # Both may go to the same terminal, and the report comes first.
    with naming("stdout"):
        sys.stdout.flush()
    click.echo(text, err=True)


class _LateProgress:
    """A progress bar that appears after a second, on a terminal only."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._advance: Callable[[int], None] | None = None
        self._shown = 0
        self._is_watched = sys.stderr.isatty()
        self._begins = time.perf_counter() + _PATIENCE_SECONDS

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def update(self, tried: int, total: int) -> None:
        """Show the number of pods tried."""
        if not self._is_watched:
            return
        if self._advance is None:
            if time.perf_counter() < self._begins:
                return
            bar = click.progressbar(
                length=total,
                label="Placing pods",
                file=sys.stderr,
                update_min_steps=max(1, total // 200),
            )
            self._advance = self._stack.enter_context(bar).update
        if tried > self._shown:
            self._advance(tried - self._shown)
            self._shown = tried
