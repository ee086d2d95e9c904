"""Taints of nodes, and tolerations of pods.

Upstream: pkg/apis/core/validation/validation.go (ValidateTolerations, validateNodeTaints, v1.36)
Differs:  tolerations that compare numbers are refused, as by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.api.label_format import label_value_errors
from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.internal_form import internal_form
from kubesched.apiserver.validation.labels import label_name_faults

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Equal", "Exists")
_ALL_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")
_MATCHES_ALL: Final = (
    'operator must be Exists when `key` is empty, which means "match all values and all keys"'
)


def toleration_faults(tolerations: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the tolerations of a pod."""
    for index, toleration in enumerate(tolerations):
        yield from _toleration_faults(toleration, f"{path}[{index}]")


def _toleration_faults(toleration: Plain, path: str) -> Iterator[FieldFault]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect = toleration.get("effect", "")
    if key:
        yield from label_name_faults(key, f"{path}.key")
    elif operator != "Exists":
        yield invalid(f"{path}.operator", operator, _MATCHES_ALL)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", effect, detail)
    yield from _operator_faults(operator, toleration.get("value", ""), f"{path}.operator")
    if effect:
        yield from _effect_faults(effect, f"{path}.effect")


def _operator_faults(operator: str, value: str, path: str) -> Iterator[FieldFault]:
    if operator in ("", "Equal"):
        if errors := label_value_errors(value):
            yield invalid(path, value, ";".join(errors))
    elif operator == "Exists":
        if value:
            yield invalid(path, value, "value must be empty when `operator` is 'Exists'")
    else:
        is_comparison = operator in ("Gt", "Lt")
        yield not_supported(path, operator, _ALL_OPERATORS if is_comparison else _OPERATORS)


def _effect_faults(effect: str, path: str) -> Iterator[FieldFault]:
    if effect not in _EFFECTS:
        yield not_supported(path, effect, _EFFECTS)


def added_toleration_faults(
    new: Sequence[Plain], old: Sequence[Plain], path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of tolerations: none may go, and only seconds change."""
    kept = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(toleration) not in kept for toleration in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden(path, detail)
        return
    yield from toleration_faults(new, path)


def _without_seconds(toleration: Plain) -> Plain:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def taint_faults(taints: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the taints of a node."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        own_path, key, effect = f"{path}[{index}]", taint["key"], taint["effect"]
        yield from label_name_faults(key, f"{own_path}.key")
        if errors := label_value_errors(taint.get("value", "")):
            yield invalid(f"{own_path}.value", taint["value"], ";".join(errors))
        if not effect:
            yield required(f"{own_path}.effect")
        else:
            yield from _effect_faults(effect, f"{own_path}.effect")
        if (key, effect) in seen:
            shown = internal_form("core/Taint", taint)
            yield duplicate(own_path, shown, "taints must be unique by key and effect pair")
        seen.add((key, effect))
