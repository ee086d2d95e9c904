"""Writers of a process: to an API server, or, in a dry run, to a report of what would be written.

Upstream: pkg/scheduler/framework/plugins: dynamicresources, volumebinding (v1.36)
Differs:  upstream has no dry run. Plugins are not called from PreBind on, nor extenders to bind:
          volumes and devices stay reserved for a pod and are never written, so a second pod of the
          same ResourceClaim waits until another scheduler allocates the claim.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

from msgspec.structs import asdict

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod, PodExtendedResourceClaimStatus
from kubesched.api.errors import ApiError
from kubesched.api.resource import ResourceClaim
from kubesched.api.scheduling import PodGroup
from kubesched.api.times import moment_at, second_time
from kubesched.client.claim_client import ClaimClient, VolumeClient
from kubesched.client.event_recorder import EventRecorder
from kubesched.client.pod_client import PodClient
from kubesched.client.requests import Rest
from kubesched.scheduler.background import drain
from kubesched.scheduler.pod_lister import PodLister

log = logging.getLogger(__name__)


class LiveClient(PodClient):
    """The `ApiClient` of a process."""

    def __init__(self, rest: Rest, now_ns: Callable[[], int], recorder: EventRecorder) -> None:
        """Set up; `now_ns` returns the time of day in nanoseconds since the epoch.

        The creator runs the recorder, which writes the events.
        """
        super().__init__(rest, now_ns)
        self._recorder = recorder

    def record_event(self, event: EventRecord) -> None:
        """Queue an event for writing; returns at once."""
        self._recorder.record_event(event)


class LiveClaimWriter(ClaimClient):
    """The `ClaimWriter` of DynamicResources."""

    def __init__(
        self, rest: Rest, api: LiveClient, now_ns: Callable[[], int], random: Random
    ) -> None:
        """Set up; `now_ns` returns the time of day in nanoseconds since the epoch.

        `api` writes pods and events; `random` spreads retries.
        """
        super().__init__(rest, random)
        self._api = api
        self._now_ns = now_ns
        self._tasks: set[asyncio.Task[None]] = set()

    def now(self) -> str:
        """Return the time of day, RFC 3339."""
        return second_time(moment_at(self._now_ns()))

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Record the event `BindingConditionsPending`."""
        self._api.record_event(
            EventRecord(
                pod,
                "Normal",
                "BindingConditionsPending",
                "Scheduling",
                f"waiting for binding conditions for device on node {node_name}",
                reporting_controller=pod.spec.scheduler_name,
            )
        )

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set the claim that provides the pod's extended resources."""
        await self._api.patch_extended_resource_claim_status(pod, status)

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Write the status in the background."""
        self._in_background(self.update_status(claim), f"deallocate {_name(claim)}")

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Delete the claim in the background."""
        self._in_background(self.delete(claim), f"delete {_name(claim)}")

    def release_soon(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove the pod from the claim in the background."""
        self._in_background(self.release(claim, pod), f"release {_name(claim)}")

    async def drain(self) -> None:
        """Wait for background writes."""
        await drain(self._tasks)

    def _in_background(self, work: Coroutine[Any, Any, object], what: str) -> None:
        task = asyncio.ensure_future(_logged(work, what))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(work: Awaitable[object], what: str) -> None:
    try:
        await work
    except ApiError as error:
        log.error("Failed to %s: %s", what, error)


def _name(claim: ResourceClaim) -> str:
    return f"claim {claim.metadata.key}"


class LiveVolumeWriter(VolumeClient):
    """The `VolumeWriter` of VolumeBinding."""

    def __init__(self, rest: Rest, pods: PodLister) -> None:
        """Take the connection, and the observed pods."""
        super().__init__(rest)
        self._pods = pods

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod exists in the informer cache."""
        return self._pods.get(namespace, name) is not None


# Dry runs.

Plain = dict[str, Any]


class DryRunClient:
    """An `ApiClient` that only reports.

    A pod that would be bound remains assumed, so later pods are scheduled around it. Pods that
    would be evicted stay.
    """

    def __init__(self, report: Callable[[Plain], None]) -> None:
        """Take a function that gets each report: JSON values with an `action`."""
        self._report = report

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Report a binding."""
        self._report({"action": "bind", "pod": pod.metadata.key, "node": node_name})

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Report a pod's condition and nominated node."""
        report: Plain = {"action": "status", "pod": pod.metadata.key}
        if condition is not None:
            report |= asdict(condition)
        if nominated_node_name:
            report["nominatedNode"] = nominated_node_name
        if len(report) > 2:
            self._report(report)

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Report a pod group's condition."""
        self._report({"action": "status", "podGroup": group.metadata.key, **asdict(condition)})

    async def delete_pod(self, pod: Pod) -> None:
        """Report an eviction."""
        self._report({"action": "evict", "pod": pod.metadata.key, "node": pod.spec.node_name})

    def record_event(self, event: EventRecord) -> None:
        """Ignore the event; the other reports contain the same information."""
