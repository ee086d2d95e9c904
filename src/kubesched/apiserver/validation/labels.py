"""Labels, annotations and selectors on labels.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go (v1.36)
Differs:  several wrong labels are told in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubesched.api.label_format import label_key_errors, label_value_errors
from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    forbidden,
    invalid,
    required,
    too_long,
)
from kubesched.apiserver.plain import Plain

_ANNOTATIONS_SIZE_MAX: Final = 256 * 1024


def label_name_faults(name: str, path: str) -> list[FieldFault]:
    """Return what is wrong with the key of a label."""
    return each(path, name, label_key_errors(name))


def label_faults(labels: Mapping[str, str] | None, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with labels."""
    for key, value in (labels or {}).items():
        yield from label_name_faults(key, path)
        yield from each(path, value, label_value_errors(value))


def annotation_faults(annotations: Mapping[str, str] | None, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with annotations: their keys, and their size."""
    if not annotations:
        return
    for key in annotations:
        yield from each(path, key, label_key_errors(key.lower()))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_SIZE_MAX:
        yield too_long(path, _ANNOTATIONS_SIZE_MAX)


def selector_faults(
    selector: Plain | None, path: str, *, checks_values: bool = True
) -> Iterator[FieldFault]:
    """Yield what is wrong with a selector on labels."""
    if selector is None:
        return
    yield from label_faults(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, one in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement_faults(one, f"{path}.matchExpressions[{index}]", checks_values)


def _requirement_faults(one: Plain, path: str, checks_values: bool) -> Iterator[FieldFault]:
    operator, values = one["operator"], one.get("values") or ()
    yield from operator_faults(operator, len(values), path)
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from label_name_faults(one["key"], f"{path}.key")
    if checks_values:
        yield from label_value_faults(values, f"{path}.values")


def operator_faults(operator: str, count: int, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the number of values that an operator has."""
    if operator in ("In", "NotIn") and not count:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        yield required(f"{path}.values", detail)
    if operator in ("Exists", "DoesNotExist") and count:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden(f"{path}.values", detail)


def label_value_faults(values: list[str] | tuple[str, ...], path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with a list of values of labels."""
    for index, value in enumerate(values):
        yield from each(f"{path}[{index}]", value, label_value_errors(value))
