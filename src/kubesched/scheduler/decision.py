"""The outcome of a scheduling cycle: Placed, Rejected with a diagnosis, or Failed.

Upstream: pkg/scheduler/schedule_one.go (v1.36)
Differs:  outcomes are values; upstream returns a status, an error and a nominating info.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Status, failure, unschedulable
from kubesched.snapshot.pod_info import PodInfo

NO_NODES: Final = "no nodes available to schedule pods"

NOBODY_REJECTED: Final = Diagnosis()
"""The diagnosis of a pod that is requeued although no plugin rejected it."""


class Placed(msgspec.Struct, frozen=True):
    """A node was chosen.

    Attributes:
        pod: The pod.
        node_name: The chosen node.
        row: That node's row.
        cycle: The cycle state, for Reserve and later extension points.
        feasible: Number of feasible nodes.
        evaluated: Number of nodes evaluated.
    """

    pod: PodInfo
    node_name: str
    row: int
    cycle: CycleState
    feasible: int
    evaluated: int


class Rejected(msgspec.Struct, frozen=True):
    """No node is feasible.

    Attributes:
        pod: The pod.
        diagnosis: The reasons per node.
        message: The text of the pod's condition.
        cycle: The cycle state.
        post_filter: The result of the PostFilter plugins; None if there are none.
    """

    pod: PodInfo
    diagnosis: Diagnosis
    message: str
    cycle: CycleState
    post_filter: PostFilterResult | None = None

    @property
    def status(self) -> Status:
        """The rejection as a status."""
        return unschedulable(self.message)

    @property
    def nominated_node_name(self) -> str | None:
        """Node to nominate; "" clears a nomination, None leaves it alone."""
        if self.post_filter is None:
            return ""
        return self.post_filter.nominated_node_name

    @property
    def victims(self) -> tuple[PodInfo, ...]:
        """The pods to evict from the nominated node."""
        return self.post_filter.victims if self.post_filter is not None else ()

    def with_failed_preemption(self, error: str, num_all_nodes: int) -> Rejected:
        """Return the rejection for a preemption that failed; it keeps the nomination as it is."""
        failed = failure(f"preemption: {error}")
        diagnosis = self.diagnosis.with_post_filter_message(failed.message)
        message = diagnosis.fit_error(num_all_nodes)
        return Rejected(self.pod, diagnosis, message, self.cycle, PostFilterResult(failed))


class Failed(msgspec.Struct, frozen=True):
    """The cycle ended with an error.

    Attributes:
        pod: The pod.
        status: Error, or the rejection of an empty cluster or of the pod's group.
    """

    pod: PodInfo
    status: Status

    @property
    def message(self) -> str:
        """The text of the pod's condition."""
        return self.status.message


Decision = Placed | Rejected | Failed


class RejectedAgain(msgspec.Struct, frozen=True):
    """Equal pods whose attempts ended as their last ones did.

    Attributes:
        decision: The decision about the first of them.
        attempt: The attempt of the first of them.
        equal_pods: Yields all of them, or only the last ones, whose number it takes; valid while
            an observer is called.
        pods: Their number.
    """

    decision: Rejected
    attempt: FailedAttempt
    equal_pods: Callable[[int | None], Iterator[QueuedPodInfo]]
    pods: int

    @property
    def started(self) -> float:
        """When the attempts began, in seconds of the loop's clock."""
        return self.attempt.started

    def each(self, last: int | None = None) -> Iterator[tuple[Rejected, FailedAttempt]]:
        """Yield the decision and the attempt of each pod, or of the `last` ones only."""
        for queued in self.equal_pods(last):
            decision = msgspec.structs.replace(self.decision, pod=queued.pod_info)
            yield decision, msgspec.structs.replace(self.attempt, queued=queued)


class FailedAttempt(msgspec.Struct, frozen=True):
    """A pod's attempt that ended without a binding, in the scheduling cycle or after it.

    Attributes:
        queued: The pod as the queue knows it, with the plugins that rejected it.
        status: What ended the attempt.
        diagnosis: Why the nodes were rejected; None if the chosen node failed.
        started: When the attempt began, in seconds of the loop's clock.
    """

    queued: QueuedPodInfo
    status: Status
    diagnosis: Diagnosis | None
    started: float

    @property
    def scheduler_name(self) -> str:
        """The profile that tried the pod."""
        return self.queued.pod_info.scheduler_name

    @property
    def message(self) -> str:
        """The text of the pod's condition."""
        return self.status.message
