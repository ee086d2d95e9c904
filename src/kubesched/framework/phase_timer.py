"""PhaseTimer has the hooks that measure one profile; the default does nothing.

    with timer.phases[RESERVE] as phase:
        phase.code = ...

The core reads no clock. To measure it, pass a subclass that does.

Upstream: pkg/scheduler/framework/runtime/framework.go, where metrics are observed (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code

P = ParamSpec("P")
R = TypeVar("R")

# The phases, as labelled in metrics.
PRE_ENQUEUE = "PreEnqueue"
PRE_FILTER = "PreFilter"
FILTER = "Filter"
POST_FILTER = "PostFilter"
PRE_SCORE = "PreScore"
SCORE = "Score"
RESERVE = "Reserve"
UNRESERVE = "Unreserve"
PERMIT = "Permit"
PRE_BIND_PRE_FLIGHT = "PreBindPreFlight"
PRE_BIND = "PreBind"
BIND = "Bind"
POST_BIND = "PostBind"
PLACEMENT_GENERATE = "PlacementGenerate"
PLACEMENT_SCORE = "PlacementScore"
SIGN = "Sign"
PERMIT_WAIT = "PermitWait"
"""The time that a pod waits on Permit plugins, which has a metric of its own."""


class Phase:
    """A phase as a context; an exception that leaves it is an error. This one is not measured.

    Attributes:
        code: The outcome; None if the phase does not count after all.
        pods: The number of equal pods that it is about.
    """

    __slots__ = ("code", "pods")

    def __init__(self) -> None:
        self.code: Code | None = Code.SUCCESS
        self.pods = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """The phase ends."""


class PhaseTimer:
    """Does nothing; a subclass measures.

    Attributes:
        now: The timer's clock, in seconds.
        phases: Extension point -> its phase, which begins when it is entered.
        is_sampling: Whether single plugins are timed now.
    """

    phases: Mapping[str, Phase] = defaultdict(Phase)
    is_sampling = False

    def __init__(self, now: Callable[[], float] = float) -> None:
        """Take a monotonic clock; the default always shows 0.0."""
        self.now = now

    # Scheduling cycles.

    def begin_cycle(self) -> None:
        """A scheduling cycle begins."""

    def begin_again(self) -> None:
        """The cycle restarts: durations so far do not count."""

    def end_cycle(self) -> None:
        """The scheduling cycle has ended."""

    def recalled(self, phases: Sequence[tuple[str, Code]], times: int) -> None:
        """These phases, which took no time, count as passed in this number of cycles."""

    # Signs.

    def signed(self, plugin: Plugin, code: Code, started: float) -> float:
        """A plugin has signed a pod, which began at `started`; return the time."""
        return 0.0

    def signed_again(self, plugins: Sequence[Plugin], codes: Sequence[Code]) -> None:
        """These plugins' signs of a pod are those of another one, and took no time."""

    # Remembered answers, named as in upstream's batching.

    def got_node_hint(self, seconds: float, *, is_hinted: bool) -> None:
        """Remembered answers were looked up; `is_hinted` is whether there were any for the pod.

        Updating them, filters and scores, counts as filtering.
        """

    def hint_not_used(self) -> None:
        """Remembered answers were found but could not be used."""

    # Single plugins.

    def timed(self, plugin: Plugin, question: Callable[P, R]) -> Callable[P, R]:
        """Return a plugin's method, wrapped to measure each call."""
        return question

    def answered(self, extension_point: str, plugin: str, code: Code, started: float) -> None:
        """A plugin call that began at `started` has returned."""

    # How often plugins run, counted once per row.

    def pre_filtered(self, cycle: CycleState) -> None:
        """The PreFilter plugins that left a state in `cycle` have run."""

    def filtered(self, cycle: CycleState, failed_at: NDArray[np.int16]) -> None:
        """Rows were filtered; `failed_at` has the position of the filter that rejected each."""

    def filtered_one(self, cycle: CycleState, failed_at: int, times: int = 1) -> None:
        """The same for one row, or for several with the same result."""

    def post_filtered(self, plugin: str, times: int = 1) -> None:
        """A PostFilter plugin has run this number of times."""

    def scored(self, cycle: CycleState, rows: int) -> None:
        """The PreScore plugins that left a state in `cycle` have run; so many rows are scored."""
