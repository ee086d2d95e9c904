"""Conditions of objects: find one by its type, set one, or write one.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/meta/conditions.go, pkg/api/v1/pod/util.go,
          pkg/scheduler/util/utils.go (v1.36)
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.core import NodeCondition, PodCondition
from kubesched.api.meta import Condition

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


class ConditionPatch(msgspec.Struct, frozen=True):
    """A condition to set on a pod or a pod group; the client fills in the transition time."""

    type: str
    status: str
    reason: str
    message: str

    def is_in(self, conditions: tuple[PodCondition, ...]) -> bool:
        """Whether a pod has the condition already; a new generation alone is not a change."""
        return any(
            one.type == self.type
            and one.status == self.status
            and one.reason == self.reason
            and one.message == self.message
            and not one.last_probe_time
            for one in conditions
        )

    def set_in(
        self, conditions: tuple[C, ...], new: Callable[..., C], generation: int, now: str | None
    ) -> tuple[C, ...]:
        """Return conditions with this one, made by `new`.

        `now` is its time if its status changes.
        """
        condition = new(
            type=self.type,
            status=self.status,
            observed_generation=generation,
            last_transition_time=now,
            reason=self.reason,
            message=self.message,
        )
        return conditions_with(conditions, condition)
