"""Strategies: what users may not set is set before an object is checked and stored.

Statuses begin empty and change only through their subresource, generations count the changes of
what users want, and fields that do not belong to a request stay as they were.

Upstream: pkg/registry/*/*/strategy.go, staging/src/k8s.io/apiserver/pkg/registry/rest (v1.36)
Invariants: neither the new nor the old object is changed; what comes back shares parts with them.
Differs:  AppArmor annotations are not copied to the security context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.api.requirements import parse_int64
from kubesched.apiserver.admission.services import without_fields_of_old_type
from kubesched.apiserver.defaults import with_defaults
from kubesched.apiserver.disabled_fields import without_disabled_fields
from kubesched.apiserver.plain import Plain, deep_copy, get
from kubesched.apiserver.pod_strategy import (
    prepare_pod_for_create,
    prepare_pod_for_update,
    with_metadata_of,
)
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import type_of

_KUBERNETES: Final = "kubernetes"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_SNAPSHOT_GROUP: Final = "snapshot.storage.k8s.io"

_GENERATION_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "CronJob",
            "CustomResourceDefinition",
            "DaemonSet",
            "Deployment",
            "DeviceClass",
            "DeviceTaintRule",
            "FlowSchema",
            "Ingress",
            "IngressClass",
            "Job",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "NetworkPolicy",
            "PodDisruptionBudget",
            "PriorityLevelConfiguration",
            "ReplicaSet",
            "ReplicationController",
            "ResourceSlice",
            "StatefulSet",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ),
        ("spec",),
    ),
    "EndpointSlice": ("addressType", "endpoints", "ports"),
    "MutatingWebhookConfiguration": ("webhooks",),
    "PodTemplate": ("template",),
    "PriorityClass": (),
    "ValidatingWebhookConfiguration": ("webhooks",),
}
"""What a generation counts the changes of; it begins with 1."""

# The status of a pod is looked at before it is dropped.
_KEEPS_STATUS_ON_CREATE: Final = frozenset(("APIService", "Node", "Pod"))
_RESETS_METADATA_FOR_STATUS: Final = frozenset(
    (
        *("DeviceTaintRule", "FlowSchema", "PriorityLevelConfiguration", "ResourceClaim"),
        "VolumeAttachment",
    )
)
_SYSTEM_METADATA: Final = ("deletionGracePeriodSeconds", "deletionTimestamp", "selfLink")


def prepare_for_create(resource: Resource, obj: Plain) -> Plain:
    """Return a new object as it will be checked.

    Args:
        resource: Of the object.
        obj: With its defaults, its uid and its creationTimestamp, which is the time of the request.
    """
    metadata = {
        name: value for name, value in obj["metadata"].items() if name not in _SYSTEM_METADATA
    }
    if resource.kind in _GENERATION_FIELDS:
        metadata["generation"] = 1
    obj = {**without_disabled_fields(resource.kind, obj, None), "metadata": metadata}
    if _has_status(resource) and resource.kind not in _KEEPS_STATUS_ON_CREATE:
        obj["status"] = _empty_status(resource)
    prepare = _ON_CREATE.get(resource.kind)
    return obj if prepare is None else prepare(resource, obj)


def prepare_for_update(
    resource: Resource, new: Plain, old: Plain, subresource: str = "", now: str = ""
) -> Plain:
    """Return a changed object as it will be checked.

    Args:
        resource: Of the object.
        new: What is asked for, with its defaults.
        old: What is stored.
        subresource: Through which it is changed; "" for none.
        now: The time of the request, as objects have it.
    """
    new = without_disabled_fields(resource.kind, new, old)
    new = {**new, "metadata": _metadata(new["metadata"], old["metadata"])}
    if subresource == "status":
        return _status_update(resource, new, old, now)
    if resource.kind == "Pod":
        return prepare_pod_for_update(resource, new, old, subresource)
    if resource.kind == "Namespace":
        return _namespace_update(new, old, subresource)
    if subresource == "approval":
        return _approval_update(new, old, now)
    if _has_status(resource):
        new["status"] = old.get("status", _empty_status(resource))
    prepare = _ON_UPDATE.get(resource.kind)
    if prepare is not None:
        new = prepare(new, old)
    return _with_generation(resource, new, old)


def _metadata(new: Plain, old: Plain) -> Plain:
    """Return metadata with what only the server writes as it was."""
    metadata = {**new, "uid": new.get("uid") or old.get("uid")}
    for name in ("creationTimestamp", "deletionTimestamp", "generation"):
        if name in old:
            metadata[name] = old[name]
        elif name == "generation":
            metadata.pop(name, None)
    if "deletionGracePeriodSeconds" in old:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    return metadata


def _has_status(resource: Resource) -> bool:
    return resource.subresource("status") is not None


def _empty_status(resource: Resource) -> Plain:
    """Return the status of an object of which nothing is known yet."""
    object_type = type_of(resource.group, resource.version, resource.kind)
    if object_type is None or "status" not in object_type.fields:
        return {}
    zero: Plain = object_type.fields["status"].type.zero()
    return zero


def _with_generation(resource: Resource, new: Plain, old: Plain) -> Plain:
    fields = _GENERATION_FIELDS.get(resource.kind, ())
    if resource.kind == "CSIDriver":
        fields = ("spec",)
    object_type = type_of(resource.group, resource.version, resource.kind)
    assert not fields or object_type is not None, f"{resource.kind} has known fields"
    is_changed = any(
        object_type is not None
        and not object_type.fields[name].type.is_equal(new.get(name), old.get(name))
        for name in fields
    )
    for kind, name in (("Deployment", "annotations"), ("EndpointSlice", "labels")):
        if resource.kind == kind:
            is_changed |= new["metadata"].get(name) != old["metadata"].get(name)
    if is_changed:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def _status_update(resource: Resource, new: Plain, old: Plain, now: str) -> Plain:
    """Return the old object with the new status."""
    if resource.kind == "Pod":
        return prepare_pod_for_update(resource, new, old, "status")
    if "spec" in old:
        new["spec"] = old["spec"]
    metadata = new["metadata"]
    if resource.kind in _RESETS_METADATA_FOR_STATUS:
        new["metadata"] = with_metadata_of(new, old)
    if resource.kind == "Node" and get(old, "status", "config") is None:
        new["status"] = {name: one for name, one in new["status"].items() if name != "config"}
    if resource.kind == "Deployment":
        metadata.pop("labels", None)
        if "labels" in old["metadata"]:
            metadata["labels"] = old["metadata"]["labels"]
    if resource.kind == "PersistentVolume":
        new["status"] = _volume_status(new["status"], old["status"], now)
    return new


def _approval_update(new: Plain, old: Plain, now: str) -> Plain:
    """Return the old request for a certificate with the new conditions, which bear their times."""
    old_status = old.get("status") or {}
    since = {
        (one.get("type"), one.get("status")): one.get("lastTransitionTime")
        for one in reversed(old_status.get("conditions") or ())
    }
    conditions = [
        {
            **one,
            "lastUpdateTime": one.get("lastUpdateTime") or now,
            "lastTransitionTime": one.get("lastTransitionTime")
            or since.get((one.get("type"), one.get("status")))
            or now,
        }
        for one in (new.get("status") or {}).get("conditions") or ()
    ]
    return {**new, "spec": old["spec"], "status": {**old_status, "conditions": conditions}}


def _volume_status(new: Plain, old: Plain, now: str) -> Plain:
    """Return a volume's status with the time of its last change of phase."""
    time, old_time = new.get("lastPhaseTransitionTime"), old.get("lastPhaseTransitionTime")
    is_changed = new.get("phase") != old.get("phase")
    if is_changed and time in (None, old_time):
        time = now
    elif not is_changed and time is None:
        time = old_time
    return {**new, "lastPhaseTransitionTime": time} if time is not None else new


def _namespace_update(new: Plain, old: Plain, subresource: str) -> Plain:
    new["status"] = old["status"]
    if subresource != "finalize":
        new["spec"] = {**new["spec"]}
        new["spec"].pop("finalizers", None)
        if old["spec"].get("finalizers"):
            new["spec"]["finalizers"] = old["spec"]["finalizers"]
    labels = {**new["metadata"].get("labels", {}), _NAME_LABEL: new["metadata"]["name"]}
    new["metadata"]["labels"] = labels
    return new


def _create_namespace(_resource: Resource, obj: Plain) -> Plain:
    finalizers = list(obj["spec"].get("finalizers", ()))
    if _KUBERNETES not in finalizers:
        finalizers.append(_KUBERNETES)
    metadata = obj["metadata"]
    labels = {**metadata.get("labels", {}), _NAME_LABEL: metadata.get("name", "")}
    return {
        **obj,
        "metadata": {**metadata, "labels": labels},
        "spec": {**obj["spec"], "finalizers": finalizers},
        "status": {"phase": "Active"},
    }


def _create_node(_resource: Resource, obj: Plain) -> Plain:
    return _without_configuration(obj, {})


def _update_node(new: Plain, old: Plain) -> Plain:
    return _without_configuration(new, old)


def _without_configuration(node: Plain, old: Plain) -> Plain:
    """Return a node without the reference to its configuration, which is no longer read."""
    spec, status = node["spec"], node["status"]
    if get(old, "spec", "configSource") is None:
        spec = {name: one for name, one in spec.items() if name != "configSource"}
    if not old:
        status = {name: one for name, one in status.items() if name != "config"}
    return {**node, "spec": spec, "status": status}


def _create_volume(_resource: Resource, obj: Plain) -> Plain:
    now = obj["metadata"].get("creationTimestamp", "")
    return {**obj, "status": {"phase": "Pending", "lastPhaseTransitionTime": now}}


def _create_claim(_resource: Resource, obj: Plain) -> Plain:
    spec = _with_data_sources(obj["spec"], {})
    return {**obj, "spec": spec, "status": {"phase": "Pending"}}


def _update_claim(new: Plain, old: Plain) -> Plain:
    return {**new, "spec": _with_data_sources(new["spec"], old["spec"])}


def _with_data_sources(spec: Plain, old: Plain) -> Plain:
    """Return the specification of a claim with both forms of its data source."""
    spec = {**spec}
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and "dataSourceRef" not in old:
        spec.pop("dataSourceRef")
        reference = None
    if source is not None and reference is None and "dataSource" not in old:
        what = (source.get("apiGroup") or "", source.get("kind"))
        if what not in (("", "PersistentVolumeClaim"), (_SNAPSHOT_GROUP, "VolumeSnapshot")):
            spec.pop("dataSource")
            source = None
    if source is not None and reference is None:
        spec["dataSourceRef"] = {**source}
    elif reference is not None and source is None and not reference.get("namespace"):
        names = ("apiGroup", "kind", "name")
        spec["dataSource"] = {name: reference[name] for name in names if name in reference}
    return spec


def _with_template_generation(obj: Plain, generation: int) -> Plain:
    metadata = obj["metadata"]
    annotations = {**metadata.get("annotations", {}), _TEMPLATE_GENERATION: str(generation)}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _template_generation(obj: Plain) -> int:
    text = obj["metadata"].get("annotations", {}).get(_TEMPLATE_GENERATION, "")
    return parse_int64(text) or 0


def _create_daemon_set(_resource: Resource, obj: Plain) -> Plain:
    return _with_template_generation(obj, max(_template_generation(obj), 1))


def _update_daemon_set(new: Plain, old: Plain) -> Plain:
    is_changed = new["spec"].get("template") != old["spec"].get("template")
    return _with_template_generation(new, _template_generation(old) + is_changed)


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


def _update_secret(new: Plain, old: Plain) -> Plain:
    return new if new.get("type") else {**new, "type": old.get("type", "")}


_ON_CREATE: Final[Mapping[str, Callable[[Resource, Plain], Plain]]] = {
    # Its status begins with the version that is stored, which is a default.
    "CustomResourceDefinition": with_defaults,
    "DaemonSet": _create_daemon_set,
    "Job": _create_job,
    "Namespace": _create_namespace,
    "Node": _create_node,
    "PersistentVolume": _create_volume,
    "PersistentVolumeClaim": _create_claim,
    "Pod": prepare_pod_for_create,
}
_ON_UPDATE: Final[Mapping[str, Callable[[Plain, Plain], Plain]]] = {
    "DaemonSet": _update_daemon_set,
    "Node": _update_node,
    "PersistentVolumeClaim": _update_claim,
    "Secret": _update_secret,
    "Service": without_fields_of_old_type,
}
