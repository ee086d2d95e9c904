"""Pods: what is wrong with new ones, and with changes of them.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodCreate, ValidatePodUpdate, v1.36)
Differs:  annotations that security profiles were in are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubesched.api.requirements import parse_int64
from kubesched.apiserver.field_fault import FieldFault, forbidden, go_quoted, invalid, required
from kubesched.apiserver.names import between, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import type_of
from kubesched.apiserver.validation.affinity import (
    narrowed_node_affinity_faults,
    narrowed_selector_faults,
)
from kubesched.apiserver.validation.containers import image_space_faults
from kubesched.apiserver.validation.internal_form import difference
from kubesched.apiserver.validation.metadata import core_metadata_update_faults, metadata_faults
from kubesched.apiserver.validation.pod_spec import pod_spec_faults
from kubesched.apiserver.validation.tolerations import added_toleration_faults

MIRROR: Final = "kubernetes.io/config.mirror"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_SECONDS_MAX: Final = 2**31 - 1
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def new_pod_faults(pod: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new pod."""
    yield from metadata_and_spec_faults(pod)
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("spec.nodeName", detail)


def metadata_and_spec_faults(pod: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with any pod, new or not."""
    metadata, spec = pod["metadata"], pod["spec"]
    yield from metadata_faults(metadata, True, dns_subdomain)
    yield from _annotation_faults(metadata.get("annotations") or {}, spec)
    yield from pod_spec_faults(spec, metadata, "spec", is_pod=True)
    if not spec.get("serviceAccountName"):
        yield from _token_faults(spec.get("volumes") or ())
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield from image_space_faults(container, f"spec.{kind}[{index}]")


def _annotation_faults(annotations: Plain, spec: Plain) -> Iterator[FieldFault]:
    if MIRROR in annotations and not spec.get("nodeName"):
        field = f"metadata.annotations[{MIRROR}]"
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(field, annotations[MIRROR], detail)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_cost(cost):
        yield invalid(f"metadata.annotations[{_DELETION_COST}]", cost, "must be a 32bit integer")


def _is_cost(text: str) -> bool:
    number = parse_int64(text)
    # Only one way to write each number is allowed.
    has_bad_start = text[:1] == "+" or (text[:1] == "0" and text != "0")
    return number is not None and -(2**31) <= number < 2**31 and not has_bad_start


def _token_faults(volumes: Sequence[Plain]) -> Iterator[FieldFault]:
    for index, volume in enumerate(volumes):
        sources = (volume.get("projected") or {}).get("sources") or ()
        for number, source in enumerate(sources):
            if source.get("serviceAccountToken") is not None:
                field = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                yield forbidden(field, "must not be specified when serviceAccountName is not set")


def annotation_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a pod's annotations."""
    after, before = (pod["metadata"].get("annotations") or {} for pod in (new, old))
    field = f"metadata.annotations[{MIRROR}]"
    if MIRROR in before and after.get(MIRROR) != before[MIRROR]:
        yield forbidden(field, "may not remove or update mirror pod annotation")
    if MIRROR in after and MIRROR not in before:
        yield forbidden(field, "may not add mirror pod annotation")
    yield from _annotation_faults(after, new["spec"])


def pod_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a pod."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from metadata_and_spec_faults(new)
    yield from annotation_update_faults(new, old)
    spec, before = new["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        after, old_ones = spec.get(kind) or (), before.get(kind) or ()
        if len(after) != len(old_ones):
            yield forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
            return
        yield from _image_faults(after, f"spec.{kind}")
    deadline_faults = list(_deadline_faults(spec, before))
    yield from deadline_faults
    if deadline_faults and spec.get("activeDeadlineSeconds") is not None:
        return
    yield from added_toleration_faults(
        spec.get("tolerations") or (), before.get("tolerations") or (), "spec.tolerations"
    )
    yield from _gate_faults(spec.get("schedulingGates") or (), before.get("schedulingGates") or ())
    if not _is_same_spec(spec, before):
        yield from _spec_change_faults(spec, before)


def _image_faults(containers: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    for index, container in enumerate(containers):
        if not container.get("image"):
            yield required(f"{path}[{index}].image")
        yield from image_space_faults(container, f"{path}[{index}]")


def _deadline_faults(spec: Plain, before: Plain) -> Iterator[FieldFault]:
    field = "spec.activeDeadlineSeconds"
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        if old is not None:
            yield invalid(field, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= _SECONDS_MAX:
        yield invalid(field, new, between(0, _SECONDS_MAX))
    elif old is not None and old < new:
        yield invalid(field, new, "must be less than or equal to previous value")


def _gate_faults(new: Sequence[Plain], old: Sequence[Plain]) -> Iterator[FieldFault]:
    known = [gate["name"] for gate in old]
    last = {gate["name"]: index for index, gate in enumerate(new)}
    for name, index in last.items():
        if name not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", detail)


def _is_same_spec(one: Plain, other: Plain) -> bool:
    pod_type = type_of("", "v1", "Pod")
    assert pod_type is not None, "the fields of pods are known"
    return pod_type.fields["spec"].type.is_equal(one, other)


def _spec_change_faults(spec: Plain, before: Plain) -> Iterator[FieldFault]:
    """Yield what changes besides what may: all that may is first put back."""
    munged = {**spec}
    for kind in ("containers", "initContainers"):
        if munged.get(kind):
            munged[kind] = [
                {**container, "image": old.get("image", "")}
                for container, old in zip(munged[kind], before[kind], strict=True)
            ]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _put_back(munged, before, name)
    grace = before.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = grace
    if before.get("schedulingGates"):
        yield from _gated_faults(munged, before)
    if not _is_same_spec(munged, before):
        shown = difference("core/PodSpec", before, munged)
        detail = f"pod updates may not change fields other than {_UPDATABLE}\n{shown}"
        yield forbidden("spec", detail)


def _put_back(spec: Plain, before: Plain, name: str) -> None:
    spec.pop(name, None)
    if name in before:
        spec[name] = before[name]


def _gated_faults(munged: Plain, before: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with where a gated pod may now go, and put it back."""
    selector, old_selector = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if selector != old_selector:
        yield from narrowed_selector_faults(selector, old_selector, "spec.nodeSelector")
        _put_back(munged, before, "nodeSelector")
    affinity, old_affinity = munged.get("affinity"), before.get("affinity")
    new, old = ((one or {}).get("nodeAffinity") for one in (affinity, old_affinity))
    if new == old:
        return
    yield from narrowed_node_affinity_faults(new, old, "spec.affinity.nodeAffinity")
    others: Plain = {**(affinity or {})}
    others.pop("nodeAffinity", None)
    if old is not None:
        others["nodeAffinity"] = old
    if affinity is not None and old_affinity is None and not others:
        munged.pop("affinity")
    elif affinity is not None or old is not None:
        munged["affinity"] = others


def ephemeral_containers_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a pod's ephemeral containers: they only grow."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden("", "static pods do not support ephemeral containers")
        return
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from metadata_and_spec_faults(new)
    yield from annotation_update_faults(new, old)
    after: dict[str, Any] = {
        one["name"]: one for one in new["spec"].get("ephemeralContainers") or ()
    }
    path = "spec.ephemeralContainers"
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container["name"]
        quoted = go_quoted(name)
        if name not in after:
            yield forbidden(path, f"existing ephemeral containers {quoted} may not be removed\n")
        elif after[name] != container:
            shown = difference("core/EphemeralContainer", container, after[name])
            detail = f"existing ephemeral containers {quoted} may not be changed\n{shown}"
            yield forbidden(path, detail)
