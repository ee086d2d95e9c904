"""Values that a scheduler writes: conditions to set, and events.

Upstream: pkg/scheduler/util/utils.go, pkg/scheduler/framework/preemption (v1.36)
Differs:  nothing.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from kubesched.api.conditions import conditions_with
from kubesched.api.meta import Condition
from kubesched.api.pod import Pod, PodCondition

C = TypeVar("C", PodCondition, Condition)


class ConditionPatch(msgspec.Struct, frozen=True):
    """A condition to set on a pod or a pod group; the client fills in the transition time."""

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
