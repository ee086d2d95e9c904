"""PhaseTimer has the hooks that measure a profile's cycles; the default does nothing.

The core reads no clock. To measure it, pass a subclass that does.

Upstream: pkg/scheduler/framework/runtime/framework.go, where metrics are observed (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

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


class PhaseTimer:
    """Does nothing; a subclass measures.

    Attributes:
        now: The timer's clock, in seconds.
        is_sampling: Whether single plugins are timed now; `begin_cycle` and `begin_gates` decide.
    """

    is_sampling = False

    def __init__(self, now: Callable[[], float] = float) -> None:
        """Take a monotonic clock; the default always shows 0.0."""
        self.now = now

    # Phases of a scheduling cycle: one is open at a time.

    def begin_cycle(self) -> None:
        """A scheduling cycle begins."""

    def begin_again(self) -> None:
        """The cycle restarts: durations so far do not count."""

    def end_cycle(self) -> None:
        """The scheduling cycle has ended; a phase that is open has failed."""

    def enter(self, extension_point: str) -> None:
        """A phase begins."""

    def leave(self, code: Code = Code.SUCCESS) -> None:
        """The phase that is open ends."""

    def recalled(self, phases: Sequence[tuple[str, Code]], times: int) -> None:
        """These phases, which took no time, count as passed in this number of cycles."""

    # Phases outside a cycle, which may overlap.

    def passed(self, extension_point: str, code: Code, started: float) -> None:
        """A phase that began at `started` has ended."""

    def waited_on_permit(self, code: Code, started: float) -> None:
        """A pod has finished waiting on Permit plugins, since `started`."""

    def begin_gates(self) -> float:
        """PreEnqueue plugins are about to run for a pod; return the time."""
        return 0.0

    def begin_unsampled(self) -> float:
        """A phase begins whose plugins are always timed, sampled or not; return the time."""
        return 0.0

    def end_unsampled(self, extension_point: str, code: Code, started: float) -> None:
        """That phase, which began at `started`, has ended."""

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

    def pre_scored(self, cycle: CycleState) -> None:
        """The PreScore plugins that left a state in `cycle` have run."""

    def scored(self, cycle: CycleState, rows: int) -> None:
        """This number of rows was scored."""
