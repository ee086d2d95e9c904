"""SchedulerClient is what the scheduler asks of an API server, in one: writes and events.

Upstream: pkg/scheduler/scheduler.go, the clientset (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.client.event_recorder import Occurrence
from kubesched.client.pod_writer import PodWriter
from kubesched.client.requests import Rest
from kubesched.client.status_patches import WantedCondition, WantedGroupCondition


class Recorder(Protocol):
    """Records events: an `EventRecorder`, or a `CoreEventRecorder` for old servers."""

    def record_event(self, event: Occurrence) -> None:
        """Have an event written some time soon."""
        ...


class SchedulerClient:
    """Writes pods and records events; whoever makes it runs the recorder."""

    def __init__(self, rest: Rest, recorder: Recorder, now_ns: Callable[[], int]) -> None:
        """Set up.

        Args:
            rest: Sends the requests.
            recorder: Is handed the events.
            now_ns: Returns the time of day in nanoseconds since the epoch.
        """
        self._pods = PodWriter(rest, now_ns)
        self._recorder = recorder

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Assign a pod to a node. Raises ApiError."""
        await self._pods.bind(pod, node_name)

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: WantedCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Set condition and nomination; None leaves one alone. Raises ApiError."""
        await self._pods.patch_pod_status(pod, condition, nominated_node_name)

    async def patch_pod_group_status(
        self, group: PodGroup, condition: WantedGroupCondition
    ) -> None:
        """Set a condition of a pod group. Raises ApiError."""
        await self._pods.patch_pod_group_status(group, condition)

    async def delete_pod(self, pod: Pod) -> None:
        """Begin to delete a pod. Raises ApiError."""
        await self._pods.delete_pod(pod)

    def record_event(self, event: Occurrence) -> None:
        """Have an event written some time soon."""
        self._recorder.record_event(event)
