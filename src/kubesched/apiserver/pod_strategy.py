"""What users may not set of a pod, and what a pod gets from itself: status, generation, selectors.

Upstream: pkg/registry/core/pod/strategy.go (v1.36)
Differs:  AppArmor annotations are not copied to the security context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.qos_class import qos_class
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import type_of

_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
# Of a feature that is off.
_CLAIM_STATUSES: Final = "nodeAllocatableResourceClaimStatuses"
_OF_OBJECT: Final = (
    "annotations",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "labels",
    "ownerReferences",
    "selfLink",
)


def prepare_pod_for_create(_resource: Resource, pod: Plain) -> Plain:
    """Return a new pod with its first status, and with labels merged into its selectors."""
    spec = pod["spec"]
    # A class that the client says is believed, as upstream does.
    given = pod["status"].get("qosClass")
    status: Plain = {"phase": "Pending", "qosClass": given or qos_class(spec)}
    if spec.get("schedulingGates"):
        now = pod["metadata"].get("creationTimestamp")
        status["conditions"] = [{**_GATED, "lastTransitionTime": now}]
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        spec = deep_copy(spec)
        _merge_label_keys(spec, pod["metadata"].get("labels", {}))
    metadata = {**pod["metadata"], "generation": 1}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}


def _merge_label_keys(spec: Plain, labels: Plain) -> None:
    """Say in selectors which value of some labels this very pod has."""
    for term in _affinity_terms(spec.get("affinity") or {}):
        _merge(term, term.get("matchLabelKeys"), "In", labels)
        _merge(term, term.get("mismatchLabelKeys"), "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, constraint.get("matchLabelKeys"), "In", labels)


def _affinity_terms(affinity: Plain) -> Iterator[Plain]:
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        for weighted in terms.get(_PREFERRED) or ():
            yield weighted["podAffinityTerm"]
        yield from terms.get(_REQUIRED) or ()


def _merge(owner: Plain, keys: Sequence[str] | None, operator: str, labels: Plain) -> None:
    selector = owner.get("labelSelector")
    if selector is None:
        return
    for key in keys or ():
        if key in labels:
            expression = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(expression)


def prepare_pod_for_update(resource: Resource, new: Plain, old: Plain, subresource: str) -> Plain:
    """Return a changed pod with what cannot be changed through this path as it was."""
    if subresource == "status":
        return _status_update(new, old)
    if subresource == "ephemeralcontainers":
        new = _ephemeral_containers_update(new, old)
    elif subresource == "resize":
        new = _resize(new, old)
    else:
        new = {**new, "status": old["status"]}
    object_type = type_of(resource.group, resource.version, resource.kind)
    assert object_type is not None, "the fields of pods are known"
    if not object_type.fields["spec"].type.is_equal(new["spec"], old["spec"]):
        generation = old["metadata"].get("generation", 0) + 1
        new = {**new, "metadata": {**new["metadata"], "generation": generation}}
    return new


def _status_update(new: Plain, old: Plain) -> Plain:
    metadata = {**new["metadata"]}
    metadata.pop("ownerReferences", None)
    if "deletionTimestamp" not in old["metadata"]:
        metadata.pop("deletionTimestamp", None)
    if "ownerReferences" in old["metadata"]:
        metadata["ownerReferences"] = old["metadata"]["ownerReferences"]
    status = {**new["status"]}
    if _CLAIM_STATUSES not in old["status"]:
        status.pop(_CLAIM_STATUSES, None)
    for name in ("observedGeneration", "qosClass"):
        if not status.get(name) and name in old["status"]:
            status[name] = old["status"][name]
    if "conditions" in status:
        status["conditions"] = _conditions(status["conditions"], old["status"].get("conditions"))
    return {**new, "metadata": metadata, "spec": old["spec"], "status": status}


def _conditions(new: Sequence[Plain], old: Sequence[Plain] | None) -> list[Plain]:
    """Return conditions that keep the generation they were seen at where the new ones say none."""
    generations: dict[str, list[int]] = {}
    for condition in old or ():
        generation = condition.get("observedGeneration", 0)
        generations.setdefault(condition["type"], []).append(generation)
    kept = []
    for condition in new:
        # A type may stand there twice; then the generations are taken in turn.
        seen = generations.get(condition["type"])
        generation = seen.pop(0) if seen else 0
        if generation and not condition.get("observedGeneration"):
            kept.append({**condition, "observedGeneration": generation})
        else:
            kept.append(condition)
    return kept


def with_metadata_of(new: Plain, old: Plain) -> Plain:
    """Return the metadata of a change that may not touch any of it."""
    others = {name: one for name, one in new["metadata"].items() if name not in _OF_OBJECT}
    kept = {name: old["metadata"][name] for name in _OF_OBJECT if name in old["metadata"]}
    return {**others, **kept}


def _ephemeral_containers_update(new: Plain, old: Plain) -> Plain:
    spec = {name: one for name, one in old["spec"].items() if name != "ephemeralContainers"}
    if new["spec"].get("ephemeralContainers"):
        spec["ephemeralContainers"] = new["spec"]["ephemeralContainers"]
    metadata = with_metadata_of(new, old)
    return {**new, "metadata": metadata, "spec": spec, "status": old["status"]}


def _resize(new: Plain, old: Plain) -> Plain:
    lists = ("containers", "initContainers")
    counts = [[len(pod["spec"].get(name) or ()) for name in lists] for pod in (new, old)]
    if counts[0] != counts[1]:
        # Validation tells what is wrong with that.
        return new
    spec = {**old["spec"]}
    spec.pop("resources", None)
    if new["spec"].get("resources") is not None:
        spec["resources"] = new["spec"]["resources"]
    for name in lists:
        if new["spec"].get(name):
            spec[name] = _resized(new["spec"][name], old["spec"][name])
    metadata = with_metadata_of(new, old)
    return {**new, "metadata": metadata, "spec": spec, "status": old["status"]}


def _resized(new: Sequence[Plain], old: Sequence[Plain]) -> Sequence[Plain]:
    if [one["name"] for one in new] != [one["name"] for one in old]:
        return new
    resized = []
    for container, before in zip(new, old, strict=True):
        kept = {name: one for name, one in before.items() if name != "resizePolicy"}
        kept["resources"] = container["resources"]
        if "resizePolicy" in container:
            kept["resizePolicy"] = container["resizePolicy"]
        resized.append(kept)
    return resized
