"""Runs two replicas under failures of many seeds: `python -m tests.e2e.faults --runs 200`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .play import Outcome, Run, play
from .replica import SHORT, Lease

_INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as of a shell's commands."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; return 1 if anything was violated."""
    options = _options(arguments)
    seeds = range(options.seed, options.seed + options.runs)
    runs = [Run(seed, options.lease, options.keep) for seed in seeds]
    tally = _Tally(len(runs))
    for number in (signal.SIGINT, signal.SIGTERM):
        # Also in the background of a shell, where Ctrl-C is ignored: no process is left over.
        signal.signal(number, signal.default_int_handler)
    try:
        asyncio.run(_play_all(runs, options.jobs, tally))
    except KeyboardInterrupt:
        _say(f"\nstopped: {tally.summary()}")
        return _INTERRUPTED
    _say(tally.summary())
    return 1 if tally.failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.faults", description=__doc__)
    default = int(os.environ.get("RUNS") or 200)
    parser.add_argument("--runs", type=int, default=default, help="how many (RUNS, or 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first one's")
    parser.add_argument(
        "--lease", type=Lease.parse, default=SHORT, metavar="D/R/P", help="times of the election"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many at the same time")
    parser.add_argument(
        "--keep", type=Path, metavar="DIRECTORY", help="where to put logs of what failed"
    )
    return parser.parse_args(arguments)


async def _play_all(runs: Sequence[Run], jobs: int, tally: _Tally) -> None:
    """Run all, so many at the same time."""
    waiting = iter(runs)

    async def play_some() -> None:
        for run in waiting:
            tally.add(await play(run))

    async with asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(play_some())


class _Tally:
    """The results so far."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._began = time.monotonic()
        self._outcomes: list[Outcome] = []
        self.failed: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        if outcome.problems:
            self.failed.append(outcome)
            _say(f"{_CLEAR if sys.stdout.isatty() else ''}{violation_text(outcome)}")
        if sys.stdout.isatty():
            sys.stdout.write(f"{_CLEAR}{self.summary()}\r")
            sys.stdout.flush()
        else:
            _say(f"seed {outcome.run.seed}: {self.summary()}")

    def summary(self) -> str:
        known = self._outcomes
        return (
            f"{len(known)} of {self._runs} runs, {sum(one.pods for one in known):,} pods bound, "
            f"{sum(one.refused for one in known):,} bindings refused, "
            f"{sum(one.terms for one in known)} changes of leader, "
            f"{sum(one.processes for one in known)} processes, {len(self.failed)} failed, "
            f"{time.monotonic() - self._began:.0f} s"
        )


_CLEAR: Final = "\r\x1b[K"


def violation_text(outcome: Outcome) -> str:
    """Return the violations, with the command that repeats them."""
    run = outcome.run
    lines = [f"FAILED: seed {run.seed}, lease {run.lease}, {outcome.seconds:.0f} s"]
    lines += [f"  {problem}" for problem in outcome.problems]
    lines += [f"  after {fault}" for fault in outcome.faults]
    again = f"--runs 1 --seed {run.seed} --lease {run.lease} --keep ."
    lines.append(f"  again: {os.path.relpath(sys.executable)} -m tests.e2e.faults {again}")
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
