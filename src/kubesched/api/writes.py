"""Values that a scheduler writes: conditions to set, and events.

Upstream: pkg/scheduler/util/utils.go, pkg/scheduler/framework/preemption (v1.36)
Differs:  nothing.
"""

import msgspec

from kubesched.api.conditions import conditions_with
from kubesched.api.meta import Condition
from kubesched.api.pod import Pod, PodCondition


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
