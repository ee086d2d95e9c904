"""Strategies prepare objects for validation: fields that users may not set get their values.

Statuses begin empty and change only through their subresource, generations count changes of the
spec, and fields that a request may not change keep their values.

Upstream: pkg/registry/*/*/strategy.go, staging/src/k8s.io/apiserver/pkg/registry/rest,
          pkg/api/pod/util.go (DropDisabledPodFields, v1.36)
Invariants: neither the new nor the old object is changed; the returned one shares parts with them.
Differs:  a scheduling group is kept, although the feature is off by default. AppArmor annotations
          are not copied to the security context. Daemon sets do not note the generation of their
          template. Approvals of certificates and phases of volumes bear the times that they are
          sent with. A CustomResourceDefinition is established at once. Of conditions of one type,
          the last one's observed generation is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubesched.api.well_known import NAMESPACE_NAME, PREFERRED, REQUIRED
from kubesched.apiserver.amounts import qos_class
from kubesched.apiserver.defaults import with_defaults
from kubesched.apiserver.plain import Plain, deep_copy, get, only, with_fields_of, without
from kubesched.apiserver.resources import OBJECT_METADATA, Resource

_KUBERNETES: Final = "kubernetes"
# The status of a pod is read before it is dropped.
_KEEPS_STATUS_ON_CREATE: Final = frozenset(("APIService", "Node", "Pod"))
_SYSTEM_METADATA: Final = ("deletionGracePeriodSeconds", "deletionTimestamp", "selfLink")


def prepare_for_create(resource: Resource, obj: Plain) -> Plain:
    """Return a new object as it will be validated.

    It comes with its defaults, its uid and its creationTimestamp, which is the time of the request.
    """
    metadata = without(obj["metadata"], *_SYSTEM_METADATA)
    if resource.first_generation:
        metadata["generation"] = resource.first_generation
    obj = {**obj, "metadata": metadata}
    if resource.has_status and resource.built_in_kind not in _KEEPS_STATUS_ON_CREATE:
        obj = _with_status(resource, obj, {})
    prepare = _ON_CREATE.get(resource.built_in_kind)
    return obj if prepare is None else prepare(resource, obj)


def prepare_for_update(resource: Resource, new: Plain, old: Plain, subresource: str = "") -> Plain:
    """Return a changed object, with its defaults, as it will be validated."""
    new = {**new, "metadata": _metadata(new["metadata"], old["metadata"])}
    if resource.built_in_kind == "Pod":
        return _pod_update(resource, new, old, subresource)
    if subresource == "approval":
        conditions = get(new, "status", "conditions") or []
        status = {**(old.get("status") or {}), "conditions": conditions}
        return {**old, "metadata": new["metadata"], "status": status}
    if subresource == "status":
        left = with_fields_of(new["metadata"], old["metadata"], *resource.left_by_status)
        return with_fields_of({**old, "metadata": left}, new, "status")
    if resource.built_in_kind == "Namespace":
        spec = new["spec"]
        if subresource != "finalize":
            spec = with_fields_of(spec, old["spec"], "finalizers")
        return {**new, "spec": spec, "status": old["status"]}
    if resource.has_status:
        new = _with_status(resource, new, old)
    if resource.built_in_kind == "PersistentVolumeClaim":
        new = {**new, "spec": _with_data_sources(new["spec"])}
    return _with_generation(resource, new, old)


def _metadata(new: Plain, old: Plain) -> Plain:
    """Return metadata with the old values of fields that only the server writes."""
    metadata = with_fields_of(new, old, "generation")
    metadata["uid"] = new.get("uid") or old.get("uid")
    fixed = only(old, "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp")
    return {**metadata, **fixed}


def _with_status(resource: Resource, obj: Plain, old: Plain) -> Plain:
    """Return an object with its old status, or with an empty one."""
    status = old.get("status")
    if status is None and resource.definition is not None:
        # Its schema may have a default.
        return with_defaults(resource, without(obj, "status"))
    if status is None:
        field = resource.type.fields.get("status")
        status = {} if field is None else field.type.zero()
    return without(obj, "status") if status is None else {**obj, "status": status}


def _with_generation(resource: Resource, new: Plain, old: Plain) -> Plain:
    if resource.generation_fields is None:
        return new
    fields: Sequence[str] = resource.generation_fields
    if resource.definition is not None:
        fields = [name for name in {**new, **old} if name not in ("metadata", "status")]
    is_changed = False
    for name in fields:
        value_type = resource.type.child(name)
        assert value_type is not None, f"{resource.kind} has {name}"
        is_changed |= not value_type.is_equal(new.get(name), old.get(name))
    for kind, name in (("Deployment", "annotations"), ("EndpointSlice", "labels")):
        if resource.built_in_kind == kind:
            is_changed |= new["metadata"].get(name) != old["metadata"].get(name)
    if is_changed:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


# Pods.

_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def _create_pod(_resource: Resource, pod: Plain) -> Plain:
    """Return a new pod with its first status, and with labels merged into its selectors."""
    spec = pod["spec"]
    # The client's own class is accepted, as upstream does.
    given = pod["status"].get("qosClass")
    status: Plain = {"phase": "Pending", "qosClass": given or qos_class(spec)}
    if spec.get("schedulingGates"):
        now = pod["metadata"].get("creationTimestamp")
        status["conditions"] = [{**_GATED, "lastTransitionTime": now}]
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        spec = deep_copy(spec)
        _merge_label_keys(spec, pod["metadata"].get("labels", {}))
    return {**pod, "spec": spec, "status": status}


def _merge_label_keys(spec: Plain, labels: Plain) -> None:
    """Add the pod's own values of some labels to its selectors."""
    terms: list[Plain] = list(spec.get("topologySpreadConstraints") or ())
    for name in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(name) or {}
        terms += [weighted["podAffinityTerm"] for weighted in affinity.get(PREFERRED) or ()]
        terms += affinity.get(REQUIRED) or ()
    for term in terms:
        selector = term.get("labelSelector")
        for word, operator in (("match", "In"), ("mismatch", "NotIn")):
            for key in term.get(f"{word}LabelKeys") or ():
                if selector is not None and key in labels:
                    expression = {"key": key, "operator": operator, "values": [labels[key]]}
                    selector.setdefault("matchExpressions", []).append(expression)


def _pod_update(resource: Resource, new: Plain, old: Plain, subresource: str) -> Plain:
    """Return a changed pod with the old values of fields that this path cannot change."""
    if subresource == "status":
        return _pod_status_update(resource, new, old)
    if subresource == "ephemeralcontainers":
        spec = with_fields_of(old["spec"], new["spec"], "ephemeralContainers")
        new = _with_spec_only(new, old, spec)
    elif subresource == "resize":
        new = _resize(new, old)
    else:
        new = {**new, "status": old["status"]}
    if not resource.type.fields["spec"].type.is_equal(new["spec"], old["spec"]):
        generation = old["metadata"].get("generation", 0) + 1
        new = {**new, "metadata": {**new["metadata"], "generation": generation}}
    return new


def _with_spec_only(new: Plain, old: Plain, spec: Plain) -> Plain:
    """Return a pod of which a subresource has changed the spec, and nothing else."""
    metadata = with_fields_of(new["metadata"], old["metadata"], *OBJECT_METADATA)
    return {**new, "metadata": metadata, "spec": spec, "status": old["status"]}


def _pod_status_update(resource: Resource, new: Plain, old: Plain) -> Plain:
    metadata = with_fields_of(new["metadata"], old["metadata"], *resource.left_by_status)
    status = {**new["status"]}
    for name in ("observedGeneration", "qosClass"):
        if not status.get(name) and name in old["status"]:
            status[name] = old["status"][name]
    if "conditions" in status:
        status["conditions"] = _conditions(status["conditions"], old["status"].get("conditions"))
    return {**new, "metadata": metadata, "spec": old["spec"], "status": status}


def _conditions(new: Sequence[Plain], old: Sequence[Plain] | None) -> list[Plain]:
    """Return conditions; those without an observed generation keep their earlier one."""
    before = {one["type"]: one.get("observedGeneration") for one in old or ()}
    conditions = [dict(one) for one in new]
    for condition in conditions:
        if generation := before.get(condition["type"]):
            condition.setdefault("observedGeneration", generation)
    return conditions


def _resize(new: Plain, old: Plain) -> Plain:
    """Return a pod with the old values of all but resources, and when these apply."""
    spec = with_fields_of(old["spec"], new["spec"], "resources")
    for name in ("containers", "initContainers"):
        after, before = (pod["spec"].get(name) or () for pod in (new, old))
        if len(after) != len(before):
            # Validation reports this.
            return new
        if after:
            spec[name] = [_resized(*pair) for pair in zip(after, before, strict=True)]
    return _with_spec_only(new, old, spec)


def _resized(new: Plain, old: Plain) -> Plain:
    if new["name"] != old["name"]:
        return new
    return with_fields_of(old, new, "resources", "resizePolicy")


# Other kinds.


def _create_namespace(_resource: Resource, obj: Plain) -> Plain:
    finalizers = list(obj["spec"].get("finalizers", ()))
    if _KUBERNETES not in finalizers:
        finalizers.append(_KUBERNETES)
    metadata = obj["metadata"]
    labels = {**metadata.get("labels", {}), NAMESPACE_NAME: metadata.get("name", "")}
    return {
        **obj,
        "metadata": {**metadata, "labels": labels},
        "spec": {**obj["spec"], "finalizers": finalizers},
        "status": {"phase": "Active"},
    }


def _create_volume(_resource: Resource, obj: Plain) -> Plain:
    now = obj["metadata"].get("creationTimestamp", "")
    return {**obj, "status": {"phase": "Pending", "lastPhaseTransitionTime": now}}


def _create_claim(_resource: Resource, obj: Plain) -> Plain:
    spec = _with_data_sources(obj["spec"])
    return {**obj, "spec": spec, "status": {"phase": "Pending"}}


def _with_data_sources(spec: Plain) -> Plain:
    """Return the specification of a claim with both forms of its data source."""
    spec = {**spec}
    if get(spec, "dataSourceRef", "namespace"):
        del spec["dataSourceRef"]
    if "dataSourceRef" in spec:
        spec.setdefault("dataSource", only(spec["dataSourceRef"], "apiGroup", "kind", "name"))
    elif (source := spec.pop("dataSource", None)) is not None:
        what = (source.get("apiGroup") or "", source.get("kind"))
        if what in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")):
            spec |= {"dataSource": source, "dataSourceRef": {**source}}
    return spec


def _create_job(resource: Resource, obj: Plain) -> Plain:
    if obj["spec"].get("manualSelector"):
        return obj
    obj = deep_copy(obj)
    spec, metadata = obj["spec"], obj["metadata"]
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for name in ("batch.kubernetes.io/job-name", "job-name"):
        labels.setdefault(name, metadata.get("name", ""))
    for name in ("batch.kubernetes.io/controller-uid", "controller-uid"):
        labels.setdefault(name, metadata.get("uid", ""))
    wanted = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    wanted.setdefault("batch.kubernetes.io/controller-uid", metadata.get("uid", ""))
    # Reading the stored job fills its own labels in from the template.
    return with_defaults(resource, obj)


def _create_definition(resource: Resource, obj: Plain) -> Plain:
    """Return an established definition, whose resources are served from now on."""
    obj = with_defaults(resource, obj)
    now = obj["metadata"].get("creationTimestamp")
    conditions: list[Any] = [
        {"type": name, "status": "True", "lastTransitionTime": now, "reason": reason}
        for name, reason in (
            ("NamesAccepted", "NoConflicts"),
            ("Established", "InitialNamesAccepted"),
        )
    ]
    status = {**obj["status"], "conditions": conditions, "acceptedNames": obj["spec"]["names"]}
    return {**obj, "status": status}


_ON_CREATE: Final[Mapping[str, Callable[[Resource, Plain], Plain]]] = {
    "CustomResourceDefinition": _create_definition,
    "Job": _create_job,
    "Namespace": _create_namespace,
    "PersistentVolume": _create_volume,
    "PersistentVolumeClaim": _create_claim,
    "Pod": _create_pod,
}
