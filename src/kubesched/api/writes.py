"""Values that a scheduler writes: conditions to set, and events.

Upstream: pkg/scheduler/util/utils.go, framework/preemption (v1.36)
Differs:  nothing.
"""

import msgspec

from kubesched.api.pod import Pod


class PodConditionPatch(msgspec.Struct, frozen=True):
    """A pod condition to set; the client fills in the transition time."""

    type: str
    status: str
    reason: str
    message: str


class PodGroupConditionPatch(msgspec.Struct, frozen=True):
    """A pod group's condition to set; the client fills in the transition time."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int


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
