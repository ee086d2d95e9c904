"""ApiClient is all that the runtime asks of an API server; live, embedded and simulated alike.

Upstream: pkg/scheduler/util/utils.go, plugins/defaultbinder, framework/preemption (v1.36)
Reads:    nothing; objects arrive through `scheduler.eventhandlers`
Differs:  one narrow protocol instead of a clientset.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup


class PodConditionPatch(msgspec.Struct, frozen=True):
    """A pod condition to set; the transition time is the client's business."""

    type: str
    status: str
    reason: str
    message: str


class PodGroupConditionPatch(msgspec.Struct, frozen=True):
    """A pod group's condition to set; the transition time is the client's business."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int


class EventRecord(msgspec.Struct, frozen=True):
    """An event to write; losing one harms nobody.

    Attributes:
        regarding: The pod it is about.
        type: `Normal` or `Warning`.
        reason: Such as `Scheduled`.
        action: Such as `Binding`.
        note: For people, at most 1,024 bytes.
        related: Another pod that has to do with it.
        reporting_controller: The profile's name.
    """

    regarding: Pod
    type: str
    reason: str
    action: str
    note: str
    related: Pod | None = None
    reporting_controller: str = ""


class ApiClient(Protocol):
    """Writes to an API server. Every method raises `api.errors.ApiError` when it is refused."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """POST the pod's Binding, with its uid as precondition."""
        ...

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: PodConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """PATCH condition and nomination; None leaves one alone, no change sends nothing."""
        ...

    async def patch_pod_group_status(
        self, group: PodGroup, condition: PodGroupConditionPatch
    ) -> None:
        """PATCH a condition of a pod group; no change sends nothing."""
        ...

    async def delete_pod(self, pod: Pod) -> None:
        """DELETE the pod with its own grace period."""
        ...

    def record_event(self, event: EventRecord) -> None:
        """Write an event some time soon; never waits, never fails."""
        ...
