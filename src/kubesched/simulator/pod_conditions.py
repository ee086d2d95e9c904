"""Conditions of pods, set as upstream sets them.

Upstream: pkg/api/v1/pod/util.go, UpdatePodCondition (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod, PodCondition
from kubesched.scheduler.api_client import PodConditionPatch
from kubesched.simulator.timestamps import timestamp


def with_condition(pod: Pod, patch: PodConditionPatch, now: float) -> Pod:
    """Return the pod with a condition; the very same pod if it has it already.

    The transition time stays as it was when only the words change.
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
        observed_generation=pod.metadata.generation,
        last_transition_time=since,
        reason=patch.reason,
        message=patch.message,
    )
    if at is None:
        conditions.append(condition)
    else:
        conditions[at] = condition
    return replace(pod, status=replace(pod.status, conditions=tuple(conditions)))
