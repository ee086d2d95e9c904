"""RecordingApi is the scheduler's way to the objects: every write goes as the real one sends it.

Upstream: pkg/scheduler/util/utils.go, client-go/tools/events/event_broadcaster.go (v1.36)
Differs:  series of events are written at the second event only; time is the loop's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from kubesched.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from kubesched.api.errors import ApiError
from kubesched.api.scheduling import PodGroup
from kubesched.framework.volume_writer import VolumeWriteError
from kubesched.scheduler.api_client import EventRecord, PodConditionPatch, PodGroupConditionPatch
from kubesched.simulator.timestamps import timestamp

from .requests_on_objects import ObjectRequests, Plain

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

HALF_WAY_SECONDS: Final = 0.001
_APART_SECONDS: Final = 0.00001


class Sent(msgspec.Struct):
    """A request of the scheduler.

    Attributes:
        steps: How many steps of the script were done when it arrived.
        method, path, body: What was asked.
        code: The answer.
    """

    steps: int
    method: str
    path: str
    body: Plain
    code: int


class RecordingApi:
    """An `ApiClient` and a `VolumeWriter`.

    Attributes:
        sent: The requests that have arrived, in order; those of several schedulers together.
    """

    def __init__(
        self, requests: ObjectRequests, sent: list[Sent], steps: Callable[[], int]
    ) -> None:
        self._requests = requests
        self._steps = steps
        self.sent = sent
        self._events: dict[tuple[object, ...], tuple[str, int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_arrival = 0.0

    async def drain(self) -> None:
        """Wait until every event is written."""
        await asyncio.gather(*self._tasks)

    # kubesched.scheduler.api_client.ApiClient

    async def bind(self, pod: Pod, node_name: str) -> None:
        """POST the Binding."""
        metadata = pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
            },
            "target": {"kind": "Node", "name": node_name},
        }
        await self._send("POST", f"{_path(pod)}/binding", body)

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: PodConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """PATCH what differs from the pod in hand."""
        now = timestamp(asyncio.get_running_loop().time())
        status = status_patch(pod, condition, nominated_node_name, now)
        if status:
            await self._send("PATCH", f"{_path(pod)}/status", {"status": status})

    async def patch_pod_group_status(
        self, group: PodGroup, condition: PodGroupConditionPatch
    ) -> None:
        """No recorded scenario has pod groups."""
        raise NotImplementedError

    async def delete_pod(self, pod: Pod) -> None:
        """DELETE with the pod's own grace period."""
        await self._send("DELETE", _path(pod), {"kind": "DeleteOptions"})

    def record_event(self, event: EventRecord) -> None:
        """POST an event; the second of its kind is a PATCH of the first, later ones are nothing."""
        body = event_body(event)
        key = tuple(str(part) for name, part in body.items() if name != "note")
        path = f"/apis/events.k8s.io/v1/namespaces/{event.regarding.metadata.namespace}/events"
        name, count = self._events.get(key, ("", 0))
        if count == 0:
            name = f"{event.regarding.metadata.name}.{len(self._events):016x}"
            self._later("POST", path, {"metadata": {"name": name}, **body})
        elif count == 1:
            self._later("PATCH", f"{path}/{name}", {"series": {"count": 2}})
        self._events[key] = (name, count + 1)

    # kubesched.framework.volume_writer.VolumeWriter

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """PUT the volume."""
        path = f"/api/v1/persistentvolumes/{volume.metadata.name}"
        return await self._put(path, volume)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """PUT the claim."""
        metadata = claim.metadata
        path = f"/api/v1/namespaces/{metadata.namespace}/persistentvolumeclaims/{metadata.name}"
        return await self._put(path, claim)

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod exists."""
        return self._requests.find(f"/api/v1/namespaces/{namespace}/pods/{name}") is not None

    async def _put(self, path: str, item: T) -> T:
        kind = "PersistentVolume" if isinstance(item, PersistentVolume) else "PersistentVolumeClaim"
        body: Plain = {**msgspec.to_builtins(item), "apiVersion": "v1", "kind": kind}
        try:
            await self._send("PUT", path, body)
        except ApiError as refusal:
            raise VolumeWriteError(str(refusal)) from refusal
        return msgspec.convert(self._requests.find(path), type(item))

    def _later(self, method: str, path: str, body: Plain) -> None:
        task = asyncio.ensure_future(self._send_event(method, path, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_event(self, method: str, path: str, body: Plain) -> None:
        await self._arrive()
        self.sent.append(Sent(self._steps(), method, path, body, 201 if method == "POST" else 200))

    async def _arrive(self) -> None:
        """Wait until a request that is sent now arrives: after those sent before it."""
        now = asyncio.get_running_loop().time()
        self._last_arrival = max(now + HALF_WAY_SECONDS, self._last_arrival + _APART_SECONDS)
        await asyncio.sleep(self._last_arrival - now)

    async def _send(self, method: str, path: str, body: Plain) -> None:
        await self._arrive()
        sent = Sent(self._steps(), method, path, body, 0)
        self.sent.append(sent)
        try:
            sent.code = self._requests.send(method, path, body)
        except ApiError as refusal:
            sent.code = refusal.code
            raise
        finally:
            await asyncio.sleep(HALF_WAY_SECONDS)


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def status_patch(
    pod: Pod, condition: PodConditionPatch | None, nominated_node_name: str | None, now: str
) -> Plain:
    """Return the strategic merge patch of a pod's status; empty if nothing changes."""
    patch: Plain = {}
    known = {item.type: msgspec.to_builtins(item) for item in pod.status.conditions}
    if condition is not None:
        wanted = msgspec.to_builtins(condition) | {
            "observedGeneration": pod.metadata.generation,
            "lastProbeTime": None,
            "lastTransitionTime": now,
        }
        old = known.get(condition.type, {})
        if old.get("status") == condition.status:
            wanted["lastTransitionTime"] = old.get("lastTransitionTime")
        changes = {
            name: value or None
            for name, value in wanted.items()
            if name == "type" or not old or value != old.get(name, type(value)())
        }
        same = {"type", "observedGeneration"} >= changes.keys()
        if not same:
            if known:
                order = list(known | {condition.type: None})
                patch["$setElementOrder/conditions"] = [{"type": name} for name in order]
            patch["conditions"] = [changes]
    nominated = pod.status.nominated_node_name
    if nominated_node_name is not None and nominated_node_name != nominated:
        patch["nominatedNodeName"] = nominated_node_name or None
    return patch


def event_body(event: EventRecord) -> Plain:
    """Return an event, without its name and times."""
    body: Plain = {
        "type": event.type,
        "reason": event.reason,
        "action": event.action,
        "note": event.note,
        "reportingController": event.reporting_controller,
        "regarding": _reference(event.regarding),
    }
    return body if event.related is None else body | {"related": _reference(event.related)}


def _reference(pod: Pod) -> Plain:
    metadata = pod.metadata
    return {
        "kind": "Pod",
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "apiVersion": "v1",
        "resourceVersion": metadata.resource_version,
    }
