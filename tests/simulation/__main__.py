"""Plays many seeds under every fault plan, in two processes: `python -m tests.simulation`."""

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

from .playing import Run, played
from .scenarios import PLANS

_PROCESSES: Final = 2
_REPORT_EVERY_SECONDS: Final = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Play; return 1 if anything was violated."""
    options = _options(arguments)
    seeds = [options.seed] if options.seed is not None else list(range(options.seeds))
    plans = [options.plan] if options.plan is not None else list(PLANS)
    runs = list(itertools.product(seeds, plans))
    began = time.monotonic()
    violations = _play_all(runs, began)
    seconds = time.monotonic() - began
    _say(f"{len(runs)} runs of {len(seeds)} seeds, {violations} violations, {seconds:.0f} s")
    return 1 if violations else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    default = int(os.environ.get("SEEDS") or 1000)
    parser.add_argument("--seeds", type=int, default=default, help="how many (SEEDS, or 1000)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--plan", choices=list(PLANS), help="only this one")
    return parser.parse_args(arguments)


def _play_all(runs: Sequence[Run], began: float) -> int:
    violations = 0
    reported = began
    with multiprocessing.get_context("spawn").Pool(_PROCESSES) as pool:
        for done, (run, problem) in enumerate(pool.imap(played, runs, chunksize=8), 1):
            if problem is not None:
                violations += 1
                _say(told(run, problem))
            now = time.monotonic()
            if now - reported >= _REPORT_EVERY_SECONDS:
                reported = now
                _say(f"{done} of {len(runs)} runs, seed {run[0]}, {now - began:.0f} s")
    return violations


def told(run: Run, problem: str) -> str:
    """Return what was violated, and how to see it again."""
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
