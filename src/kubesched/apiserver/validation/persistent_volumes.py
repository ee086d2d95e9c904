"""Persistent volumes: what is wrong with new ones, and with changes of them.

Upstream: pkg/apis/core/validation/validation.go (ValidatePersistentVolume*, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from posixpath import normpath
from typing import Final

from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.names import dns_subdomain
from kubesched.apiserver.plain import Plain, deep_copy, get
from kubesched.apiserver.validation.claims import (
    POSITIVE,
    VOLUME_MODES,
    access_mode_faults,
    basic_quantity_faults,
)
from kubesched.apiserver.validation.internal_form import difference, internal_form
from kubesched.apiserver.validation.metadata import (
    IMMUTABLE,
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.node_selectors import node_selector_faults
from kubesched.apiserver.validation.volume_sources import PERSISTENT_SOURCES, source_faults

_ORDER: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_NEWER_LABELS: Final = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}


def new_volume_faults(volume: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new volume."""
    yield from metadata_faults(volume["metadata"], False, dns_subdomain)
    yield from _spec_faults(volume["spec"], "spec")


def _spec_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required(f"{path}.accessModes")
    yield from access_mode_faults(modes, f"{path}.accessModes")
    yield from _capacity_faults(spec.get("capacity") or {}, f"{path}.capacity")
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and policy not in _RECLAIM_POLICIES:
        yield not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        field = f"{path}.nodeAffinity.required"
        if affinity.get("required") is None:
            yield required(field, "must specify required node constraints")
        else:
            yield from node_selector_faults(affinity["required"], field)
    yield from _source_faults(spec, path)
    name = spec.get("storageClassName", "")
    if name:
        yield from each(f"{path}.storageClassName", name, dns_subdomain(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        yield not_supported(f"{path}.volumeMode", mode, VOLUME_MODES)
    yield from _attributes_class_faults(spec, path)


def _capacity_faults(capacity: Plain, path: str) -> Iterator[FieldFault]:
    if not capacity:
        yield required(path)
    if list(capacity) != ["storage"]:
        yield not_supported(path, capacity, ("storage",))
    for name, quantity in capacity.items():
        yield from basic_quantity_faults(quantity, f"{path}[{name}]")
        if parse_quantity(quantity).sign <= 0:
            yield invalid(f"{path}[{name}]", quantity, POSITIVE)


def _source_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    given = [name for name in _ORDER if spec.get(name) is not None]
    yield from source_faults(given, PERSISTENT_SOURCES, spec, path)
    if given[:1] == ["local"] and spec.get("nodeAffinity") is None:
        yield required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    is_root = "hostPath" in given and normpath(spec["hostPath"]["path"]) == "/"
    if is_root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden(f"{path}.persistentVolumeReclaimPolicy", detail)


def _attributes_class_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    field = f"{path}.volumeAttributesClassName"
    if name:
        yield from each(field, name, dns_subdomain(name))
    else:
        yield required(field, "an empty string is disallowed")
    if spec.get("csi") is None:
        yield required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def volume_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a volume."""
    # Once for a change of any volume, and once more, as upstream has it.
    yield from new_volume_faults(new)
    spec, before = deep_copy(new["spec"]), old["spec"]
    reference = "controllerExpandSecretRef"
    if get(before, "csi") is not None and get(before, "csi", reference) is None:
        (spec.get("csi") or {}).pop(reference, None)
    sources, old_sources = _sources(spec), _sources(before)
    if sources != old_sources:
        shown = difference("core/PersistentVolumeSource", old_sources, sources)
        detail = f"spec.persistentvolumesource is immutable after creation\n{shown}"
        yield forbidden("spec.persistentvolumesource", detail)
    yield from immutable_faults(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
    yield from _affinity_faults(spec.get("nodeAffinity"), before.get("nodeAffinity"))
    name = "volumeAttributesClassName"
    if before.get(name) is not None and spec.get(name) is None:
        yield forbidden(f"spec.{name}", "update from non-nil value to nil is forbidden")


def _sources(spec: Plain) -> Plain:
    return {name: spec[name] for name in _ORDER if spec.get(name) is not None}


def _affinity_faults(new: Plain | None, old: Plain | None) -> Iterator[FieldFault]:
    """Yield a change of the nodes, unless labels only got their newer names."""
    if old is None or new == old or _is_renamed(new, old):
        return
    shown = None if new is None else internal_form("core/VolumeNodeAffinity", new)
    detail = f"{IMMUTABLE}, except for updating from beta label to GA"
    yield invalid("nodeAffinity", shown, detail)


def _is_renamed(new: Plain | None, old: Plain) -> bool:
    renamed, same = deep_copy(old), _terms(new)
    terms: Sequence[Plain] = _terms(renamed)
    if len(terms) != len(same):
        return False
    for term, other in zip(terms, same, strict=True):
        for one, newer in zip(
            term.get("matchExpressions") or (), other.get("matchExpressions") or (), strict=False
        ):
            if _NEWER_LABELS.get(one["key"]) == newer["key"]:
                one["key"] = newer["key"]
    return bool(renamed == new)


def _terms(affinity: Plain | None) -> Sequence[Plain]:
    terms: Sequence[Plain] = get(affinity or {}, "required", "nodeSelectorTerms") or ()
    return terms


def volume_status_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a volume's status."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    if not new["metadata"].get("resourceVersion"):
        yield required("resourceVersion")
