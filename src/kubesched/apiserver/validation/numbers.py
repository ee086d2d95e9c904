"""Numbers, percentages and conditions that many kinds have.

Upstream: pkg/apis/apps/validation/validation.go (ValidatePositiveIntOrPercent),
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation (ValidateConditions, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    invalid,
    not_supported,
    required,
    too_long,
)
from kubesched.apiserver.names import form_error, percent
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.labels import label_name_faults
from kubesched.apiserver.validation.metadata import NOT_NEGATIVE

_STATUSES: Final = ("False", "True", "Unknown")
_REASON_FORM: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON: Final = re.compile(_REASON_FORM)
_REASON_RULE: Final = form_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON_FORM,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
_REASON_LENGTH_MAX: Final = 1024
_MESSAGE_LENGTH_MAX: Final = 32 * 1024


def negative_faults(owner: Plain, path: str, *names: str) -> Iterator[FieldFault]:
    """Yield the fields that are negative and may not be."""
    for name in names:
        number = owner.get(name) or 0
        if number < 0:
            yield invalid(f"{path}.{name}", number, NOT_NEGATIVE)


def int_or_percent_faults(value: int | str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with a number, or with a percentage."""
    if isinstance(value, str):
        yield from each(path, value, percent(value))
    elif value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def above_hundred_faults(value: int | str, path: str) -> Iterator[FieldFault]:
    """Yield whether a percentage is more than everything."""
    if isinstance(value, str) and not percent(value) and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def int_or_percent_number(value: int | str) -> int:
    """Return the number of either; 0 for a text that is no percentage."""
    if isinstance(value, str):
        return 0 if percent(value) else int(value[:-1])
    return value


def condition_faults(conditions: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the conditions of a status."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        own_path, kind = f"{path}[{index}]", condition["type"]
        if kind in seen:
            yield duplicate(f"{own_path}.type", kind)
        seen.add(kind)
        yield from label_name_faults(kind, f"{own_path}.type")
        if condition["status"] not in _STATUSES:
            yield not_supported(f"{own_path}.status", condition["status"], _STATUSES)
        generation = condition.get("observedGeneration", 0)
        if generation < 0:
            detail = "must be greater than or equal to zero"
            yield invalid(f"{own_path}.observedGeneration", generation, detail)
        if not condition.get("lastTransitionTime"):
            yield required(f"{own_path}.lastTransitionTime")
        yield from _text_faults(condition, own_path)


def _text_faults(condition: Plain, path: str) -> Iterator[FieldFault]:
    reason = condition.get("reason", "")
    if not reason:
        yield required(f"{path}.reason")
    else:
        if _REASON.fullmatch(reason) is None:
            yield invalid(f"{path}.reason", reason, _REASON_RULE)
        if len(reason.encode()) > _REASON_LENGTH_MAX:
            yield too_long(f"{path}.reason", _REASON_LENGTH_MAX)
    if len(condition.get("message", "").encode()) > _MESSAGE_LENGTH_MAX:
        yield too_long(f"{path}.message", _MESSAGE_LENGTH_MAX)
