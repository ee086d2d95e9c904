"""Values that a scheduler writes: conditions to set, and events.

Upstream: pkg/scheduler/util/utils.go, framework/preemption; pkg/api/v1/pod/util.go,
          UpdatePodCondition; apimachinery/pkg/api/meta, SetStatusCondition (v1.36)
Differs:  nothing.
"""

from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.meta import Condition
from kubesched.api.pod import Pod, PodCondition

C = TypeVar("C", bound=PodCondition | Condition)


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


class PodConditionPatch(msgspec.Struct, frozen=True):
    """A pod condition to set; the client fills in the transition time."""

    type: str
    status: str
    reason: str
    message: str

    def is_in(self, conditions: tuple[PodCondition, ...]) -> bool:
        """Whether a pod has the condition already; a new generation alone is no change."""
        return any(
            one.type == self.type
            and one.status == self.status
            and one.reason == self.reason
            and one.message == self.message
            and not one.last_probe_time
            for one in conditions
        )

    def set_in(
        self, conditions: tuple[PodCondition, ...], generation: int, now: str | None
    ) -> tuple[PodCondition, ...]:
        """Return a pod's conditions with this one; `now` is the time if its status changes."""
        condition = PodCondition(
            type=self.type,
            status=self.status,
            observed_generation=generation,
            last_transition_time=now,
            reason=self.reason,
            message=self.message,
        )
        return conditions_with(conditions, condition)


class PodGroupConditionPatch(msgspec.Struct, frozen=True):
    """A pod group's condition to set; the client fills in the transition time."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int

    def set_in(self, conditions: tuple[Condition, ...], now: str) -> tuple[Condition, ...]:
        """Return a group's conditions with this one; `now` is the time if its status changes."""
        condition = Condition(
            type=self.type,
            status=self.status,
            observed_generation=self.observed_generation,
            last_transition_time=now,
            reason=self.reason,
            message=self.message,
        )
        return conditions_with(conditions, condition)


class EventRecord(msgspec.Struct, frozen=True):
    """An event to write; events may be lost.

    Attributes:
        regarding: The pod that the event is about.
        type: `Normal` or `Warning`.
        reason: Such as `Scheduled`.
        action: Such as `Binding`.
        note: A human-readable message of at most 1,024 bytes.
        related: A second pod that is involved.
        reporting_controller: The profile's name.
    """

    regarding: Pod
    type: str
    reason: str
    action: str
    note: str
    related: Pod | None = None
    reporting_controller: str = ""
