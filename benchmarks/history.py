"""What was measured, and the file that keeps it: one line of JSON per run."""

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
from benchmarks.openb import Replay
from benchmarks.plugins import Costs
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
        cpus: How many the process may use.
        is_quick: Whether everything was a tenth of its size.
        only: What the run was restricted to.
        throughput: Workload -> figures.
        tracing: What a trace costs.
        plugins: Kind of pod -> plugin -> extension point -> microseconds.
        kernels: Kernel -> number of nodes -> microseconds.
        scaling: How the cost of a pod grows with the cluster.
        loop: How fast the production loop is.
        long: What a long simulation takes.
        live: What the scheduler's process takes on a live API server.
        footprint: What it takes to know a full cluster.
        openb: What the trace takes, by configuration.
        diverse: What decisions about pods that differ take, by shape.
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


def new_record(*, is_quick: bool = False, only: str = "") -> Record:
    """Return a record of here and now, without figures."""
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
    """Return what git says, "" where there is no git or no repository."""
    git = shutil.which("git")
    if git is None:
        return ""
    command = [git, *arguments]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
    return said.stdout.strip() if said.returncode == 0 else ""
