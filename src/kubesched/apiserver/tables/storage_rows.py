"""The rows of volumes, claims, classes and drivers, and of devices.

Upstream: pkg/printers/internalversion/printers.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.tables.texts import NONE, UNSET, age, name_of, since

__all__ = [
    "attachment_cells",
    "attributes_class_cells",
    "capacity_cells",
    "claim_cells",
    "class_cells",
    "csi_driver_cells",
    "csi_node_cells",
    "resource_claim_cells",
    "resource_slice_cells",
    "taint_rule_cells",
    "volume_cells",
]

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def volume_cells(volume: Plain, now: datetime) -> list[Any]:
    """Return the cells of a persistent volume."""
    spec, status = volume.get("spec") or {}, volume.get("status") or {}
    claim = spec.get("claimRef")
    return [
        name_of(volume),
        _storage(spec.get("capacity")),
        _access_modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(volume),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_of(volume),
        _or_unset(spec, "volumeAttributesClassName"),
        status.get("reason", ""),
        age(volume, now),
        _or_unset(spec, "volumeMode"),
    ]


def claim_cells(claim: Plain, now: datetime) -> list[Any]:
    """Return the cells of a persistent volume claim."""
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    is_bound = bool(spec.get("volumeName"))
    return [
        name_of(claim),
        _phase(claim),
        spec.get("volumeName", ""),
        _storage(status.get("capacity")) if is_bound else "",
        _access_modes(status) if is_bound else "",
        _class_of(claim),
        _or_unset(spec, "volumeAttributesClassName"),
        age(claim, now),
        _or_unset(spec, "volumeMode"),
    ]


def _storage(amounts: Plain | None) -> str:
    return str((amounts or {}).get("storage", "0"))


def _access_modes(value: Plain) -> str:
    modes = value.get("accessModes") or ()
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _phase(value: Plain) -> str:
    if get(value, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(get(value, "status", "phase") or "")


def _class_of(value: Plain) -> str:
    annotations = get(value, "metadata", "annotations") or {}
    if _CLASS_ANNOTATION in annotations:
        return str(annotations[_CLASS_ANNOTATION])
    return str(get(value, "spec", "storageClassName") or "")


def _or_unset(value: Plain, name: str) -> str:
    found = value.get(name)
    return UNSET if found is None else str(found)


def class_cells(storage_class: Plain, now: datetime) -> list[Any]:
    """Return the cells of a storage class."""
    annotations = get(storage_class, "metadata", "annotations") or {}
    is_default = any(annotations.get(name) == "true" for name in _DEFAULT_ANNOTATIONS)
    return [
        name_of(storage_class) + (" (default)" if is_default else ""),
        storage_class.get("provisioner", ""),
        storage_class.get("reclaimPolicy", "Delete"),
        storage_class.get("volumeBindingMode", "Immediate"),
        bool(storage_class.get("allowVolumeExpansion")),
        age(storage_class, now),
    ]


def attributes_class_cells(attributes_class: Plain, now: datetime) -> list[Any]:
    """Return the cells of a volume attributes class."""
    driver = attributes_class.get("driverName", "")
    return [name_of(attributes_class), driver, age(attributes_class, now)]


def attachment_cells(attachment: Plain, now: datetime) -> list[Any]:
    """Return the cells of a volume attachment."""
    spec = attachment.get("spec") or {}
    return [
        name_of(attachment),
        spec.get("attacher", ""),
        get(spec, "source", "persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool(get(attachment, "status", "attached")),
        age(attachment, now),
    ]


def csi_node_cells(node: Plain, now: datetime) -> list[Any]:
    """Return the cells of a node's drivers."""
    return [name_of(node), len(get(node, "spec", "drivers") or ()), age(node, now)]


def csi_driver_cells(driver: Plain, now: datetime) -> list[Any]:
    """Return the cells of a driver."""
    spec = driver.get("spec") or {}
    requests = spec.get("tokenRequests")
    audiences = ",".join(one.get("audience", "") for one in requests or ())
    return [
        name_of(driver),
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else audiences,
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(driver, now),
    ]


def capacity_cells(capacity: Plain, now: datetime) -> list[Any]:
    """Return the cells of a driver's capacity; they have no age."""
    return [
        name_of(capacity),
        capacity.get("storageClassName", ""),
        _or_unset(capacity, "capacity"),
    ]


def resource_claim_cells(claim: Plain, now: datetime) -> list[Any]:
    """Return the cells of a claim of devices."""
    is_deleted = bool(get(claim, "metadata", "deletionTimestamp"))
    is_allocated = get(claim, "status", "allocation") is not None
    is_reserved = is_allocated and bool(get(claim, "status", "reservedFor"))
    states = {
        "deleted": is_deleted,
        "pending": not is_allocated and not is_deleted,
        "allocated": is_allocated,
        "reserved": is_reserved,
    }
    shown = ",".join(state for state, holds in states.items() if holds)
    return [name_of(claim), shown, age(claim, now)]


def resource_slice_cells(resource_slice: Plain, now: datetime) -> list[Any]:
    """Return the cells of a slice of devices."""
    spec = resource_slice.get("spec") or {}
    return [
        name_of(resource_slice),
        spec.get("nodeName") or "",
        spec.get("driver", ""),
        get(spec, "pool", "name") or "",
        age(resource_slice, now),
    ]


def taint_rule_cells(rule: Plain, now: datetime) -> list[Any]:
    """Return the cells of a rule that taints devices."""
    taint = get(rule, "spec", "taint") or {}
    added = taint.get("timeAdded")
    return [
        name_of(rule),
        taint.get("key", ""),
        taint.get("value", ""),
        taint.get("effect", ""),
        since(added, now) if added else "",
        age(rule, now),
    ]
