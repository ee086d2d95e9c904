"""What commands that ask about a cluster have in common: options, the cluster, Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TypeAlias

from kubesched.answers.cluster import Cluster
from kubesched.cli.errors import write_warnings
from kubesched.cli.files import check_inputs, check_outputs
from kubesched.cli.output import OutputFormat
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.inputs.status_line import StatusLine
from kubesched.simulator.simulation import SimulationEnd


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The scheduler that decides, and the form of the answer; without `html` no page is written."""

    scheduler: SchedulerOptions
    html: Path | None
    output: OutputFormat


def open_cluster(source: ClusterSource, asked: AnswerOptions, *files: Path) -> Cluster:
    """Return the cluster to ask; warnings go to stderr.

    Other files that the command reads, and the page that it writes, are checked too.
    """
    inputs = [*files, *source.files, asked.scheduler.config]
    check_inputs(inputs)
    check_outputs({"--html": asked.html}, inputs)
    return Cluster.read(source, asked.scheduler, write_warnings)


# Long work, which Ctrl-C ends.

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
