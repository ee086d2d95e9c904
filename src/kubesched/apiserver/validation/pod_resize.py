"""Resizing pods: cpu and memory of their containers may change, and nothing else.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodResize, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.apiserver.field_fault import FieldFault, forbidden, invalid
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.qos_class import qos_class
from kubesched.apiserver.schema import type_of
from kubesched.apiserver.validation.metadata import core_metadata_update_faults
from kubesched.apiserver.validation.pods import MIRROR, metadata_and_spec_faults

_RESIZED: Final = ("cpu", "memory")
_KINDS: Final = ("requests", "limits")
_ONLY_RESIZED: Final = "only cpu and memory resources are mutable"
_LISTS: Final = ("containers", "initContainers")


def pod_resize_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a resize of a pod."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden("", "static pods cannot be resized")
        return
    if get(old, "spec", "os", "name") == "windows":
        yield forbidden("", "windows pods cannot be resized")
        return
    faults = list(_faults(new, old))
    yield from faults
    order_faults = list(_order_faults(new["spec"], old["spec"]))
    yield from order_faults
    if order_faults:
        return
    removal_faults = list(_removal_faults(new["spec"], old["spec"]))
    yield from removal_faults
    change_faults = list(_change_faults(new["spec"], old["spec"]))
    yield from change_faults
    if not (faults or removal_faults or change_faults):
        yield from _rest_faults(new["spec"], old["spec"])


def _faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from metadata_and_spec_faults(new)
    if qos_class(new["spec"]) != (old["status"].get("qosClass") or qos_class(old["spec"])):
        detail = "Pod QOS Class may not change as a result of resizing"
        yield invalid("spec", new["status"].get("qosClass", ""), detail)
    if not _is_supported(old["status"].get("containerStatuses") or ()):
        yield forbidden("spec", "Pod running on node without support for resize")
    if any(get(pod, "spec", "resources", kind) for pod in (new, old) for kind in _KINDS):
        yield from _pod_level_faults(new["spec"], old["spec"])
    if old["status"].get("nodeAllocatableResourceClaimStatuses"):
        yield forbidden("spec", "pods with node allocatable resource claims cannot be resized")


def _is_supported(statuses: Sequence[Plain]) -> bool:
    """Whether the node tells what the first running container really has."""
    running = (status for status in statuses if get(status, "state", "running") is not None)
    first = next(running, None)
    return first is None or first.get("resources") is not None


def _pod_level_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    resources, before = new.get("resources"), old.get("resources")
    if before is not None and resources is None:
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    for kind, word in (("requests", "requests"), ("limits", "limits")):
        if before is not None and _is_removed(resources or {}, before, kind):
            detail = f"pod-level resource {word} cannot be removed"
            yield forbidden(f"spec.resources.{kind}", detail)
    others, others_before = _without_resized(resources or {}), _without_resized(before or {})
    if others != others_before:
        yield forbidden("spec", f"{_ONLY_RESIZED} at pod-level")


def _is_removed(new: Plain, old: Plain, kind: str) -> bool:
    return bool((old.get(kind) or {}).keys() - (new.get(kind) or {}).keys())


def _without_resized(resources: Plain) -> Plain:
    """Return resources without cpu, memory and what is then empty."""
    kept = {name: one for name, one in resources.items() if name not in _KINDS}
    for kind in _KINDS:
        amounts = {
            name: one for name, one in (resources.get(kind) or {}).items() if name not in _RESIZED
        }
        if amounts:
            kept[kind] = amounts
    return kept


def _order_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    for kind in _LISTS:
        after, before = new.get(kind) or (), old.get(kind) or ()
        if len(after) != len(before):
            yield forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize")
            continue
        for index, container in enumerate(before):
            if after[index]["name"] != container["name"]:
                detail = f"{kind} may not be renamed or reordered on resize"
                yield forbidden(f"spec.{kind}[{index}].name", detail)


def _removal_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    for kind in reversed(_LISTS):
        for index, container in enumerate(old.get(kind) or ()):
            if kind == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            after = new[kind][index]["resources"]
            for name in _KINDS:
                if _is_removed(after, container["resources"], name):
                    field = f"spec.{kind}[{index}].resources.{name}"
                    yield forbidden(field, f"resource {name} cannot be removed")


def _change_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    for container, before in zip(new.get("containers") or (), old["containers"], strict=True):
        if not _is_same(container, before):
            yield forbidden("spec", _ONLY_RESIZED)
    pairs = zip(new.get("initContainers") or (), old.get("initContainers") or (), strict=True)
    for index, (container, before) in enumerate(pairs):
        if container.get("restartPolicy") == "Always":
            if not _is_same(container, before):
                detail = "only cpu and memory resources for init or sidecar containers are mutable"
                yield forbidden(f"spec.initContainers[{index}]", detail)
        elif container != before:
            yield forbidden("spec", "resources for non-sidecar init containers are immutable")


def _is_same(new: Plain, old: Plain) -> bool:
    """Whether two containers differ in cpu and memory only."""
    return _munged(new) == _munged(old)


def _munged(container: Plain) -> Plain:
    resources = _without_resized(container["resources"])
    # Claims are dropped by upstream on one side only, so having any is a change.
    return {**container, "resources": resources}


def _rest_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    pod_type = type_of("", "v1", "Pod")
    assert pod_type is not None, "the fields of pods are known"
    munged = {**new}
    for name in (*_LISTS, "resources"):
        munged.pop(name, None)
        if name in old:
            munged[name] = old[name]
    if not pod_type.fields["spec"].type.is_equal(munged, old):
        yield forbidden("spec", _ONLY_RESIZED)
