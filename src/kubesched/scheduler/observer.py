"""Observer is told what the loop does; metrics and reports are made of it.

Upstream: pkg/scheduler/metrics/profile_metrics.go and its callers (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from kubesched.framework.status import Status
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision
from kubesched.scheduler.pod_group_outcome import Outcome


class Observer:
    """Is told what the loop does; every method may be left out."""

    def decided(self, decision: Decision, now: float) -> None:
        """A scheduling cycle ended that began at `now`."""

    def bound(self, assumed: Assumed, now: float) -> None:
        """A pod was bound."""

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """A binding cycle failed and was undone."""

    def failed(self, scheduler_name: str, status: Status, started: float, now: float) -> None:
        """An attempt that began at `started` ended without a binding, wherever it failed."""

    def pod_group_tried(self, scheduler_name: str, started: float, now: float) -> None:
        """All pods of a group were tried in a cycle of the group that began at `started`."""

    def pod_group_decided(
        self, scheduler_name: str, outcome: Outcome, started: float, now: float
    ) -> None:
        """That cycle has ended: each pod is on its way to its node, or back in the queue."""
