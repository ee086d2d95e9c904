"""Sets conditions of pods and pod groups as upstream does.

Upstream: pkg/api/v1/pod/util.go, UpdatePodCondition; apimachinery/pkg/api/meta,
          SetStatusCondition (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod, PodCondition
from kubesched.api.meta import Condition
from kubesched.api.scheduling import PodGroup
from kubesched.scheduler.api_client import PodConditionPatch, PodGroupConditionPatch
from kubesched.simulator.timestamps import timestamp


def with_condition(
    pod: Pod, patch: PodConditionPatch, now: float, *, observed_generation: int | None = None
) -> Pod:
    """Return the pod with a condition; the same object if it has the condition already.

    The transition time changes only with the status. `observed_generation` defaults to the pod's
    generation; 0 omits it.
    """
    conditions = list(pod.status.conditions)
    at = next((i for i, known in enumerate(conditions) if known.type == patch.type), None)
    since = timestamp(now)
    if at is not None:
        known = conditions[at]
        if patch == PodConditionPatch(known.type, known.status, known.reason, known.message):
            return pod
        if known.status == patch.status:
            since = known.last_transition_time or since
    condition = PodCondition(
        type=patch.type,
        status=patch.status,
        observed_generation=pod.metadata.generation
        if observed_generation is None
        else observed_generation,
        last_transition_time=since,
        reason=patch.reason,
        message=patch.message,
    )
    if at is None:
        conditions.append(condition)
    else:
        conditions[at] = condition
    return replace(pod, status=replace(pod.status, conditions=tuple(conditions)))


def with_group_condition(group: PodGroup, patch: PodGroupConditionPatch, now: float) -> PodGroup:
    """Return the group with a condition; the same object if it has the condition already."""
    conditions = {known.type: known for known in group.status.conditions}
    known = conditions.get(patch.type)
    same_status = known is not None and known.status == patch.status
    since = known.last_transition_time if known is not None and same_status else timestamp(now)
    condition = Condition(
        type=patch.type,
        status=patch.status,
        observed_generation=patch.observed_generation,
        last_transition_time=since,
        reason=patch.reason,
        message=patch.message,
    )
    if condition == known:
        return group
    conditions[patch.type] = condition
    return replace(group, status=replace(group.status, conditions=tuple(conditions.values())))
