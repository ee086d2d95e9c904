"""Metadata of objects: names, labels, owners, finalizers, and what of it may change; selectors.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go,
          pkg/apis/core/validation/validation.go (ValidateObjectMeta, v1.36)
Differs:  several wrong labels are reported in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubesched.api.go_text import go_quote
from kubesched.api.names import label_key_errors, label_value_errors
from kubesched.apiserver.formats import FORMS, prefix_of
from kubesched.apiserver.plain import Plain, entries
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import FieldErrors

_NOT_STANDARD: Final = "name is neither a standard finalizer name nor is it fully qualified"
_ANNOTATIONS_SIZE_MAX: Final = 256 * 1024


def check_metadata(
    resource: Resource, metadata: Plain, forms: Iterable[str], errors: FieldErrors
) -> None:
    """Add field errors for the metadata of an object, whose namespace is that of the request.

    The name must have every one of the `forms`, which are names in `formats.FORMS`.
    """
    prefix, name = metadata.get("generateName", ""), metadata.get("name", "")
    for rule in map(FORMS.__getitem__, forms):
        errors.each("metadata.generateName", prefix, prefix_of(rule)(prefix) if prefix else ())
        errors.each("metadata.name", name, rule(name) if name else ())
    if not name:
        errors.required("metadata.name", "name or generateName is required")
    if metadata.get("generation", 0) < 0:
        detail = "must be greater than or equal to 0"
        errors.invalid("metadata.generation", metadata["generation"], detail)
    check_labels(metadata.get("labels"), "metadata.labels", errors)
    check_annotations(metadata.get("annotations"), "metadata.annotations", errors)
    _check_owners(metadata.get("ownerReferences") or (), errors)
    is_plain = "plain" in resource.flags or resource.definition is not None
    _check_finalizers(metadata.get("finalizers") or (), errors, is_plain=is_plain)


def _check_owners(owners: Sequence[Plain], errors: FieldErrors) -> None:
    path = "metadata.ownerReferences"
    first = ""
    for owner in owners:
        group, _, version = owner["apiVersion"].rpartition("/")
        if not version or "/" in group:
            errors.invalid(f"{path}.apiVersion", owner["apiVersion"], "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner[name]:
                errors.invalid(f"{path}.{name}", "", "must not be empty")
        if (group, version, owner["kind"]) == ("", "v1", "Event"):
            errors.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            who = f"{owner['kind']}/{owner['name']}"
            if first:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {who}'
                )
                errors.invalid(path, list(owners), detail)
            first = first or who


def _check_finalizers(finalizers: Sequence[str], errors: FieldErrors, *, is_plain: bool) -> None:
    path = "metadata.finalizers"
    for name in finalizers:
        errors.each(path, name, label_key_errors(name))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.invalid(path, list(finalizers), detail)
    for index, name in enumerate(() if is_plain else finalizers):
        _check_standard_name(name, f"{path}[{index}]", errors)


def check_finalizer(name: str, path: str, errors: FieldErrors) -> None:
    """Add a field error for a finalizer that has no domain and is not one of Kubernetes' own."""
    errors.each(path, name, label_key_errors(name))
    _check_standard_name(name, path, errors)


def _check_standard_name(name: str, path: str, errors: FieldErrors) -> None:
    if "/" not in name and name not in ("foregroundDeletion", "kubernetes", "orphan"):
        errors.invalid(path, name, _NOT_STANDARD)


def check_metadata_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    """Add field errors for changes of metadata that may not change."""
    if old.get("deletionTimestamp"):
        known = old.get("finalizers") or ()
        added = sorted({name for name in new.get("finalizers") or () if name not in known})
        if added:
            shown = ", ".join(map(go_quote, added))
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            errors.forbidden("metadata.finalizers", detail)
    for name in ("name", "namespace", "uid"):
        errors.changed(f"metadata.{name}", new.get(name, ""), old.get(name, ""))
    for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        errors.changed(f"metadata.{name}", new.get(name), old.get(name))


# Labels, annotations and selectors.


def check_labels(labels: Mapping[str, str] | None, path: str, errors: FieldErrors) -> None:
    """Add field errors for labels."""
    for key, value in (labels or {}).items():
        errors.each(path, key, label_key_errors(key))
        errors.each(path, value, label_value_errors(value))


def check_annotations(
    annotations: Mapping[str, str] | None, path: str, errors: FieldErrors
) -> None:
    """Add field errors for annotations: their keys, and their size."""
    if not annotations:
        return
    for key in annotations:
        errors.each(path, key, label_key_errors(key.lower()))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_SIZE_MAX:
        errors.too_long(path, _ANNOTATIONS_SIZE_MAX)


def check_requirement(
    one: Plain,
    path: str,
    errors: FieldErrors,
    *,
    is_of_nodes: bool = False,
    checks_values: bool = True,
) -> None:
    """Add field errors for one requirement on labels: `key`, `operator` and `values`.

    `is_of_nodes` allows numbers to be compared. With `checks_values`, values must be valid as
    values of labels.
    """
    operator, values = one["operator"], one.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.forbidden(f"{path}.values", detail)
    elif operator in ("Gt", "Lt") and is_of_nodes:
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.required(f"{path}.values", detail)
    else:
        errors.invalid(f"{path}.operator", operator, "not a valid selector operator")
    errors.each(f"{path}.key", one["key"], label_key_errors(one["key"]))
    if checks_values:
        for at, value in entries(one, path, "values"):
            errors.each(at, value, label_value_errors(value))
