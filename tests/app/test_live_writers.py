"""A process's client sends each write as one request, and passes events to the recorder."""

from __future__ import annotations

import asyncio
from random import Random

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import PodGroup
from kubesched.app.live_writers import LiveClient
from kubesched.client.event_recorder import EventRecorder
from kubesched.scheduler.api_client import ApiClient
from tests.client.records import Answering


def test_writes_and_events() -> None:
    """The event is written by the recorder, last."""
    server = Answering()
    metadata = ObjectMeta(name="p", namespace="ns", uid="u")
    pod, group = Pod(metadata=metadata), PodGroup(metadata=metadata)
    condition = ConditionPatch("T", "True", "R", "M")

    async def main() -> None:
        recorder = EventRecorder(server, lambda: 0, Random(0), "host")
        client: ApiClient = LiveClient(server, lambda: 0, recorder)
        await client.patch_pod_status(pod, condition, "n")
        await client.bind(pod, "n")
        await client.delete_pod(pod)
        await client.patch_pod_group_status(group, condition)
        client.record_event(EventRecord(pod, "Normal", "R", "A", "N"))
        running = asyncio.create_task(recorder.run())
        await recorder.drain()
        running.cancel()

    asyncio.run(main())
    assert [
        ("PATCH", "/api/v1/namespaces/ns/pods/p/status"),
        ("POST", "/api/v1/namespaces/ns/pods/p/binding"),
        ("DELETE", "/api/v1/namespaces/ns/pods/p"),
        ("PATCH", "/apis/scheduling.k8s.io/v1alpha2/namespaces/ns/podgroups/p/status"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events"),
    ] == [one[:2] for one in server.in_short]
