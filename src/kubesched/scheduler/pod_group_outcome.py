"""Outcome is the result of a pod group's cycle, computed from the attempts of its pods.

Upstream: pkg/scheduler/schedule_one_podgroup.go, podGroupAlgorithmResult and its callers
          (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubesched.api.conditions import ConditionPatch
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.pod_groups import ProposedAssignment
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.scheduler.decision import NOBODY_REJECTED, Decision, Failed
from kubesched.snapshot.pod_info import PodInfo

SCHEDULED: Final = "PodGroupScheduled"
UNSCHEDULABLE: Final = "pod group is unschedulable"
WAITS_FOR_PREEMPTION: Final = "pod group is waiting for preemption to complete"


class MemberAttempt(msgspec.Struct, frozen=True):
    """The attempt to schedule one pod of the group.

    Attributes:
        queued: The pod.
        decision: The pod's own decision.
        status: Success if it was placed tentatively; if it preempts, the rejection before that.
        nominated_node_name: The nomination to write if it is rejected; None keeps it.
        diagnosis: The rejecting plugins; None if a plugin rejected it after a node was chosen.
        assumed: The tentatively assumed pod; None if it was not placed.
        permit: The status of Permit: success, or Wait.
        duration_seconds: The duration of the attempt.
    """

    queued: QueuedPodInfo
    decision: Decision
    status: Status = SUCCESS
    nominated_node_name: str | None = ""
    diagnosis: Diagnosis | None = NOBODY_REJECTED
    assumed: PodInfo | None = None
    permit: Status = SUCCESS
    duration_seconds: float = 0.0

    @property
    def requires_preemption(self) -> bool:
        """Whether victims must be evicted before the pod fits where it was placed."""
        return self.assumed is not None and not self.status.is_success


class Outcome(msgspec.Struct, frozen=True):
    """The result of the group's cycle.

    Attributes:
        status: Success, Unschedulable, or Error.
        attempts: One per tried pod, in order; fewer after an error, none without placements.
        waits_for_preemption: Whether the group fits once its victims are gone.
    """

    status: Status
    attempts: Sequence[MemberAttempt]
    waits_for_preemption: bool = False

    @property
    def proposed(self) -> tuple[ProposedAssignment, ...]:
        """The pods that found a node, in the order of trying."""
        return tuple(
            ProposedAssignment(attempt.queued.pod_info, attempt.assumed.node_name)
            for attempt in self.attempts
            if attempt.assumed is not None
        )


def outcome_of(attempts: Sequence[MemberAttempt]) -> Outcome:
    """Return the group's outcome; none of the attempts is an error."""
    status, waits = Status(Code.UNSCHEDULABLE, error=UNSCHEDULABLE), False
    requires_preemption = False
    for attempt in attempts:
        if attempt.assumed is None:
            continue
        requires_preemption = requires_preemption or attempt.requires_preemption
        if not attempt.permit.is_success:
            continue
        if requires_preemption:
            status, waits = _rejection(WAITS_FOR_PREEMPTION), True
        else:
            status = SUCCESS
    return Outcome(status, attempts, waits)


def refused(attempt: MemberAttempt, status: Status) -> MemberAttempt:
    """Return the attempt with the pod rejected after all."""
    return MemberAttempt(attempt.queued, Failed(attempt.queued.pod_info, status), status)


def final_attempt(attempt: MemberAttempt, outcome: Outcome) -> MemberAttempt:
    """Return the attempt with which a pod goes back to the queue."""
    if outcome.status.code is Code.ERROR:
        return attempt if attempt.status.code is Code.ERROR else refused(attempt, outcome.status)
    if attempt.assumed is None:
        return attempt
    if not outcome.waits_for_preemption:
        return refused(attempt, _rejection(attempt.permit.message))
    if attempt.requires_preemption:
        return attempt
    rejected = refused(attempt, outcome.status)
    return msgspec.structs.replace(rejected, nominated_node_name=attempt.assumed.node_name)


def condition_of(status: Status) -> ConditionPatch:
    """Return the group's condition after a cycle that ended with `status`."""
    if status.is_success:
        return ConditionPatch(SCHEDULED, "True", "Scheduled", status.message)
    reason = "Unschedulable" if status.is_rejected else "SchedulerError"
    return ConditionPatch(SCHEDULED, "False", reason, status.message)


def _rejection(reason: str) -> Status:
    return Status(Code.UNSCHEDULABLE, (reason,), error=UNSCHEDULABLE)
