"""The history of measurements: one line of JSON per run."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from benchmarks.diverse import Diverse
from benchmarks.footprint import Footprint
from benchmarks.live import LiveRun
from benchmarks.long import LongRun
from benchmarks.loop import LoopSpeed
from benchmarks.million import Million
from benchmarks.openb import Replay
from benchmarks.overload import Overload
from benchmarks.plugins import Costs
from benchmarks.preemption import PreemptionSpeed
from benchmarks.scaling import Scaling
from benchmarks.throughput import Throughput, Tracing

ROOT: Final = Path(__file__).resolve().parent.parent
HISTORY: Final = ROOT / "benchmarks" / "history.jsonl"


class Record(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One run of the benchmarks.

    Attributes:
        date: The day, UTC.
        commit: Abbreviated, with a plus sign if files differ from it.
        python: Version.
        numpy: Version.
        cpus: Number of CPUs that the process may use.
        is_quick: Whether all sizes were divided by ten.
        only: The filter of the run.
        throughput: Workload -> figures.
        tracing: The cost of a trace.
        plugins: Kind of pod -> plugin -> extension point -> microseconds.
        kernels: Kernel -> number of nodes -> microseconds.
        scaling: The growth of the cost per pod with the size of the cluster.
        loop: The speed of the production loop.
        long: Time and memory of a long simulation.
        live: CPU time of the scheduler's process on a live API server.
        footprint: The memory of a process with a full cluster.
        openb: Time and results of the trace, by configuration.
        diverse: Decisions about pods that differ, by shape.
        million: A million nodes and pods, by kind of pods.
        overload: Simulations of clusters with more pods than room.
        preemption: Asynchronous preemption with the production loop.
    """

    date: str
    commit: str
    python: str
    numpy: str
    cpus: int
    is_quick: bool = False
    only: str = ""
    throughput: dict[str, Throughput] = {}
    tracing: Tracing | None = None
    plugins: Costs = {}
    kernels: dict[str, dict[int, float]] = {}
    scaling: Scaling | None = None
    loop: LoopSpeed | None = None
    long: LongRun | None = None
    live: LiveRun | None = None
    footprint: Footprint | None = None
    openb: dict[str, Replay] = {}
    diverse: dict[str, Diverse] = {}
    million: dict[str, Million] = {}
    overload: tuple[Overload, ...] = ()
    preemption: PreemptionSpeed | None = None


def new_record(*, is_quick: bool = False, only: str = "") -> Record:
    """Return a record of this machine and commit, without figures."""
    return Record(
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        python=platform.python_version(),
        numpy=np.__version__,
        cpus=len(os.sched_getaffinity(0)),
        is_quick=is_quick,
        only=only,
    )


def append(record: Record, path: Path = HISTORY) -> None:
    """Add a line to the history."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(record) + b"\n")


def last(path: Path = HISTORY) -> Record | None:
    """Return the newest record, None if there is none."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return msgspec.json.decode(lines[-1], type=Record) if lines else None


def _commit() -> str:
    commit = _git("rev-parse", "--short", "HEAD")
    if not commit:
        return "unknown"
    return f"{commit}+" if _git("status", "--porcelain", "--untracked-files=no") else commit


def _git(*arguments: str) -> str:
    """Return git's output; "" without git or a repository."""
    git = shutil.which("git")
    if git is None:
        return ""
    command = [git, *arguments]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
    return found.stdout.strip() if found.returncode == 0 else ""
