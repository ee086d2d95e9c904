"""Persistent volume claims: what they ask for, and what of it may change.

Upstream: pkg/apis/core/validation/validation.go (ValidatePersistentVolumeClaim*, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubesched.api.label_format import label_key_errors
from kubesched.api.quantity import parse_quantity
from kubesched.api.resource_names import is_native_resource
from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.names import dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain, deep_copy, get, put
from kubesched.apiserver.schema import ObjectType, type_of
from kubesched.apiserver.validation.internal_form import difference
from kubesched.apiserver.validation.labels import selector_faults
from kubesched.apiserver.validation.metadata import (
    IMMUTABLE,
    NOT_NEGATIVE,
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
POSITIVE: Final = "must be greater than zero"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_GROUP: Final = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
_IMMUTABLE_SPEC: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)
_RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_STORAGE: Final = ("spec", "resources", "requests", "storage")


def access_mode_faults(modes: Sequence[str], path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the ways to use a volume."""
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported(path, mode, ACCESS_MODES)
    others = [mode for mode in modes if mode in ACCESS_MODES[:3]]
    if "ReadWriteOncePod" in modes and others:
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def claim_spec_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with what a claim asks for."""
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector_faults(spec.get("selector"), f"{path}.selector")
    yield from access_mode_faults(modes, f"{path}.accessModes")
    storage = (spec["resources"].get("requests") or {}).get("storage")
    if storage is None:
        yield required(f"{path}.resources[storage]")
    elif parse_quantity(storage).sign <= 0:
        yield invalid(f"{path}.resources[storage]", storage, POSITIVE)
    name = spec.get("storageClassName")
    if name:
        yield from each(f"{path}.storageClassName", name, dns_subdomain(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        yield not_supported(f"{path}.volumeMode", mode, VOLUME_MODES)
    yield from _data_source_faults(spec, path)
    name = spec.get("volumeAttributesClassName")
    if name:
        yield from each(f"{path}.volumeAttributesClassName", name, dns_subdomain(name))


def _data_source_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, one in (("dataSource", source), ("dataSourceRef", reference)):
        if one is not None:
            yield from _one_source_faults(one, f"{path}.{field}")
    if source is None or reference is None:
        return
    # Upstream shows the path itself, which has nothing that could be shown.
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        yield invalid(path, {}, detail)
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        yield invalid(path, {}, "must match dataSourceRef")


def _one_source_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    for name in ("name", "kind"):
        if not source[name]:
            yield required(f"{path}.{name}")
    group = source.get("apiGroup") or ""
    if not group and source["kind"] != "PersistentVolumeClaim":
        yield invalid(path, source["kind"], _DEFAULT_GROUP)
    if group:
        yield from each(f"{path}.apiGroup", group, dns_subdomain(group))
    namespace = source.get("namespace")
    if namespace:
        yield from each(f"{path}.namespace", namespace, dns_label(namespace))


def new_claim_faults(claim: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new claim."""
    yield from metadata_faults(claim["metadata"], True, dns_subdomain)
    yield from claim_spec_faults(claim["spec"], "spec")


def claim_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a claim."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from new_claim_faults(new)
    before, after = deep_copy(old), deep_copy(new)
    is_bound = get(new, "status", "phase") == "Bound"
    if not before["spec"].get("volumeName") and after["spec"].get("volumeName"):
        before["spec"]["volumeName"] = after["spec"]["volumeName"]
    yield from _class_faults(before, after)
    if is_bound and after["spec"]["resources"].get("requests"):
        put(after, *_STORAGE, to=get(old, *_STORAGE) or "0")
    if is_bound:
        _take(after["spec"], before["spec"], "volumeAttributesClassName")
    if not _spec_type().is_equal(after["spec"], before["spec"]):
        shown = difference("core/PersistentVolumeClaimSpec", before["spec"], after["spec"])
        yield forbidden("spec", f"{_IMMUTABLE_SPEC}\n{shown}")
    yield from _size_faults(new, old)
    mode = new["spec"].get("volumeMode")
    yield from immutable_faults(mode, old["spec"].get("volumeMode"), "volumeMode")
    yield from _attributes_class_faults(new, old)


def _spec_type() -> ObjectType:
    claim_type = type_of("", "v1", "PersistentVolumeClaim")
    assert claim_type is not None, "the fields of claims are known"
    spec_type = claim_type.fields["spec"].type
    assert isinstance(spec_type, ObjectType), "specifications are objects"
    return spec_type


def _take(spec: Plain, other: Plain, name: str) -> None:
    spec.pop(name, None)
    if name in other:
        spec[name] = other[name]


def _class_faults(before: Plain, after: Plain) -> Iterator[FieldFault]:
    """Yield a change of the class; that it moves from the annotation to the field is none."""
    old, new = (one["metadata"].get("annotations", {}) for one in (before, after))
    old_name, new_name = (one["spec"].get("storageClassName") for one in (before, after))
    annotated = old.get(_CLASS_ANNOTATION)
    is_moved = annotated is not None and old_name is None and new_name == annotated
    if is_moved and new.get(_CLASS_ANNOTATION, annotated) == annotated:
        after["spec"].pop("storageClassName")
        return
    if new.get(_CLASS_ANNOTATION, "") != old.get(_CLASS_ANNOTATION, ""):
        field = f"metadata.annotations[{_CLASS_ANNOTATION}]"
        yield invalid(field, new.get(_CLASS_ANNOTATION, ""), IMMUTABLE)
    if new_name is not None and old_name is None and annotated in (None, new_name):
        after["spec"].pop("storageClassName")


def _size_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    size, before = (parse_quantity(get(one, *_STORAGE) or "0") for one in (new, old))
    actual = parse_quantity(get(old, "status", "capacity", "storage") or "0")
    if size.compare(before) < 0 and size.compare(actual) <= 0:
        field = "spec.resources.requests.storage"
        yield forbidden(field, "field can not be less than status.capacity")


def _attributes_class_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    name = new["spec"].get("volumeAttributesClassName")
    current = get(old, "status", "currentVolumeAttributesClassName")
    if name == old["spec"].get("volumeAttributesClassName") or current is None or name:
        return
    what = "nil" if name is None else "empty string"
    detail = (
        f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    )
    yield forbidden("spec.volumeAttributesClassName", detail)


def claim_status_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a claim's status."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    if not new["metadata"].get("resourceVersion"):
        yield required("resourceVersion")
    if not new["spec"].get("accessModes"):
        yield required("Spec.accessModes")
    status: dict[str, Any] = new["status"]
    for name, quantity in (status.get("capacity") or {}).items():
        yield from basic_quantity_faults(quantity, f"status.capacity[{name}]")
    path = "status.allocatedResourceStatuses"
    for name, value in (status.get("allocatedResourceStatuses") or {}).items():
        yield from _resource_key_faults(name, path)
        if value not in _RESIZE_STATUSES:
            yield not_supported(path, name, _RESIZE_STATUSES)
    path = "status.allocatedResources"
    for name, quantity in (status.get("allocatedResources") or {}).items():
        faults = list(_resource_key_faults(name, path))
        yield from faults or basic_quantity_faults(quantity, f"{path}[{name}]")


def basic_quantity_faults(quantity: str, path: str) -> list[FieldFault]:
    """Return what is wrong with a size: it may not be negative."""
    value = parse_quantity(quantity).value()
    return [invalid(path, value, "must be a valid resource quantity")] if value < 0 else []


def _resource_key_faults(name: str, path: str) -> Iterator[FieldFault]:
    errors = label_key_errors(name)
    yield from each(path, name, errors)
    if not errors and is_native_resource(name) and name != "storage":
        yield not_supported(path, name, ("storage",))


__all__ = [
    "ACCESS_MODES",
    "NOT_NEGATIVE",
    "POSITIVE",
    "VOLUME_MODES",
    "access_mode_faults",
    "basic_quantity_faults",
    "claim_spec_faults",
    "claim_status_faults",
    "claim_update_faults",
    "new_claim_faults",
]
