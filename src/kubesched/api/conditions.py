"""Conditions of objects: find one by its type, or set one.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/meta/conditions.go, pkg/api/v1/pod/util.go (v1.36)
"""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from kubesched.api.meta import Condition
from kubesched.api.node import NodeCondition
from kubesched.api.pod import PodCondition

C = TypeVar("C", bound=NodeCondition | PodCondition | Condition)


def find_condition(conditions: Iterable[C], type_: str) -> C | None:
    """Return the condition of a type, None if there is none."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def is_condition_true(conditions: Iterable[C], type_: str) -> bool:
    """Whether the condition of a type has status True."""
    condition = find_condition(conditions, type_)
    return condition is not None and condition.status == "True"


def conditions_with(conditions: tuple[C, ...], new: C) -> tuple[C, ...]:
    """Return conditions with a new one in place of that of its type, or at the end.

    It keeps the transition time of one with the same status.
    """
    for at, old in enumerate(conditions):
        if old.type == new.type:
            if old.status == new.status:
                new = replace(new, last_transition_time=old.last_transition_time)
            return (*conditions[:at], new, *conditions[at + 1 :])
    return (*conditions, new)
