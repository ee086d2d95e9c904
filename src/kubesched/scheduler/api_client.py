"""ApiClient has the writes that the scheduler sends to a real, embedded or simulated API server.

Upstream: pkg/scheduler/util/utils.go, plugins/defaultbinder, framework/preemption (v1.36)
Reads:    nothing; objects arrive through `scheduler.eventhandlers`
Differs:  one narrow protocol instead of a clientset.
"""

from __future__ import annotations

from typing import Protocol

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod
from kubesched.api.scheduling import PodGroup


class ApiClient(Protocol):
    """Writes to an API server. A refused write raises `api.errors.ApiError`."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """POST the pod's Binding, with its uid as precondition."""

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """PATCH condition and nomination; None keeps the value, and no change sends nothing."""

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """PATCH a condition of a pod group; no change sends nothing."""

    async def delete_pod(self, pod: Pod) -> None:
        """DELETE the pod with the grace period from its spec."""

    def record_event(self, event: EventRecord) -> None:
        """Queue an event to be written; return at once and never raise."""
