"""ApiClient has the writes that the scheduler sends to a real, embedded or simulated API server.

Upstream: pkg/scheduler/util/utils.go, plugins/defaultbinder, framework/preemption (v1.36)
Reads:    nothing; objects arrive through `scheduler.eventhandlers`
Differs:  one narrow protocol instead of a clientset.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
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


class UnansweredWrites:
    """Counts Bindings and status patches that the API server has not answered.

        with unanswered:
            await api.bind(pod, node_name)

    Attributes:
        is_full: Whether no further pod should be decided: the limit was reached, and more than
            half of these writes are still unanswered.
        on_room: Called when `is_full` becomes False.
    """

    def __init__(self, at_once: float = inf) -> None:
        """Set up without a write; `at_once` is the limit."""
        self._at_once = at_once
        self._count = 0
        self.is_full = False
        self.on_room: Callable[[], None] = lambda: None

    def __enter__(self) -> None:
        """Count a write that is being sent."""
        self._count += 1
        if self._count == self._at_once:
            self.is_full = True

    def __exit__(self, *_raised: object) -> None:
        """Count its answer."""
        self._count -= 1
        # To decide many pods in a row takes less CPU time than to wake up for each.
        if self.is_full and self._count <= self._at_once / 2:
            self.is_full = False
            self.on_room()
