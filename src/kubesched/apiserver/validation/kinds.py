"""Hand-written rules of other kinds that scheduling reads, and of workloads.

Upstream: pkg/apis/*/validation/validation.go (v1.36)
Differs:  of kinds that are not here, only the rules of the tables are checked. Expressions in
          device selectors are not compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from kubesched.api.field_errors import NOT_FOUND
from kubesched.api.meta import LabelSelector
from kubesched.api.names import is_native_resource, label_key_errors
from kubesched.api.quantity import parse_quantity
from kubesched.api.selectors import matches_label_selector, matches_set
from kubesched.api.well_known import RBAC_GROUP, SYSTEM_CLASSES
from kubesched.apiserver.amounts import check_amount, check_overhead
from kubesched.apiserver.plain import Plain, entries, get, with_fields_of, without
from kubesched.apiserver.schema import known_type
from kubesched.apiserver.status import FieldErrors
from kubesched.apiserver.validation import pod_updates
from kubesched.apiserver.validation.metadata import check_finalizer
from kubesched.apiserver.validation.pods import VOLUME_SOURCES, check_new_pod, check_taints, one_of
from kubesched.apiserver.validation.rules import POSITIVE, Check

UpdateCheck: TypeAlias = Callable[[Plain, Plain, FieldErrors], None]
"""Adds what is wrong with a change from an older to a newer object: new, old, errors."""

# Nodes.


def _check_node(node: Plain, path: str, errors: FieldErrors) -> None:
    check_taints(node["spec"], errors)
    status = node.get("status") or {}
    for kind in ("capacity", "allocatable"):
        for name, quantity in (status.get(kind) or {}).items():
            check_amount(name, quantity, f"status.{kind}.{name}", errors)


def _check_node_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    errors.repeated(entries(new.get("status") or {}, "status", "addresses"))
    for name, shown in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        before = old["spec"].get(name)
        if before and new["spec"].get(name) != before:
            detail = f'node updates may not change {shown} except from "" to valid'
            errors.forbidden(f"spec.{name}", detail)
    if new["spec"].get("externalID", "") != old["spec"].get("externalID", ""):
        errors.forbidden("spec.externalID", "may not be updated")


# Disruption budgets, priority classes, runtime classes, namespaces.


def _check_budget(spec: Plain, path: str, errors: FieldErrors) -> None:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        errors.invalid(path, spec, "minAvailable and maxUnavailable cannot be both set")


_USER_VALUE_MAX: Final = 1_000_000_000
_RESERVED: Final = (
    "priority class names with 'system-' prefix are reserved for system use only. error: "
)


def _check_new_priority_class(priority_class: Plain, errors: FieldErrors) -> None:
    name, value = priority_class["metadata"].get("name", ""), priority_class["value"]
    why = ""
    if not name.startswith("system-"):
        if value > _USER_VALUE_MAX:
            detail = f"maximum allowed value of a user defined priority is {_USER_VALUE_MAX}"
            errors.forbidden("value", detail)
    elif name not in SYSTEM_CLASSES:
        why = f"{name} is not a known system priority class"
    elif value != SYSTEM_CLASSES[name]:
        why = f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    elif priority_class.get("globalDefault"):
        why = f"globalDefault of {name} PriorityClass must be false"
    if why:
        errors.forbidden("metadata.name", f"{_RESERVED}{why}")


def _check_priority_class_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    if new["value"] != old["value"]:
        errors.forbidden("value", "may not be changed in an update.")


def _check_runtime_class(runtime_class: Plain, path: str, errors: FieldErrors) -> None:
    if fixed := (runtime_class.get("overhead") or {}).get("podFixed"):
        check_overhead(fixed, "overhead", errors)


def _check_namespace_spec(spec: Plain, path: str, errors: FieldErrors) -> None:
    for name in spec.get("finalizers") or ():
        check_finalizer(name, f"{path}.finalizers", errors)


# Claims, volumes and classes.

_IMMUTABLE_SPEC: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


def _check_claim_spec(spec: Plain, path: str, errors: FieldErrors) -> None:
    _check_access_modes(spec, path, errors)
    storage = (spec["resources"].get("requests") or {}).get("storage")
    if storage is None:
        errors.required(f"{path}.resources[storage]")
    elif parse_quantity(storage).sign <= 0:
        errors.invalid(f"{path}.resources[storage]", storage, POSITIVE)


def _check_access_modes(spec: Plain, path: str, errors: FieldErrors) -> None:
    modes = spec.get("accessModes") or ()
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        errors.forbidden(f"{path}.accessModes", "ReadWriteOncePod excludes other modes")


def _check_claim_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    before = old["spec"]
    changeable = [name for name in ("storageClassName", "volumeName") if name not in before]
    if get(new, "status", "phase") == "Bound":
        changeable += ("resources", "volumeAttributesClassName")
    after = with_fields_of(new["spec"], before, *changeable)
    if not known_type("core_v1", "PersistentVolumeClaimSpec").is_equal(after, before):
        errors.forbidden("spec", _IMMUTABLE_SPEC)
    errors.changed("volumeMode", new["spec"].get("volumeMode"), before.get("volumeMode"))
    path = ("resources", "requests", "storage")
    size, old_size = (parse_quantity(get(one["spec"], *path) or "0") for one in (new, old))
    actual = parse_quantity(get(old, "status", "capacity", "storage") or "0")
    if size.compare(old_size) < 0 and size.compare(actual) <= 0:
        field = "spec.resources.requests.storage"
        errors.forbidden(field, "field can not be less than status.capacity")


_RESIZE_STATUSES: Final = (
    *("ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress"),
    *("NodeResizeInfeasible", "NodeResizePending"),
)


def _check_claim_status(status: Plain, path: str, errors: FieldErrors) -> None:
    for kind in ("capacity", "allocatedResources"):
        for name, quantity in (status.get(kind) or {}).items():
            if parse_quantity(quantity).value() < 0:
                at, value = f"{path}.{kind}[{name}]", parse_quantity(quantity).value()
                errors.invalid(at, value, "must be a valid resource quantity")
    for kind in ("allocatedResources", "allocatedResourceStatuses"):
        for name in status.get(kind) or ():
            wrong = label_key_errors(name)
            errors.each(f"{path}.{kind}", name, wrong)
            if not wrong and is_native_resource(name) and name != "storage":
                errors.not_supported(f"{path}.{kind}", name, ("storage",))
    for name, value in (status.get("allocatedResourceStatuses") or {}).items():
        if value not in _RESIZE_STATUSES:
            errors.not_supported(f"{path}.allocatedResourceStatuses", name, _RESIZE_STATUSES)


_check_source: Final = one_of("volume type", VOLUME_SOURCES)


def _check_volume(spec: Plain, path: str, errors: FieldErrors) -> Sequence[str] | None:
    surplus = _check_source(spec, path, errors)
    capacity = spec.get("capacity") or {}
    if list(capacity) != ["storage"]:
        errors.not_supported(f"{path}.capacity", capacity, ("storage",))
    for name, quantity in capacity.items():
        if parse_quantity(quantity).sign <= 0:
            errors.invalid(f"{path}.capacity[{name}]", quantity, POSITIVE)
    _check_access_modes(spec, path, errors)
    if spec.get("local") is not None and spec.get("nodeAffinity") is None:
        errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    return surplus


def _check_volume_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    spec, before = new["spec"], old["spec"]
    reference = "controllerExpandSecretRef"
    if before.get("csi") is not None and before["csi"].get(reference) is None:
        # It may be added.
        spec = {**spec, "csi": without(spec.get("csi") or {}, reference)}
    errors.changed("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    if any(spec.get(name) != before.get(name) for name in VOLUME_SOURCES):
        errors.forbidden("spec.persistentvolumesource", "is immutable after creation")
    if before.get("nodeAffinity") is not None:
        errors.changed("nodeAffinity", spec.get("nodeAffinity"), before["nodeAffinity"])


# Claims on devices, and slices of them.


def _check_device_request(request: Plain, path: str, errors: FieldErrors) -> None:
    given = _check_one_of(request, ("exactly", "firstAvailable"), path, errors)
    for name in given if len(given) > 1 else ():
        errors.drop(f"{path}.{name}")


def _check_slice(spec: Plain, path: str, errors: FieldErrors) -> None:
    names = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    _check_one_of(spec, names, path, errors)
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name) is False:
            errors.invalid(f"{path}.{name}", False, "must be either unset or set to true")


def _check_one_of(
    value: Plain, names: Sequence[str], path: str, errors: FieldErrors
) -> Sequence[str]:
    """Add a field error unless exactly one of some fields is given; return those that are."""
    given = [name for name in names if value.get(name)]
    rule = f"exactly one of {', '.join(names)} is required"
    if not given:
        errors.required(path, rule)
    elif len(given) > 1:
        errors.invalid(path, None, rule)
    return given


# Workloads: their selector takes the pods of their template.

_NO_MATCH: Final = "`selector` does not match template `labels`"


def _check_workload(spec: Plain, path: str, errors: FieldErrors) -> None:
    selector, labels = spec.get("selector"), get(spec, "template", "metadata", "labels") or {}
    if isinstance(selector, dict) and not any(selector.values()):
        errors.invalid(f"{path}.selector", selector, "empty selector is invalid for deployment")
    elif any(error.path.startswith(f"{path}.selector.") for error in errors):
        errors.drop(f"{path}.template")
        errors.invalid(f"{path}.selector", selector, "invalid label selector")
        return
    elif selector is None or not matches_label_selector(
        msgspec.convert(selector, LabelSelector), labels
    ):
        errors.invalid(f"{path}.template.metadata.labels", labels or None, _NO_MATCH)
    _check_restarts(spec, path, errors)


def _check_controller(spec: Plain, path: str, errors: FieldErrors) -> None:
    """Add field errors for a replication controller, whose selector is a map."""
    selector, labels = spec.get("selector"), get(spec, "template", "metadata", "labels") or {}
    if not selector:
        errors.required(f"{path}.selector")
    elif not matches_set(selector, labels):
        errors.invalid(f"{path}.template.metadata.labels", labels or None, _NO_MATCH)
    _check_restarts(spec, path, errors)


def _check_restarts(spec: Plain, path: str, errors: FieldErrors) -> None:
    policy = get(spec, "template", "spec", "restartPolicy") or ""
    if policy != "Always":
        errors.not_supported(f"{path}.template.spec.restartPolicy", policy, ("Always",))


def _check_set(spec: Plain, path: str, errors: FieldErrors) -> None:
    _check_workload(spec, path, errors)
    # Containers mount the volumes of claim templates, which pods get when they are created.
    claims = [one["metadata"].get("name") for one in spec.get("volumeClaimTemplates") or ()]
    errors[:] = [
        error
        for error in errors
        if not (
            error.reason == NOT_FOUND
            and error.value in claims
            and error.path.startswith(f"{path}.template.spec.")
        )
    ]


def _check_job(spec: Plain, path: str, errors: FieldErrors) -> None:
    # Jobs get a selector when they are created; the template of a cron job has none yet.
    if path == "spec" and not spec.get("selector"):
        errors.required(f"{path}.selector")
    if spec.get("completionMode") == "Indexed":
        if spec.get("completions") is None:
            errors.required(f"{path}.completions", "when completion mode is Indexed")
    elif (limit := spec.get("backoffLimitPerIndex")) is not None:
        errors.invalid(f"{path}.backoffLimitPerIndex", limit, "requires indexed completion mode")
    policy = get(spec, "template", "spec", "restartPolicy")
    at = f"{path}.template.spec.restartPolicy"
    if policy in (None, "", "Always"):
        # It may not have been given: Always is the default of pods.
        errors.required(at, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        errors.not_supported(at, policy, ("OnFailure", "Never"))


def _check_job_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    before, after = (one["spec"]["template"] for one in (old, new))
    at, name = "spec.template", "PodTemplateSpec"
    if old["spec"].get("suspend") and not get(old, "status", "active"):
        # Queues such as Kueue's may still say where its pods run.
        at, name = "spec.template.spec", "PodSpec"
        before, after = (_without_placement(one["spec"]) for one in (before, after))
    if not known_type("core_v1", name).is_equal(after, before):
        errors.invalid(at, after, "field is immutable")


def _without_placement(spec: Plain) -> Plain:
    """Return a pod's spec without the fields that say where it may run and what it requests."""
    fixed = without(spec, "nodeSelector", "schedulingGates", "tolerations")
    fixed["affinity"] = without(spec.get("affinity") or {}, "nodeAffinity") or None
    for kind in ("containers", "initContainers"):
        fixed[kind] = [without(one, "resources") for one in spec.get(kind) or ()]
    return fixed


_SET_FIELDS: Final = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)


def _check_set_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    after = with_fields_of(new["spec"], old["spec"], *_SET_FIELDS)
    if not known_type("apps_v1", "StatefulSetSpec").is_equal(after, old["spec"]):
        *others, last = [f"'{name}'" for name in _SET_FIELDS]
        named = f"fields other than {', '.join(others)} and {last}"
        errors.forbidden("spec", f"updates to statefulset spec for {named} are forbidden")


# Roles and who has them.


def _check_subject(subject: Plain, path: str, errors: FieldErrors) -> None:
    expected = "" if subject["kind"] == "ServiceAccount" else RBAC_GROUP
    group = subject.get("apiGroup", "")
    if group != expected:
        errors.not_supported(f"{path}.apiGroup", group, (expected,))


def _check_cluster_binding(binding: Plain, _path: str, errors: FieldErrors) -> None:
    for index, subject in enumerate(binding.get("subjects") or ()):
        if subject["kind"] == "ServiceAccount" and not subject.get("namespace"):
            errors.required(f"subjects[{index}].namespace")


# Events, services and custom resources.


_OF_EVENTS: Final = {
    "regarding": "involvedObject",
    "note": "message",
    **{name: name for name in ("reason", "type", "eventTime", "action", "related")},
    **{name: name for name in ("reportingController", "reportingInstance")},
}
"""Fields of newer events that stay, and upstream's names for them."""


def _check_event_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    for name, shown in _OF_EVENTS.items() if new["apiVersion"] != "v1" else ():
        errors.changed(shown, new.get(name), old.get(name))


def _check_service(spec: Plain, path: str, errors: FieldErrors) -> None:
    is_bare = spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None"
    if not spec.get("ports") and not is_bare:
        errors.required(f"{path}.ports")


def _check_event(event: Plain, errors: FieldErrors) -> None:
    is_newer = event["apiVersion"] != "v1"
    about: Plain = event.get("regarding" if is_newer else "involvedObject") or {}
    other, own = about.get("namespace", ""), event["metadata"].get("namespace", "")
    has_time = bool(event.get("eventTime"))
    allowed = ("default", "kube-system") if has_time else ("", "default")
    if own not in allowed if not other else (own != other and not has_time):
        errors.invalid("involvedObject.namespace", other, "does not match event.namespace")
    if is_newer and not has_time:
        errors.required("eventTime")
    if is_newer and event.get("type") not in ("Normal", "Warning"):
        errors.invalid("type", event.get("type", ""), "must be Normal or Warning")
    if not has_time:
        return
    reporter = "reportingController" if is_newer else "reportingComponent"
    for name in (reporter, "reportingInstance", "action", "reason"):
        if not event.get(name):
            errors.required(name)
    errors.each(reporter, event.get(reporter, ""), label_key_errors(event.get(reporter, "")))
    if len(str(event.get("note") or event.get("message") or "").encode()) > 1024:
        errors.invalid("message", "", "can have at most 1024 characters")


def _check_definition(definition: Plain, errors: FieldErrors) -> None:
    spec = definition["spec"]
    wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"
    name = definition["metadata"].get("name", "")
    if name != wanted:
        errors.invalid("metadata.name", name, f"must be {wanted}")
    stored = [one for one in spec.get("versions") or () if one.get("storage")]
    if len(stored) != 1:
        errors.invalid("spec.versions", spec.get("versions"), "must have one storage version")


def _check_fixed(new: Plain, old: Plain, errors: FieldErrors) -> None:
    """Add field errors for changes of an immutable ConfigMap or Secret."""
    for name in ("immutable", "data", "binaryData") if old.get("immutable") else ():
        if new.get(name) != old.get(name):
            errors.forbidden(name, "field is immutable when `immutable` is set")


CHECKS: Final[Mapping[str, Check]] = {
    "batch_v1/JobSpec": _check_job,
    "core_v1/NamespaceSpec": _check_namespace_spec,
    "core_v1/Node": _check_node,
    "core_v1/PersistentVolumeClaimSpec": _check_claim_spec,
    "core_v1/PersistentVolumeClaimStatus": _check_claim_status,
    "core_v1/PersistentVolumeSpec": _check_volume,
    "core_v1/ServiceSpec": _check_service,
    "core_v1/ServiceStatus": lambda *_: ("conditions",),  # which upstream does not check
    "node_v1/RuntimeClass": _check_runtime_class,
    "policy_v1/PodDisruptionBudgetSpec": _check_budget,
    "rbac_v1/ClusterRoleBinding": _check_cluster_binding,
    "rbac_v1/Subject": _check_subject,
    "resource_v1/ResourceSliceSpec": _check_slice,
}
"""What is wrong with an object of a type, wherever it stands."""
LATE_CHECKS: Final[Mapping[str, Check]] = {
    "apps_v1/DaemonSetSpec": _check_workload,
    "apps_v1/DeploymentSpec": _check_workload,
    "apps_v1/ReplicaSetSpec": _check_workload,
    "apps_v1/StatefulSetSpec": _check_set,
    "core_v1/ReplicationControllerSpec": _check_controller,
    "resource_v1/DeviceRequest": _check_device_request,
}
"""The same, for what depends on errors in its parts."""
NEW_CHECKS: Final[Mapping[str, Callable[[Plain, FieldErrors], None]]] = {
    "CustomResourceDefinition": _check_definition,
    "Event": _check_event,
    "Pod": check_new_pod,
    "PriorityClass": _check_new_priority_class,
}
"""What is wrong with a new object of a kind, besides."""
UPDATE_CHECKS: Final[Mapping[tuple[str, str], UpdateCheck]] = {
    ("ConfigMap", ""): _check_fixed,
    ("Event", ""): _check_event_update,
    ("Job", ""): _check_job_update,
    ("Node", ""): _check_node_update,
    ("Node", "status"): _check_node_update,
    ("PersistentVolume", ""): _check_volume_update,
    ("PersistentVolumeClaim", ""): _check_claim_update,
    ("Pod", ""): pod_updates.check_pod_update,
    ("Pod", "resize"): pod_updates.check_resize,
    ("Pod", "status"): pod_updates.check_status_update,
    ("PriorityClass", ""): _check_priority_class_update,
    ("Secret", ""): _check_fixed,
    ("StatefulSet", ""): _check_set_update,
}
"""What is wrong with a change of an object of a kind, through a subresource or not."""
