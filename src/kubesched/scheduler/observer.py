"""Observer receives what the loop does; metrics and reports are built on it.

Upstream: pkg/scheduler/metrics/profile_metrics.go and its callers (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.framework.status import Status
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, FailedAttempt, RejectedAgain
from kubesched.scheduler.pod_group_outcome import Outcome
from kubesched.snapshot.pod_info import PodInfo

if TYPE_CHECKING:
    from kubesched.scheduler.eviction import Preemption


class Observer:
    """Receives what the loop does; subclasses override what they need."""

    def decided(self, decision: Decision, now: float) -> None:
        """A scheduling cycle that began at `now` has ended."""

    def bound(self, assumed: Assumed, now: float) -> None:
        """A pod was bound."""

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """A binding cycle failed and was undone."""

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """An attempt has ended without a binding."""

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Equal pods were rejected as before; by default as if they were tried one by one."""
        for decision, attempt in again.each():
            self.decided(decision, again.started)
            self.failed(attempt, now)

    def preempting(self, victims: int) -> None:
        """The eviction of this number of victims begins."""

    def evicted(self, victim: PodInfo, preemption: Preemption) -> None:
        """A victim was deleted; one that was not bound yet only loses its node."""

    def preempted(self, preemption: Preemption, started: float, *, is_success: bool) -> None:
        """A preemption in the background, begun at `started`, has ended."""

    def pod_group_tried(self, scheduler_name: str, started: float, now: float) -> None:
        """All pods of a group were tried in a cycle of the group that began at `started`."""

    def pod_group_decided(
        self, scheduler_name: str, outcome: Outcome, started: float, now: float
    ) -> None:
        """The group's cycle has ended: its pods are being bound or back in the queue."""
