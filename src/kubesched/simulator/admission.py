"""Admission fills in the defaults of a new pod, or rejects it.

Upstream: pkg/apis/core/v1/defaults.go,
          plugin/pkg/admission/{priority,defaulttolerationseconds} (v1.36)
Differs:  quota, limit ranges, service accounts and validation are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Pod, Toleration
from kubesched.api.errors import ApiError
from kubesched.scheduler.api_client import PodConditionPatch
from kubesched.simulator.defaults import PriorityClasses, pod_with_defaults
from kubesched.simulator.pod_conditions import with_condition

GRACE_SECONDS: Final = 30
"""How long a pod may take to stop, unless it says otherwise."""

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS: Final = 300
_GATED: Final = PodConditionPatch(
    "PodScheduled",
    "False",
    "SchedulingGated",
    "Scheduling is blocked due to non-empty scheduling gates",
)


def complete_pod(pod: Pod, classes: PriorityClasses, now: float) -> Pod:
    """Return the pod as it is stored.

    Raises:
        ApiError: Its priority class does not exist.
    """
    classes.unknown.clear()
    pod = pod_with_defaults(pod, classes)
    if classes.unknown:
        raise ApiError(
            403,
            "Forbidden",
            f'pods "{pod.metadata.name}" is forbidden: no PriorityClass with name '
            f"{pod.spec.priority_class_name} was found",
        )
    spec = pod.spec
    grace = spec.termination_grace_period_seconds
    spec = replace(
        spec,
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
        restart_policy=spec.restart_policy or "Always",
        scheduler_name=spec.scheduler_name or "default-scheduler",
        termination_grace_period_seconds=GRACE_SECONDS if grace is None else grace,
        tolerations=(*spec.tolerations, *_default_tolerations(spec.tolerations)),
    )
    pod = replace(pod, spec=spec, status=replace(pod.status, phase=pod.status.phase or "Pending"))
    return with_condition(pod, _GATED, now, observed_generation=0) if spec.scheduling_gates else pod


def _default_tolerations(given: tuple[Toleration, ...]) -> Iterator[Toleration]:
    """Tolerate a failed node for five minutes, unless the pod has such tolerations."""
    for key in (NOT_READY, UNREACHABLE):
        if not any(_concerns(toleration, key) for toleration in given):
            yield Toleration(
                key=key,
                operator="Exists",
                effect="NoExecute",
                toleration_seconds=_TOLERATION_SECONDS,
            )


def _concerns(toleration: Toleration, key: str) -> bool:
    return toleration.key in (key, "") and toleration.effect in ("NoExecute", "")
