"""Pods get their priority and their preemption policy from a priority class.

Upstream: plugin/pkg/admission/priority/admission.go (v1.36)
Reads:    pod.priorityClassName, priority and preemptionPolicy; PriorityClass objects
Differs:  pod groups get none.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest
from kubesched.apiserver.plain import Plain

_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
_PREEMPT: Final = "PreemptLowerPriority"
_SYSTEM_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
_COMPUTED: Final = (
    "must not be provided in pod spec; priority admission controller computed {} "
    "from the given PriorityClass name"
)


class _Priority(NamedTuple):
    class_name: str
    value: int
    preemption_policy: str | None


def is_system_class(name: str) -> bool:
    """Whether a class belongs to every cluster."""
    return name in _SYSTEM_CLASSES


def admit(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return the pod with the priority of its class.

    Raises:
        StatusError: There is no such class, or the pod says something else.
    """
    if request.is_for("Pod", UPDATE) and request.old is not None:
        kept = {
            name: request.old["spec"][name]
            for name in ("preemptionPolicy", "priority")
            if name in request.old["spec"]
        }
        return {**pod, "spec": {**kept, **pod["spec"]}}
    return _with_priority(request, pod) if request.is_for("Pod", CREATE) else pod


def _with_priority(request: AdmissionRequest, pod: Plain) -> Plain:
    spec = {**pod["spec"]}
    found = _priority_of(request, pod)
    if found.class_name:
        spec["priorityClassName"] = found.class_name
    given = spec.get("priority")
    if given not in (None, found.value):
        why = f"the integer value of priority ({given}) {_COMPUTED.format(found.value)}"
        raise request.refusal(pod, why)
    spec["priority"] = found.value
    policy, given = found.preemption_policy, spec.get("preemptionPolicy")
    if policy is not None:
        if given not in (None, policy):
            why = f"the string value of PreemptionPolicy ({given}) {_COMPUTED.format(policy)}"
            raise request.refusal(pod, why)
        spec["preemptionPolicy"] = policy
    return {**pod, "spec": spec}


def _priority_of(request: AdmissionRequest, pod: Plain) -> _Priority:
    name = pod["spec"].get("priorityClassName", "")
    if name:
        found = request.lookup.get(_CLASSES, "", name)
        if found is None:
            raise request.refusal(pod, f"no PriorityClass with name {name} was found")
        return _Priority(name, found["value"], found.get("preemptionPolicy"))
    default = _default_class(request)
    if default is None:
        return _Priority("", 0, _PREEMPT)
    name = default["metadata"]["name"]
    return _Priority(name, default["value"], default.get("preemptionPolicy"))


def _default_class(request: AdmissionRequest) -> Plain | None:
    """Return the default class; of several the one of the lowest value."""
    defaults = [one for one in request.lookup.items(_CLASSES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"]), default=None)


def check(request: AdmissionRequest, obj: Plain) -> None:
    """Refuse a second default class.

    Raises:
        StatusError: There is one already.
    """
    if not request.is_for("PriorityClass", CREATE, UPDATE) or not obj.get("globalDefault"):
        return
    default = _default_class(request)
    if default is None:
        return
    name = default["metadata"]["name"]
    if request.operation == CREATE or name != obj["metadata"]["name"]:
        why = f"PriorityClass {name} is already marked as default. Only one default can exist"
        raise request.refusal(obj, why)
