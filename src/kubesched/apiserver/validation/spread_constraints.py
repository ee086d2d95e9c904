"""Constraints on how pods spread.

Upstream: pkg/apis/core/validation/validation.go (validateTopologySpreadConstraints, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.apiserver.field_fault import FieldFault, duplicate, invalid, not_supported, required
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.affinity import label_key_list_faults
from kubesched.apiserver.validation.labels import selector_faults

_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")
_POSITIVE: Final = "must be greater than zero"


def spread_constraint_faults(constraints: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the spread constraints of a pod."""
    for index, constraint in enumerate(constraints):
        own_path = f"{path}[{index}]"
        yield from _faults(constraint, own_path)
        if any(_same_domain(constraint, later) for later in constraints[index + 1 :]):
            key, action = constraint["topologyKey"], constraint["whenUnsatisfiable"]
            field = f"{own_path}.{{topologyKey, whenUnsatisfiable}}"
            yield duplicate(field, f"{{{key}, {action}}}")
        yield from _option_faults(constraint, own_path)


def _same_domain(one: Plain, other: Plain) -> bool:
    names = ("topologyKey", "whenUnsatisfiable")
    return all(one[name] == other[name] for name in names)


def _faults(constraint: Plain, path: str) -> Iterator[FieldFault]:
    if constraint["maxSkew"] <= 0:
        yield invalid(f"{path}.maxSkew", constraint["maxSkew"], _POSITIVE)
    if not constraint["topologyKey"]:
        yield required(f"{path}.topologyKey", "can not be empty")
    action = constraint["whenUnsatisfiable"]
    if action not in _ACTIONS:
        yield not_supported(f"{path}.whenUnsatisfiable", action, _ACTIONS)


def _option_faults(constraint: Plain, path: str) -> Iterator[FieldFault]:
    action, domains = constraint["whenUnsatisfiable"], constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            yield invalid(f"{path}.minDomains", domains, _POSITIVE)
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield invalid(f"{path}.minDomains", domains, detail)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if policy is not None and policy not in _POLICIES:
            yield not_supported(f"{path}.{name}", policy, _POLICIES)
    selector = constraint.get("labelSelector")
    yield from label_key_list_faults(path, constraint.get("matchLabelKeys") or (), (), selector)
    yield from selector_faults(selector, f"{path}.labelSelector")
