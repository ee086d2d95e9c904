"""Runs of a simulation on a terminal: a status line, and a whole report after Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

import click

from kubesched.answers.cluster import Cluster
from kubesched.cli.errors import naming
from kubesched.inputs.status_line import StatusLine
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.simulation import SimulationEnd

Show: TypeAlias = Callable[[Callable[[], str]], bool]
"""Shows the status that a function returns; returns whether to go on."""


@contextmanager
def watched() -> Iterator[Show]:
    """Yield a function that shows a status, and returns whether to go on: False after Ctrl-C.

    So Ctrl-C does not interrupt a step; a second one raises KeyboardInterrupt.
    """
    is_interrupted = False

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal is_interrupted
        if is_interrupted:
            raise KeyboardInterrupt
        is_interrupted = True

    def show(text: Callable[[], str]) -> bool:
        status.show(text)
        return not is_interrupted

    with StatusLine() as status:
        if threading.current_thread() is not threading.main_thread():
            # Only the main thread may set signal handlers.
            yield show
            return
        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield show
        finally:
            signal.signal(signal.SIGINT, before)


def run_simulation(cluster: Cluster) -> tuple[SimulationEnd, float]:
    """Place the pending pods, or some until Ctrl-C; return the end and the seconds it took.

    The time does not include loading the cluster.
    """
    began = 0.0
    with watched() as show:

        def watch(tried: int, total: int) -> bool:
            nonlocal began
            if not tried:
                began = time.perf_counter()
            return show(lambda: f"Placing pods: {tried:,} of {total:,}")

        end = cluster.simulated(watch=watch)
    return end, time.perf_counter() - began


def write_timing(report: SimulationReport, seconds: float) -> None:
    """Write to stderr how long the decisions took."""
    rate = report.summary.attempts / seconds if seconds else 0.0
    text = f"{report.summary.attempts} scheduling cycles in {seconds:.1f} s, {rate:.0f} per second"
    # Both may go to the same terminal, and the report comes first.
    with naming("stdout"):
        sys.stdout.flush()
    click.echo(text, err=True)
