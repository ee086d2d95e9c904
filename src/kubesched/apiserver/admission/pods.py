"""Admission of pods and pod groups: priority, tolerations, runtime classes and topology labels.

New nodes get a taint that keeps pods away until they are ready.

Upstream: plugin/pkg/admission/{defaulttolerationseconds,nodetaint,podtopologylabels,priority,
          runtimeclass}, pkg/util/tolerations (v1.36)
Reads:    PriorityClass and RuntimeClass objects, nodes' labels
Differs:  pod groups get a priority without the gate WorkloadAwarePreemption, too; tolerations of a
          runtime class are added even if another one of the pod includes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesched.api.go_text import go_quote
from kubesched.apiserver.admission.request import CREATE, AdmissionRequest
from kubesched.apiserver.plain import Plain, only
from kubesched.apiserver.schema import known_type
from kubesched.apiserver.stored_object import StoredObjects

_TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_NO_EXECUTE: Final = "NoExecute"


def add_default_tolerations(_request: AdmissionRequest, pod: Plain) -> Plain:
    """Return the pod with tolerations of failing nodes, unless it has its own."""
    tolerations = pod["spec"].get("tolerations") or []
    missing = [
        {"key": key, "operator": "Exists", "effect": _NO_EXECUTE, "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if not any(_is_about(toleration, key) for toleration in tolerations)
    ]
    return {**pod, "spec": {**pod["spec"], "tolerations": [*tolerations, *missing]}}


def _is_about(toleration: Plain, key: str) -> bool:
    # Operator and value do not count, as upstream has it.
    return (toleration.get("key") or key) == key and (
        toleration.get("effect") or _NO_EXECUTE
    ) == _NO_EXECUTE


def add_topology_labels(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return a bound pod with the topology labels of its node."""
    labels = topology_labels(pod["spec"].get("nodeName", ""), request.lookup)
    if not labels:
        return pod
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


def topology_labels(node_name: str, lookup: StoredObjects) -> dict[str, str]:
    """Return the labels that pods copy from a node; none if there is no such node."""
    node = lookup.get("nodes", "", node_name)
    labels = {} if node is None else node["metadata"].get("labels", {})
    return only(labels, *_TOPOLOGY_LABELS)


# Nodes.

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def add_not_ready_taint(_request: AdmissionRequest, node: Plain) -> Plain:
    """Return a new node with the taint of one that is not ready."""
    taints = node["spec"].get("taints") or []
    if any((one.get("key"), one.get("effect")) == tuple(_NOT_READY.values()) for one in taints):
        return node
    return {**node, "spec": {**node["spec"], "taints": [*taints, dict(_NOT_READY)]}}


# Priority.

_PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
_PREEMPT: Final = "PreemptLowerPriority"
_COMPUTED: Final = (
    "must not be provided in pod spec; priority admission controller computed {} "
    "from the given PriorityClass name"
)


def keep_priority(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return a changed pod with the priority and the policy that it had, unless it has others."""
    before: Plain = (request.old or {}).get("spec", {})
    kept = only(before, "preemptionPolicy", "priority")
    return {**pod, "spec": {**kept, **pod["spec"]}}


def set_priority(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return a new pod with the priority of its class; raises StatusError if it has another."""
    spec, policy = _with_priority(request, pod, f"the integer value of priority ({{}}) {_COMPUTED}")
    given = spec.get("preemptionPolicy")
    if policy is not None:
        if given not in (None, policy):
            why = f"the string value of PreemptionPolicy ({given}) {_COMPUTED.format(policy)}"
            raise request.refusal(pod, why)
        spec["preemptionPolicy"] = policy
    return {**pod, "spec": spec}


def set_group_priority(request: AdmissionRequest, group: Plain) -> Plain:
    """Return a new group with the priority of its class; raises StatusError if it has another."""
    refusal = "priority set in the pod group ({}) must match the priority computed ({})"
    spec, _ = _with_priority(request, group, refusal)
    return {**group, "spec": spec}


def _with_priority(request: AdmissionRequest, obj: Plain, refusal: str) -> tuple[Plain, str | None]:
    """Return the spec with the priority of its class, and the preemption policy of that.

    `refusal` is the message's format for a given priority and the other one of the class.
    """
    spec, found = {**obj["spec"]}, _priority_class_of(request, obj)
    priority, policy = (
        (0, _PREEMPT) if found is None else (found["value"], found.get("preemptionPolicy"))
    )
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    given = spec.get("priority")
    if given not in (None, priority):
        raise request.refusal(obj, refusal.format(given, priority))
    spec["priority"] = priority
    return spec, policy


def _priority_class_of(request: AdmissionRequest, obj: Plain) -> Plain | None:
    """Return the class that an object names, or else the default class; None if there is none."""
    name = obj["spec"].get("priorityClassName", "")
    if not name:
        return _default_class(request)
    found = request.lookup.get(_PRIORITY_CLASSES, "", name)
    if found is None:
        raise request.refusal(obj, f"no PriorityClass with name {name} was found")
    return found


def _default_class(request: AdmissionRequest) -> Plain | None:
    """Return the default class; of several the one of the lowest value."""
    defaults = [one for one in request.lookup.items(_PRIORITY_CLASSES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"]), default=None)


def check_default_class(request: AdmissionRequest, obj: Plain) -> None:
    """Raise StatusError if there is a default class already."""
    default = _default_class(request) if obj.get("globalDefault") else None
    if default is None:
        return
    name = default["metadata"]["name"]
    if request.operation == CREATE or name != obj["metadata"]["name"]:
        why = f"PriorityClass {name} is already marked as default. Only one default can exist"
        raise request.refusal(obj, why)


# Runtime classes.

_RUNTIME_CLASSES: Final = "runtimeclasses.node.k8s.io"
_AMOUNTS: Final = known_type("node_v1", "Overhead").fields["podFixed"].type
_OTHER_OVERHEAD: Final = (
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
)
_NO_OVERHEAD: Final = (
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)


def apply_runtime_class(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return the pod as its runtime class has it; raises StatusError if they contradict."""
    runtime_class = _class_of(request, pod)
    if runtime_class is None:
        return pod
    spec = {**pod["spec"]}
    if (overhead := _overhead(runtime_class)) is not None:
        if spec.get("overhead") and not _AMOUNTS.is_equal(spec["overhead"], overhead):
            raise request.refusal(pod, _OTHER_OVERHEAD)
        if overhead:
            spec["overhead"] = dict(overhead)
    if (scheduling := runtime_class.get("scheduling")) is not None:
        _select_nodes(request, pod, spec, scheduling.get("nodeSelector") or {})
        if tolerations := [*spec.get("tolerations", ()), *scheduling.get("tolerations", ())]:
            spec["tolerations"] = [
                one for at, one in enumerate(tolerations) if one not in tolerations[:at]
            ]
    return {**pod, "spec": spec}


def check_overhead(request: AdmissionRequest, pod: Plain) -> None:
    """Raise StatusError if a pod has an overhead, and its class has none."""
    runtime_class = _class_of(request, pod)
    has_none = runtime_class is None or _overhead(runtime_class) is None
    if has_none and pod["spec"].get("overhead") is not None:
        raise request.refusal(pod, _NO_OVERHEAD)


def _class_of(request: AdmissionRequest, pod: Plain) -> Plain | None:
    name = pod["spec"].get("runtimeClassName")
    if name is None:
        return None
    found = request.lookup.get(_RUNTIME_CLASSES, "", name)
    if found is None:
        raise request.refusal(pod, f"pod rejected: RuntimeClass {go_quote(name)} not found")
    return found


def _overhead(runtime_class: Plain) -> Mapping[str, str] | None:
    overhead = runtime_class.get("overhead")
    return None if overhead is None else overhead.get("podFixed") or {}


def _select_nodes(
    request: AdmissionRequest, pod: Plain, spec: Plain, wanted: Mapping[str, str]
) -> None:
    own = spec.get("nodeSelector") or {}
    for key, value in wanted.items():
        if own.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
            raise request.refusal(pod, why)
    if wanted:
        spec["nodeSelector"] = {**own, **wanted}
