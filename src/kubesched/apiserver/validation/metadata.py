"""Metadata of objects: names, labels, owners, finalizers, and what of it may change.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go,
          pkg/apis/core/validation/validation.go (ValidateObjectMeta, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubesched.api.label_format import label_key_errors
from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    forbidden,
    go_quoted,
    invalid,
    required,
    too_long,
)
from kubesched.apiserver.names import NameRule, dns_label, path_segment, prefix_of
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.internal_form import ordered
from kubesched.apiserver.validation.labels import annotation_faults, label_faults

IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_STANDARD_FINALIZERS: Final = ("foregroundDeletion", "kubernetes", "orphan")
_MANAGER_LENGTH_MAX: Final = 128
_SUBRESOURCE_LENGTH_MAX: Final = 256


def metadata_faults(
    metadata: Plain, is_namespaced: bool, rule: NameRule, *, checks_prefix: bool = True
) -> Iterator[FieldFault]:
    """Yield what is wrong with the metadata of an object of the core rules.

    Args:
        metadata: Of the object.
        is_namespaced: Whether it lives in a namespace.
        rule: For its name.
        checks_prefix: Whether generateName has to keep the rule too.
    """
    yield from _faults(metadata, is_namespaced, rule, checks_prefix=checks_prefix)
    yield from _standard_finalizer_faults(metadata)


def plain_metadata_faults(
    metadata: Plain, is_namespaced: bool, rule: NameRule
) -> Iterator[FieldFault]:
    """Yield what is wrong with the metadata of an object of a group with its own rules."""
    yield from _faults(metadata, is_namespaced, rule, checks_prefix=True)


def common_faults(metadata: Plain, is_namespaced: bool) -> Iterator[FieldFault]:
    """Yield what is wrong with the metadata of any object."""
    yield from _faults(metadata, is_namespaced, path_segment, checks_prefix=True)


def _faults(
    metadata: Plain, is_namespaced: bool, rule: NameRule, *, checks_prefix: bool
) -> Iterator[FieldFault]:
    prefix, name = metadata.get("generateName", ""), metadata.get("name", "")
    if prefix and checks_prefix:
        yield from each("metadata.generateName", prefix, prefix_of(rule)(prefix))
    if name:
        yield from each("metadata.name", name, rule(name))
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from _namespace_faults(metadata.get("namespace", ""), is_namespaced)
    if metadata.get("generation", 0) < 0:
        yield invalid("metadata.generation", metadata["generation"], NOT_NEGATIVE)
    yield from label_faults(metadata.get("labels"), "metadata.labels")
    yield from annotation_faults(metadata.get("annotations"), "metadata.annotations")
    yield from _owner_faults(metadata.get("ownerReferences") or ())
    yield from _finalizer_name_faults(metadata.get("finalizers") or ())
    yield from _managed_field_faults(metadata.get("managedFields") or ())


def _namespace_faults(namespace: str, is_namespaced: bool) -> Iterator[FieldFault]:
    path = "metadata.namespace"
    if not is_namespaced:
        if namespace:
            yield forbidden(path, "not allowed on this type")
    elif namespace:
        yield from each(path, namespace, dns_label(namespace))
    else:
        yield required(path)


def _owner_faults(owners: Sequence[Plain]) -> Iterator[FieldFault]:
    path = "metadata.ownerReferences"
    first = ""
    for owner in owners:
        group, _, version = owner["apiVersion"].rpartition("/")
        if "/" in group:
            # Upstream reads neither where there is more than one slash.
            group = version = ""
        if not version:
            detail = "version must not be empty"
            yield invalid(f"{path}.apiVersion", owner["apiVersion"], detail)
        for name in ("kind", "name", "uid"):
            if not owner[name]:
                yield invalid(f"{path}.{name}", "", "must not be empty")
        if (group, version, owner["kind"]) == ("", "v1", "Event"):
            detail = "/v1, Kind=Event is disallowed from being an owner"
            yield invalid(path, ordered("OwnerReference", owner), detail)
        if owner.get("controller"):
            who = f"{owner['kind']}/{owner['name']}"
            if first:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {who}'
                )
                shown = [ordered("OwnerReference", one) for one in owners]
                yield invalid(path, shown, detail)
            first = first or who


def _finalizer_name_faults(finalizers: Sequence[str]) -> Iterator[FieldFault]:
    path = "metadata.finalizers"
    for name in finalizers:
        yield from each(path, name, label_key_errors(name))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid(path, list(finalizers), detail)


def finalizer_faults(name: str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with a finalizer: it needs a domain, or is one of Kubernetes' own."""
    yield from each(path, name, label_key_errors(name))
    yield from _standard_name_faults(name, path)


def _standard_finalizer_faults(metadata: Plain) -> Iterator[FieldFault]:
    for index, name in enumerate(metadata.get("finalizers") or ()):
        yield from _standard_name_faults(name, f"metadata.finalizers[{index}]")


def _standard_name_faults(name: str, path: str) -> Iterator[FieldFault]:
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        yield invalid(path, name, detail)


def _managed_field_faults(entries: Sequence[Plain]) -> Iterator[FieldFault]:
    for index, entry in enumerate(entries):
        path = f"metadata.managedFields[{index}]"
        operation, fields_type = entry.get("operation", ""), entry.get("fieldsType", "")
        if operation not in ("Apply", "Update"):
            yield invalid(f"{path}.operation", operation, "must be `Apply` or `Update`")
        if fields_type not in ("", "FieldsV1"):
            yield invalid(f"{path}.fieldsType", fields_type, "must be `FieldsV1`")
        if len(entry.get("manager", "").encode()) > _MANAGER_LENGTH_MAX:
            yield too_long(f"{path}.manager", _MANAGER_LENGTH_MAX)
        if len(entry.get("subresource", "").encode()) > _SUBRESOURCE_LENGTH_MAX:
            yield too_long(f"{path}.subresource", _SUBRESOURCE_LENGTH_MAX)


def metadata_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what may not change in the metadata of any object."""
    if old.get("deletionTimestamp"):
        known = old.get("finalizers") or ()
        added = sorted({name for name in new.get("finalizers") or () if name not in known})
        if added:
            shown = ", ".join(map(go_quoted, added))
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            yield forbidden("metadata.finalizers", detail)
    if not new.get("resourceVersion"):
        yield invalid("metadata.resourceVersion", "", "must be specified for an update")
    if new.get("generation", 0) < old.get("generation", 0):
        detail = "must not be decremented"
        yield invalid("metadata.generation", new.get("generation", 0), detail)
    for name in ("name", "namespace", "uid"):
        yield from immutable_faults(new.get(name, ""), old.get(name, ""), f"metadata.{name}")
    for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        yield from immutable_faults(new.get(name), old.get(name), f"metadata.{name}")
    yield from label_faults(new.get("labels"), "metadata.labels")
    yield from annotation_faults(new.get("annotations"), "metadata.annotations")
    yield from _owner_faults(new.get("ownerReferences") or ())
    yield from _managed_field_faults(new.get("managedFields") or ())


def core_metadata_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what may not change in the metadata of an object of the core rules."""
    yield from metadata_update_faults(new, old)
    yield from _standard_finalizer_faults(new)


def immutable_faults(new: Any, old: Any, path: str) -> list[FieldFault]:
    """Return the fault of a value that has changed and may not."""
    if new == old or (not new and not old and not isinstance(new, bool | int)):
        return []
    return [invalid(path, new, IMMUTABLE)]
