"""Runs of a simulation on a terminal: a status line, and a whole report after Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from kubesched.answers.cluster import Cluster
from kubesched.cli.errors import naming
from kubesched.cli.output import StatusLine
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


def run_simulation(cluster: Cluster) -> tuple[SimulationEnd, float]:
    """Place the pending pods, or some until Ctrl-C; return the end and the seconds it took."""
    began = time.perf_counter()
    with catching_interrupt() as interruption, StatusLine() as status:

        def watch(tried: int, total: int) -> bool:
            status.show(lambda: f"Placing pods: {tried:,} of {total:,}")
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
