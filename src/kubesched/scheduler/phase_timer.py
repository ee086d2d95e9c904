"""PhaseTimer measures the phases of a profile's cycles; this one measures nothing.

The core asks no clock: whoever wants figures hands in a timer of its own, which has one.

Upstream: pkg/scheduler/framework/runtime/framework.go, where metrics are observed (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code

P = ParamSpec("P")
R = TypeVar("R")

# The phases, in the words of metrics.
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
    """Takes no time and keeps nothing; a subclass does.

    Attributes:
        is_sampling: Whether single plugins are timed now; `begin_cycle` and `begin_gates` decide.
    """

    is_sampling = False

    def now(self) -> float:
        """Return seconds on some clock."""
        return 0.0

    # Phases of a scheduling cycle: one is open at a time.

    def begin_cycle(self) -> None:
        """A scheduling cycle begins."""

    def begin_again(self) -> None:
        """The cycle begins anew: what its phases took so far does not count."""

    def end_cycle(self) -> None:
        """The scheduling cycle has ended; a phase that is open has failed."""

    def enter(self, extension_point: str) -> None:
        """A phase begins."""

    def leave(self, code: Code = Code.SUCCESS) -> None:
        """The phase that is open ends."""

    # Phases outside a cycle, of which many may be under way.

    def passed(self, extension_point: str, code: Code, started: float) -> None:
        """A phase that began at `started` has ended."""

    def waited_on_permit(self, code: Code, started: float) -> None:
        """A pod has waited for Permit plugins since `started`."""

    def begin_gates(self) -> float:
        """The PreEnqueue plugins are to be asked about a pod; return the time."""
        return 0.0

    def begin_unsampled(self) -> float:
        """A phase begins whose plugins are timed whatever the sample; return the time."""
        return 0.0

    def end_unsampled(self, extension_point: str, code: Code, started: float) -> None:
        """That phase, which began at `started`, has ended."""

    # Remembered answers, in the words of upstream's batching.

    def got_node_hint(self, seconds: float, *, is_hinted: bool) -> None:
        """Answers for a pod were looked up; `is_hinted` tells whether a sibling's were there.

        Renewing them, filters and scores, counts as filtering.
        """

    def hint_not_used(self) -> None:
        """A sibling's answers were there, and the plain path has to decide nevertheless."""

    # Single plugins.

    def timed(self, plugin: Plugin, question: Callable[P, R]) -> Callable[P, R]:
        """Return a plugin's method such that calling it is timed."""
        return question

    def answered(self, extension_point: str, plugin: str, code: Code, started: float) -> None:
        """A plugin that was asked at `started` has answered."""

    # How often plugins are asked, counted as if each row were asked for itself.

    def pre_filtered(self, cycle: CycleState) -> None:
        """The PreFilter plugins that have left a state in `cycle` were asked."""

    def filtered(self, cycle: CycleState, failed_at: NDArray[np.int16]) -> None:
        """Rows were filtered; `failed_at` has the position of the filter that rejected each."""

    def filtered_one(self, cycle: CycleState, failed_at: int) -> None:
        """The same for one row."""

    def post_filtered(self, plugin: str) -> None:
        """A PostFilter plugin was asked."""

    def pre_scored(self, cycle: CycleState) -> None:
        """The PreScore plugins that have left a state in `cycle` were asked."""

    def scored(self, cycle: CycleState, rows: int) -> None:
        """So many rows were scored."""
