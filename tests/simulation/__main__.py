"""Runs many seeds under every fault plan, in two processes: `python -m tests.simulation`."""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from .playing import Outcome, Run, played
from .scenarios import PLANS

_PROCESSES: Final = 2
_INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as of a shell's commands."""
_REPORT_EVERY_SECONDS: Final = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; return 1 if anything was violated."""
    options = _options(arguments)
    seeds = [options.seed] if options.seed is not None else list(range(options.seeds))
    plans = [options.plan] if options.plan is not None else list(PLANS)
    runs = list(itertools.product(seeds, plans))
    tally = _Tally(len(runs))
    try:
        _play_all(runs, tally)
    except KeyboardInterrupt:
        _say(f"stopped: {tally.summary()}")
        return _INTERRUPTED
    _say(tally.summary())
    return 1 if tally.violations else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    default = int(os.environ.get("SEEDS") or 1000)
    parser.add_argument("--seeds", type=int, default=default, help="how many (SEEDS, or 1000)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--plan", choices=list(PLANS), help="only this one")
    return parser.parse_args(arguments)


class _Tally:
    """The results so far."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._began = self._reported = time.monotonic()
        self._done = 0
        self._steps = 0
        self.violations = 0

    def add(self, outcome: Outcome) -> None:
        self._done += 1
        self._steps += outcome.steps
        if outcome.problem is not None:
            self.violations += 1
            _say(violation_text(outcome.run, outcome.problem))
        if time.monotonic() - self._reported >= _REPORT_EVERY_SECONDS:
            self._reported = time.monotonic()
            _say(f"seed {outcome.run[0]}: {self.summary()}")

    def summary(self) -> str:
        return (
            f"{self._done:,} of {self._runs:,} runs, {self._steps:,} steps checked, "
            f"{self.violations} violations, {time.monotonic() - self._began:.0f} s"
        )


def _play_all(runs: Sequence[Run], tally: _Tally) -> None:
    with multiprocessing.get_context("spawn").Pool(_PROCESSES) as pool:
        for outcome in pool.imap(played, runs, chunksize=8):
            tally.add(outcome)


def violation_text(run: Run, problem: str) -> str:
    """Return the violations, with the commands that repeat them."""
    seed, plan = run
    return (
        f"VIOLATION: {problem}\n"
        f"  seed {seed}, plan {plan}, commit {_commit()}\n"
        f"  again: {os.path.relpath(sys.executable)} -m tests.simulation "
        f"--seed {seed} --plan {plan}"
    )


def _commit() -> str:
    git = shutil.which("git")
    if git is None:
        return "unknown"
    command = [git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    done = subprocess.run(  # noqa: S603 - our own command
        command, capture_output=True, encoding="utf-8", check=False
    )
    return done.stdout.strip() or "unknown"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
