"""Core events are written as kube-scheduler writes them: equal ones counted, similar combined."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

import msgspec
import pytest

from kubesched.api.core import ObjectReference, Pod
from kubesched.api.errors import ApiError, NotFoundError
from kubesched.api.media_types import STRATEGIC_MERGE_PATCH
from kubesched.api.meta import ObjectMeta
from kubesched.api.writes import EventRecord
from kubesched.client.core_event_recorder import CoreEventRecorder
from kubesched.simulator.virtual_loop import run

from .records import Answering, Plain, recorded_writes

START_NS = 1_714_557_600_000_000_000
EVENTS = "/api/v1/namespaces/ns/events"
LEASE = ObjectReference(kind="Lease", namespace="ns", name="l", uid="u")

RECORDED = [
    pytest.param(write, id=f"{name}-{at}")
    for name, writes in recorded_writes().items()
    for at, write in enumerate(writes)
    if write["path"].startswith("/api/v1/") and write["path"].endswith("/events")
]


def play(server: Answering, script: Callable[[CoreEventRecorder], Awaitable[None]]) -> None:
    """Run a recorder while a script records."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        recorder = CoreEventRecorder(
            server,
            lambda: START_NS + round(loop.time() * 1_000_000_000),
            Random(0),
            "default-scheduler",
        )
        task = asyncio.create_task(recorder.run())
        await script(recorder)
        await recorder.drain()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    run(main())


@pytest.mark.parametrize("write", RECORDED)
def test_events_of_leader_election_are_those_recorded(write: Plain) -> None:
    """From what happened follows the recorded request, key by key in the same order."""
    body = write["body"]
    involved = msgspec.convert(body["involvedObject"], ObjectReference)

    async def script(recorder: CoreEventRecorder) -> None:
        recorder.record(involved, "Normal", "LeaderElection", body["message"])

    server = Answering()
    play(server, script)
    (sent,) = server.sent
    assert ("POST", write["path"]) == (sent.method, sent.path)
    text = sent.body.decode().replace("2024-05-01T10:00:00Z", "<time>")
    text = text.replace(f"{START_NS:x}", body["metadata"]["name"].partition(".")[2])
    assert json.dumps(body, separators=(",", ":")) == text


def test_there_are_records() -> None:
    """The comparison above does not succeed for want of records."""
    assert len(RECORDED) > 5


def test_equal_events_are_counted() -> None:
    """The count, the time and the message are patched, in the order of their names."""

    async def script(recorder: CoreEventRecorder) -> None:
        for _ in range(3):
            recorder.record(LEASE, "Normal", "R", "words")
            await asyncio.sleep(2)

    server = Answering()
    play(server, script)
    path = f"{EVENTS}/l.{START_NS:x}"
    assert [
        ("POST", EVENTS),
        ("PATCH", path),
        ("PATCH", path),
    ] == [one[:2] for one in server.in_short]
    assert (b'{"count":3,"lastTimestamp":"2024-05-01T10:00:04Z","message":"words"}') == server.sent[
        2
    ].body
    assert STRATEGIC_MERGE_PATCH == server.sent[2].content_type


def test_an_event_that_is_gone_is_created_with_its_count() -> None:
    """If there is nothing to patch, the whole event is written."""

    async def script(recorder: CoreEventRecorder) -> None:
        recorder.record(LEASE, "Normal", "R", "words")
        await recorder.drain()
        await asyncio.sleep(5)
        recorder.record(LEASE, "Normal", "R", "words")

    server = Answering(b"{}", NotFoundError("gone"))
    play(server, script)
    assert ["POST", "PATCH", "POST"] == [method for method, _, _ in server.in_short]
    again = server.in_short[2][2]
    assert 2 == again["count"]
    times = (again["firstTimestamp"], again["lastTimestamp"])
    assert ("2024-05-01T10:00:00Z", "2024-05-01T10:00:05Z") == times


def test_similar_events_are_combined() -> None:
    """From the tenth message within ten minutes on there is one event for all."""

    async def script(recorder: CoreEventRecorder) -> None:
        for at in range(12):
            recorder.record(LEASE, "Normal", "R", f"words {at}")
            await recorder.drain()
        await asyncio.sleep(601)
        recorder.record(LEASE, "Normal", "R", "words 12")

    server = Answering()
    play(server, script)
    messages = [(method, body["message"]) for method, _, body in server.in_short]
    assert [
        *(("POST", f"words {at}") for at in range(9)),
        ("POST", "(combined from similar events): words 9"),
        ("PATCH", "(combined from similar events): words 10"),
        ("PATCH", "(combined from similar events): words 11"),
        ("POST", "words 12"),
    ] == messages
    assert [2, 3] == [body["count"] for method, _, body in server.in_short if method == "PATCH"]
    assert "" == server.in_short[9][2]["reportingComponent"]


def test_an_object_has_few_events() -> None:
    """Twenty-five at once, then one every five minutes; other objects and types do not count."""

    async def script(recorder: CoreEventRecorder) -> None:
        for _ in range(30):
            recorder.record(LEASE, "Normal", "R", "words")
        recorder.record(LEASE, "Warning", "R", "words")
        recorder.record(msgspec.structs.replace(LEASE, name="other"), "Normal", "R", "words")
        await asyncio.sleep(301)
        for _ in range(2):
            recorder.record(LEASE, "Normal", "R", "words")

    server = Answering()
    play(server, script)
    paths = [path.rpartition("/")[2] for _, path, _ in server.in_short]
    assert (28, 2) == (len(paths), paths.count("events") - 1)
    assert 31 == server.in_short[-1][2]["count"]


def test_core_events() -> None:
    """The scheduler's events are written without action and related object."""
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="u", resource_version="7"))

    async def script(recorder: CoreEventRecorder) -> None:
        recorder.record_event(
            EventRecord(pod, "Normal", "Scheduled", "Binding", "words", pod, "packer")
        )
        recorder.record_event(EventRecord(pod, "Strange", "R", "A", "N"))

    server = Answering()
    play(server, script)
    ((_, path, body),) = server.in_short
    assert EVENTS == path
    assert ("Scheduled", "words", "packer") == (
        *(body["reason"], body["message"]),
        body["reportingComponent"],
    )
    assert {"component": "packer"} == body["source"]
    assert {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion"} == {
        *body["involvedObject"]
    }


def test_without_an_answer_it_is_tried_again() -> None:
    """The first pause is a part of ten seconds, the others are ten."""

    async def script(recorder: CoreEventRecorder) -> None:
        recorder.record(LEASE, "Normal", "R", "words")
        await asyncio.sleep(31)

    unanswered = ApiError(0, "Unanswered", "reset")
    server = Answering(unanswered, unanswered, unanswered)
    play(server, script)
    assert 4 == len(server.sent)
