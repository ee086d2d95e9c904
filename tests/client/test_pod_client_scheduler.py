"""The scheduler can be handed the client, and its event handlers can follow informers."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from kubesched.api.core import Pod
from kubesched.api.event_handler import ResourceEventHandler
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import PodGroup
from kubesched.api.writes import ConditionPatch, EventRecord
from kubesched.client.core_event_recorder import CoreEventRecorder
from kubesched.client.event_recorder import EventRecorder
from kubesched.client.pod_client import Recorder, SchedulerClient
from kubesched.scheduler.api_client import ApiClient
from kubesched.scheduler.eventhandlers import EventHandlers

from .records import Answering

if TYPE_CHECKING:

    def fits(
        client: SchedulerClient,
        handlers: EventHandlers,
        recorders: tuple[EventRecorder, CoreEventRecorder],
    ) -> tuple[ApiClient, ResourceEventHandler, Recorder, Recorder]:
        """Type checkers see that the rooms fit together although they do not know each other."""
        return client, handlers, *recorders


class Kept:
    """A recorder that keeps what it is handed."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def record_event(self, event: object) -> None:
        """Keep it."""
        self.events.append(event)


def test_writes_and_events() -> None:
    """Each write is one request, each event goes to the recorder."""
    server, kept = Answering(), Kept()
    metadata = ObjectMeta(name="p", namespace="ns", uid="u")
    pod, group = Pod(metadata=metadata), PodGroup(metadata=metadata)
    event = EventRecord(pod, "Normal", "R", "A", "N")

    async def main() -> None:
        client: ApiClient = SchedulerClient(server, kept, lambda: 0)
        await client.patch_pod_status(pod, ConditionPatch("T", "True", "R", "M"), "n")
        await client.bind(pod, "n")
        await client.delete_pod(pod)
        condition = ConditionPatch("T", "True", "R", "M")
        await client.patch_pod_group_status(group, condition)
        client.record_event(event)

    asyncio.run(main())
    assert [
        ("PATCH", "/api/v1/namespaces/ns/pods/p/status"),
        ("POST", "/api/v1/namespaces/ns/pods/p/binding"),
        ("DELETE", "/api/v1/namespaces/ns/pods/p"),
        ("PATCH", "/apis/scheduling.k8s.io/v1alpha2/namespaces/ns/podgroups/p/status"),
    ] == [one[:2] for one in server.in_short]
    assert [event] == kept.events


def test_recorders_have_the_protocol() -> None:
    """Both recorders accept the scheduler's events."""

    async def main() -> int:
        recorders: list[Recorder] = [
            EventRecorder(Answering(), lambda: 0, Random(0), "host"),
            CoreEventRecorder(Answering(), lambda: 0, Random(0), "c"),
        ]
        for recorder in recorders:
            recorder.record_event(EventRecord(Pod(), "Normal", "R", "A", "N"))
        return len(recorders)

    assert 2 == asyncio.run(main())
