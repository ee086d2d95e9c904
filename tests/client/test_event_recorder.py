"""Events are written as kube-scheduler writes them: aggregated, and without delaying others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import msgspec
import pytest

from kubesched.api.core import EventRecord, Pod
from kubesched.api.errors import AlreadyExistsError, ApiError, NotFoundError
from kubesched.api.media_types import STRATEGIC_MERGE_PATCH
from kubesched.api.meta import ObjectMeta
from kubesched.api.volume import ObjectReference
from kubesched.client import event_recorder
from kubesched.client.event_recorder import EventRecorder, check_event_group
from kubesched.client.requests import Request
from tests.loops import on_virtual_time

from .records import Answering, Plain, recorded_cases, recorded_writes

START_NS = 1_714_557_600_000_000_000
UNANSWERED = ApiError(0, "Unanswered", "connection reset by peer")
EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"


class Server(Answering):
    """Records its requests with their times; can answer late."""

    def __init__(self, *answers: bytes | Exception, seconds: float = 0.0) -> None:
        super().__init__(*answers)
        self.seconds = seconds
        self.times: list[float] = []

    async def send(self, request: Request) -> bytes:
        """Keep the request and answer."""
        self.times.append(round(asyncio.get_running_loop().time(), 3))
        await asyncio.sleep(self.seconds)
        return await super().send(request)


def now_ns() -> int:
    """Return the virtual time as time of day."""
    return START_NS + round(asyncio.get_running_loop().time() * 1_000_000_000)


@asynccontextmanager
async def recording(server: Answering) -> AsyncIterator[EventRecorder]:
    """Run a recorder."""
    recorder = EventRecorder(server, now_ns, Random(0), "host")
    task = asyncio.create_task(recorder.run())
    yield recorder
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def event(name: str = "p", version: int = 1, **fields: Any) -> EventRecord:
    """Return an event about a pod."""
    metadata = ObjectMeta(name=name, namespace="ns", uid="u", resource_version=str(version))
    whole = {
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "no room",
        "reporting_controller": "default-scheduler",
    }
    return EventRecord(regarding=Pod(metadata=metadata), **(whole | fields))


@on_virtual_time
async def test_events_may_come_while_the_recorder_ends() -> None:
    """Events that were not sent yet are kept for the next run."""
    server = Server(seconds=1.0)
    recorder = EventRecorder(server, now_ns, Random(0), "host")
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    recorder.record_event(event("first"))
    await asyncio.sleep(0.5)
    task.cancel()
    for at in range(6):
        recorder.record_event(event(f"late-{at}"))
        await asyncio.sleep(0)
    with suppress(asyncio.CancelledError):
        await task
    again = asyncio.create_task(recorder.run())
    await asyncio.sleep(10)
    again.cancel()
    names = {body["regarding"]["name"] for _, _, body in server.in_short}
    assert {f"late-{at}" for at in range(6)} == names


RECORDED = recorded_cases(
    lambda write: write["method"] == "POST" and write["path"].startswith("/apis/events.k8s.io/")
)


@pytest.mark.parametrize("write", RECORDED)
@on_virtual_time
async def test_events_are_those_recorded(write: Plain) -> None:
    """From what happened follows the recorded request, key by key in the same order."""
    body = write["body"]
    reference = msgspec.convert(body["regarding"], ObjectReference)
    pod = Pod(
        metadata=ObjectMeta(
            name=reference.name,
            namespace=reference.namespace,
            uid=reference.uid,
            resource_version=reference.resource_version,
        )
    )
    record = EventRecord(
        pod,
        body["type"],
        body["reason"],
        body["action"],
        body["note"],
        reporting_controller=body["reportingController"],
    )
    server = Answering()
    async with recording(server) as recorder:
        recorder.record_event(record)
        await recorder.drain()
    (sent,) = server.sent
    assert ("POST", write["path"]) == (sent.method, sent.path)
    text = sent.body.decode().replace("2024-05-01T10:00:00.000000Z", "<microtime>")
    text = text.replace(f"{START_NS:x}", body["metadata"]["name"].partition(".")[2])
    text = text.replace("-host", "-<hostname>")
    assert json.dumps(body, separators=(",", ":"), ensure_ascii=False) == text


@on_virtual_time
async def test_a_second_event_makes_a_series() -> None:
    """The second is written as a count, as recorded; the third is only counted."""
    server = Server()
    async with recording(server) as recorder:
        for _ in range(3):
            recorder.record_event(event())
            await asyncio.sleep(1)
    (recorded,) = (
        write
        for write in recorded_writes()["bind-server-refuses"]
        if write["method"] == "PATCH" and "/events/" in write["path"]
    )
    observed = "2024-05-01T10:00:01.000000Z"
    series = {"count": 2, "lastObservedTime": observed}
    text = json.dumps(recorded["body"]).replace("<microtime>", observed)
    assert {"series": series} == json.loads(text)
    path = f"{EVENTS}/p.{START_NS:x}"
    assert [("POST", EVENTS), ("PATCH", path)] == [one[:2] for one in server.in_short]
    assert {"series": series} == server.in_short[1][2]
    assert STRATEGIC_MERGE_PATCH == server.sent[1].content_type


@pytest.mark.parametrize(
    ("other", "count"),
    [
        pytest.param(event(note="other words"), 1, id="the note does not count"),
        pytest.param(event(version=2), 2, id="the version of the pod does"),
        pytest.param(event(reason="Scheduled"), 2, id="the reason does"),
        pytest.param(event(action="Binding"), 2, id="the action does"),
        pytest.param(event(type="Normal"), 2, id="the type does"),
        pytest.param(event(reporting_controller="other"), 2, id="the profile does"),
        pytest.param(event(related=Pod(metadata=ObjectMeta(name="q"))), 2, id="related pods do"),
    ],
)
@on_virtual_time
async def test_equal_events_are_one_series(other: EventRecord, count: int) -> None:
    """Events are equal if they differ only in the note."""
    server = Answering()
    async with recording(server) as recorder:
        recorder.record_event(event())
        recorder.record_event(other)
        await recorder.drain()
    assert count == [method for method, _, _ in server.in_short].count("POST")


@on_virtual_time
async def test_series_end_after_six_minutes() -> None:
    """A last count is written when nothing more came; then the next event is a new one."""
    server = Server()
    async with recording(server) as recorder:
        for _ in range(5):
            recorder.record_event(event())
        recorder.record_event(event("single"))
        await asyncio.sleep(900)
        recorder.record_event(event())
        recorder.record_event(event("single"))
        await recorder.drain()
    sent = [
        (at, method, (body.get("series") or {}).get("count"))
        for at, (method, _, body) in zip(server.times, server.in_short, strict=True)
    ]
    assert [
        *((0, "POST", None), (0, "PATCH", 2), (0, "POST", None)),
        *((720, "PATCH", 5), (900, "POST", None), (900, "POST", None)),
    ] == sorted(sent, key=lambda one: (one[0], one[2] is None and one[1] != "POST"))


@on_virtual_time
async def test_live_series_are_written_every_half_hour() -> None:
    """A series that goes on is written again before the server drops the event."""
    server = Server()
    async with recording(server) as recorder:
        for _ in range(70):
            recorder.record_event(event())
            await asyncio.sleep(60)
    times = [at for at, one in zip(server.times, server.sent, strict=True) if one.method == "PATCH"]
    assert [60, 1800, 3600] == times
    assert 60 == server.in_short[-1][2]["series"]["count"]


@on_virtual_time
async def test_a_series_whose_event_is_gone_is_created() -> None:
    """If there is nothing to patch, the whole event is written, its count included."""
    server = Answering(b"{}", NotFoundError("gone"), b"{}")
    async with recording(server) as recorder:
        recorder.record_event(event())
        await recorder.drain()
        recorder.record_event(event())
        await recorder.drain()
    assert ["POST", "PATCH", "POST"] == [method for method, _, _ in server.in_short]
    first, _, again = (body for _, _, body in server.in_short)
    assert 2 == again["series"]["count"]
    assert first["metadata"] == again["metadata"]


@on_virtual_time
async def test_event_exists_already() -> None:
    """If two writes of one event meet, the series is written again later."""
    server = Answering(b"{}", NotFoundError("gone"), AlreadyExistsError("there"), b"{}")
    async with recording(server) as recorder:
        recorder.record_event(event())
        await recorder.drain()
        recorder.record_event(event())
        await asyncio.sleep(20)
    assert ["POST", "PATCH", "POST", "PATCH"] == [method for method, _, _ in server.in_short]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError(403, "Forbidden", "no"), id="forbidden"),
        pytest.param(ApiError(500, "InternalError", "no"), id="internal error"),
        pytest.param(AlreadyExistsError("there"), id="exists"),
    ],
)
@on_virtual_time
async def test_refused_events_are_not_tried_again(error: ApiError) -> None:
    """A request that the server refuses is not repeated."""
    server = Answering(error)
    async with recording(server) as recorder:
        recorder.record_event(event())
        await asyncio.sleep(100)
    assert 1 == len(server.sent)


@on_virtual_time
async def test_events_without_an_answer_are_tried_twelve_times(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There are ten seconds and up to a quarter more between attempts."""
    server = Server(*[UNANSWERED] * 20)
    async with recording(server) as recorder:
        recorder.record_event(event())
        await asyncio.sleep(200)
    assert "given up: p." in caplog.text
    pauses = {
        round(after - before, 3)
        for before, after in zip(server.times, server.times[1:], strict=False)
    }
    assert 12 == len(server.times)
    assert all(10 <= pause <= 12.501 for pause in pauses)
    assert len(pauses) > 5


@pytest.mark.slow
@on_virtual_time
async def test_bursts() -> None:
    """All events are written, though they come a hundred times faster than requests end."""
    server = Server(seconds=1.0)
    async with recording(server) as recorder:
        for at in range(10_000):
            recorder.record_event(event(f"p{at}"))
        await recorder.drain()
    names = [json.loads(request.body)["regarding"]["name"] for request in server.sent]
    assert sorted(f"p{at}" for at in range(10_000)) == sorted(names)


@on_virtual_time
async def test_too_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording does not wait; the oldest events are dropped."""
    monkeypatch.setattr(event_recorder, "_WAITING_MAX", 1000)
    server = Server(seconds=1.0)
    async with recording(server) as recorder:
        for at in range(1500):
            recorder.record_event(event(f"p{at}"))
        await recorder.drain()
    names = [body["regarding"]["name"] for _, _, body in server.in_short]
    assert sorted(f"p{at}" for at in range(500, 1500)) == sorted(names)


@on_virtual_time
async def test_an_outage_loses_nothing() -> None:
    """A few events are tried now and then, the others wait behind them."""
    server = Server(*[UNANSWERED] * 1000)
    async with recording(server) as recorder:
        for at in range(2000):
            recorder.record_event(event(f"p{at}"))
            await asyncio.sleep(0.01)
        await asyncio.sleep(60)
        assert server.answers, "none was written"
        server.sent.clear()
        server.answers.clear()
        await asyncio.sleep(13)
    assert sorted(f"p{at}" for at in range(2000)) == sorted(
        body["regarding"]["name"] for _, _, body in server.in_short
    )


@on_virtual_time
async def test_ending_with_a_server_that_does_not_answer() -> None:
    """Ending does not wait for it, with or without events left."""
    server = Server(*[b"{}"] * 48, *[UNANSWERED] * 100, seconds=1.0)
    async with recording(server) as recorder:
        for at in range(100):
            recorder.record_event(event(f"p{at}"))
        async with asyncio.timeout(5):
            await recorder.drain()
        assert len(server.sent) > 48


@on_virtual_time
async def test_only_so_many_events_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is finished early, its count written."""
    monkeypatch.setattr(event_recorder, "_REMEMBERED_MAX", 2)
    server = Answering()
    async with recording(server) as recorder:
        for _ in range(3):
            recorder.record_event(event("a"))
        for name in "bcda":
            recorder.record_event(event(name))
            await recorder.drain()
    names = [body["regarding"]["name"] for method, _, body in server.in_short if method == "POST"]
    assert ["a", "b", "c", "d", "a"] == names
    counts = [body["series"]["count"] for method, _, body in server.in_short if method == "PATCH"]
    assert [2, 3] == counts


@on_virtual_time
async def test_odd_events() -> None:
    """Unknown types are not written; names that events cannot have are replaced."""
    server = Answering()
    async with recording(server) as recorder:
        recorder.record_event(event(type="Strange"))
        recorder.record_event(event("UPPER"))
        await recorder.drain()
    ((_, _, body),) = server.in_short
    assert [8, 4, 4, 4, 12] == [len(part) for part in body["metadata"]["name"].split("-")]


@on_virtual_time
async def test_objects_without_namespace_have_their_events_in_the_default_one() -> None:
    """And what is related is written, too."""
    server = Answering()
    async with recording(server) as recorder:
        metadata = ObjectMeta(name="n", uid="u")
        recorder.record_event(
            EventRecord(Pod(metadata=metadata), "Normal", "R", "A", "N", Pod(metadata=metadata))
        )
        await recorder.drain()
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "n", "uid": "u"}
    ((_, path, body),) = server.in_short
    assert "/apis/events.k8s.io/v1/namespaces/default/events" == path
    assert (reference, reference) == (body["regarding"], body["related"])


RECORDED_ELECTIONS = recorded_cases(
    lambda write: write["path"].startswith("/api/v1/") and write["path"].endswith("/events")
)


@pytest.mark.parametrize("write", RECORDED_ELECTIONS)
@on_virtual_time
async def test_events_of_leader_election_are_those_recorded(write: Plain) -> None:
    """From what happened follows the recorded request, key by key in the same order."""
    body = write["body"]
    about = msgspec.convert(body["involvedObject"], ObjectReference)
    server = Answering()
    async with recording(server) as recorder:
        recorder.record_election(about, body["message"], "default-scheduler")
        await recorder.drain()
    (sent,) = server.sent
    assert ("POST", write["path"]) == (sent.method, sent.path)
    text = sent.body.decode().replace("2024-05-01T10:00:00Z", "<time>")
    text = text.replace(f"{START_NS:x}", body["metadata"]["name"].partition(".")[2])
    assert json.dumps(body, separators=(",", ":")) == text


def test_elections_are_recorded() -> None:
    """The comparison above does not succeed for want of records."""
    assert len(RECORDED_ELECTIONS) > 5


@pytest.mark.parametrize(
    ("answer", "warnings"),
    [
        pytest.param(b"{}", 0, id="it serves the group"),
        pytest.param(NotFoundError("the server could not find the requested resource"), 1, id="no"),
        pytest.param(UNANSWERED, 0, id="nobody knows"),
    ],
)
def test_discovering_the_group(
    answer: bytes | Exception, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The request is the recorded one; a server without the group is worth a warning."""
    server = Answering(answer)
    asyncio.run(check_event_group(server))
    assert [("GET", "/apis/events.k8s.io/v1", None)] == server.in_short
    assert warnings == len(caplog.records)
