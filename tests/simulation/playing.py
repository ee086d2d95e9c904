"""Runs one seed under one plan, with every checker after every step."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NamedTuple
from unittest.mock import patch

from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.pod_ledger import Checkers
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.simulator.timeline_report import TimelineReport

from .scenarios import scenario

Run = tuple[int, str]
"""A seed and the name of a plan."""

_TWICE_EVERY: Final = 10
_PATIENCE_SECONDS: Final = 60.0


class OutOfPatience(BaseException):
    """A run takes too long; no simulated code catches this."""


class ThoroughCheckers(Checkers):
    """Checks everything after every step, not only what is fast."""

    _is_within = False

    def step(self) -> None:
        """Check everything; `check` calls this again, for the step itself."""
        if self._is_within:
            super().step()
            return
        self._is_within = True
        try:
            self.check(asyncio.get_running_loop().time())
        finally:
            self._is_within = False


def play(seed: int, plan: str) -> TimelineReport:
    """Run to the end.

    Raises:
        AssertionError: An invariant does not hold, or a second run decides differently.
        Exception: Whatever else should not happen.
    """
    found = load_scenario(scenario(seed, plan))
    with patch("kubesched.simulator.run.Checkers", ThoroughCheckers):
        report = simulate(found, in_tree_registry())
        if seed % _TWICE_EVERY == 0:
            again = simulate(found, in_tree_registry())
            assert report.decision_digest == again.decision_digest, "a second run differs"
    return report


def violation(seed: int, plan: str) -> str | None:
    """Run; return the violation, None if there is none."""
    return _outcome(seed, plan).problem


class Outcome(NamedTuple):
    """The result of a run.

    Attributes:
        run: Which.
        problem: What went wrong; None if nothing did.
        steps: After how many steps everything was checked; 0 if something went wrong.
    """

    run: Run
    problem: str | None
    steps: int


def _outcome(seed: int, plan: str) -> Outcome:
    try:
        with _patience():
            steps = play(seed, plan).checks
    except (Exception, OutOfPatience) as error:  # noqa: BLE001 - nothing at all may be raised
        return Outcome((seed, plan), f"{type(error).__name__}: {error}", 0)
    return Outcome((seed, plan), None, steps)


def played(run: Run) -> Outcome:
    """Run in a worker process, which leaves Ctrl-C to its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()  # simulated failures would be logged all the time
    return _outcome(*run)


@contextmanager
def _patience() -> Iterator[None]:
    """Abort a run that does not end, measured in CPU time."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfPatience(f"not at its end after {_PATIENCE_SECONDS:g} s of CPU time")

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    before = signal.signal(signal.SIGPROF, give_up)
    # Again and again: the end of an event loop may get stuck just as well.
    signal.setitimer(signal.ITIMER_PROF, _PATIENCE_SECONDS, _PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
