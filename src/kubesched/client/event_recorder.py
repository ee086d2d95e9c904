"""EventRecorder writes events of events.k8s.io/v1, and those of leader election.

Events that differ only in their note form one series: the first is created, the second turns it
into a series of two, and further ones are counted. The count is written every half hour, and when
no event of the series has occurred for six minutes.

Events are sent in the background, so that callers never wait.

Upstream: staging/src/k8s.io/client-go/tools/events/event_broadcaster.go, event_recorder.go;
          staging/src/k8s.io/client-go/tools/reference/ref.go, tools/record/util/util.go;
          staging/src/k8s.io/client-go/tools/record/event.go, for leader election (v1.36)
Differs:  at most 65,536 series are kept; beyond that the oldest is finished early. Events of leader
          election are not counted: a process becomes the leader once. On servers without
          events.k8s.io/v1, those before 1.19, pods get no events. Sixteen senders write the
          events in the order in which they were recorded, where upstream starts a goroutine for
          each; a sender retries its event before it takes the next, so that few events use up
          their twelve tries in an outage. When more than 262,144 events wait (some 150 MB), the
          oldest is dropped; upstream has no limit.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final
from uuid import UUID

import msgspec

from kubesched.api.core import CoreEvent, Event, EventRecord, Pod
from kubesched.api.errors import AlreadyExistsError, ApiError, NotFoundError
from kubesched.api.media_types import STRATEGIC_MERGE_PATCH
from kubesched.api.scheme import kind_of
from kubesched.api.times import micro_time, moment_at, second_time
from kubesched.api.volume import ObjectReference
from kubesched.client.requests import Request, Rest, path_of

_EVENTS: Final = kind_of(Event)
_CORE_EVENTS: Final = kind_of(CoreEvent)
_TYPES: Final = frozenset(("Normal", "Warning"))
_DEFAULT_NAMESPACE: Final = "default"
_NAME_LENGTH_MAX: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_REMEMBERED_MAX: Final = 65_536
_FINISH_SECONDS: Final = 6 * 60.0
_FINISH_NS: Final = 6 * 60 * 1_000_000_000
_REFRESH_SECONDS: Final = 30 * 60.0
_DISCOVERY_SECONDS: Final = 32.0
# More than a burst of the largest supported cluster, with 150,000 pods.
_WAITING_MAX: Final = 262_144
_SENDERS: Final = 16
_TRIES_MAX: Final = 12
_RETRY_SECONDS: Final = 10.0
_RETRY_JITTER: Final = 0.25
_DROPS_PER_WARNING: Final = 1000

log = logging.getLogger(__name__)

Send = Callable[[], Awaitable[object]]
_Key = tuple[str, str, str, str, ObjectReference, ObjectReference | None]


@dataclass(slots=True)
class _Remembered:
    """An event that was recorded, and its count; with a count of 1 it is not a series yet."""

    name: str
    key: _Key
    note: str
    time_ns: int
    observed_ns: int
    count: int = 1


class EventRecorder:
    """Queues events and writes them, so that who records one does not wait."""

    def __init__(
        self, rest: Rest, now_ns: Callable[[], int], random: Random, hostname: str
    ) -> None:
        """Set up while a loop runs; `run` begins.

        `now_ns` returns the time of day in nanoseconds since the epoch, `random` spreads retries,
        and the hostname is a part of the events' `reportingInstance`.
        """
        self._rest = rest
        self._now_ns = now_ns
        self._random = random
        self._hostname = hostname
        self._remembered: dict[_Key, _Remembered] = {}
        self._queue: asyncio.Queue[tuple[str, Send]] = asyncio.Queue(_WAITING_MAX)
        self._is_unanswered = asyncio.Event()
        self._dropped = 0

    def record_event(self, event: EventRecord) -> None:
        """Queue an event for writing; never waits, never raises."""
        if event.type not in _TYPES:
            log.error("Unsupported type of event: %s", event.type)
            return
        related = None if event.related is None else _reference_to(event.related)
        regarding = _reference_to(event.regarding)
        key = (
            *(event.type, event.action, event.reason, event.reporting_controller),
            *(regarding, related),
        )
        now_ns = self._now_ns()
        known = self._remembered.get(key)
        if known is None:
            name = self._name(regarding, now_ns)
            known = self._remembered[key] = _Remembered(name, key, event.note, now_ns, now_ns)
            self._queue_write(known)
            self._forget_oldest()
            return
        known.count += 1
        known.observed_ns = now_ns
        if known.count == 2:
            self._queue_write(known)

    def record_election(self, about: ObjectReference, message: str, component: str) -> None:
        """Queue an event about a lock, in the core group; never waits."""
        now_ns = self._now_ns()
        time = second_time(moment_at(now_ns))
        name, namespace = self._name(about, now_ns), about.namespace or _DEFAULT_NAMESPACE
        event = {
            "kind": "Event",
            "apiVersion": _CORE_EVENTS.api_version,
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": _plain_reference(about),
            "reason": "LeaderElection",
            "message": message,
            "source": {"component": component},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": "",
        }
        body = msgspec.json.encode(event)
        request = Request(method="POST", path=path_of(_CORE_EVENTS, namespace), body=body)
        self._put(name, partial(self._rest.send, request))

    def _name(self, about: ObjectReference, now_ns: int) -> str:
        """Return a name for an event: the object's name and the time, or a UUID if it is odd."""
        name = f"{about.name}.{now_ns:x}"
        if len(name) <= _NAME_LENGTH_MAX and _NAME.fullmatch(name):
            return name
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def _queue_write(self, known: _Remembered) -> None:
        # The body is built when it is sent, to save memory.
        self._put(known.name, partial(self._write, known, known.count, known.observed_ns))

    def _put(self, name: str, send: Send) -> None:
        """Queue the event of a name.

        `send` sends it. It raises `ApiError` if that fails, with code 0 if a retry may succeed.
        """
        if self._queue.full():
            # The newest events are more useful.
            oldest, _ = self._queue.get_nowait()
            self._queue.task_done()
            self._dropped += 1
            if self._dropped % _DROPS_PER_WARNING == 1:
                log.warning("Dropped %s events, as too many wait: %s", self._dropped, oldest)
        self._queue.put_nowait((name, send))

    def _forget_oldest(self) -> None:
        if len(self._remembered) > _REMEMBERED_MAX:
            oldest = self._remembered.pop(next(iter(self._remembered)))
            if oldest.count > 2:
                self._queue_write(oldest)

    def _body(self, known: _Remembered, count: int, observed_ns: int) -> dict[str, Any]:
        type_, action, reason, controller, regarding, related = known.key
        namespace = regarding.namespace or _DEFAULT_NAMESPACE
        series, others = {}, {}
        if count > 1:
            observed = micro_time(moment_at(observed_ns))
            series = {"series": {"count": count, "lastObservedTime": observed}}
        if related is not None:
            others = {"related": _plain_reference(related)}
        return {
            "kind": "Event",
            "apiVersion": _EVENTS.api_version,
            "metadata": {"name": known.name, "namespace": namespace},
            "eventTime": micro_time(moment_at(known.time_ns)),
            **series,
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._hostname}",
            "action": action,
            "reason": reason,
            "regarding": _plain_reference(regarding),
            **others,
            "note": known.note,
            "type": type_,
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }

    async def _write(self, known: _Remembered, count: int, observed_ns: int) -> None:
        """Write an event, or the count of its series, as of an earlier time.

        Raises ApiError if the server refuses; with code 0 if there was no answer, or if the event
        was written concurrently.
        """
        body = self._body(known, count, observed_ns)
        path = path_of(_EVENTS, body["metadata"]["namespace"])
        series = body.get("series")
        if series is not None and await self._patch(f"{path}/{known.name}", {"series": series}):
            return
        try:
            await self._rest.send(Request(method="POST", path=path, body=msgspec.json.encode(body)))
        except AlreadyExistsError as error:
            if series is None:
                raise
            raise ApiError(0, error.reason, error.message) from None

    async def _patch(self, path: str, changed: Mapping[str, Any]) -> bool:
        """Change fields of an event; return False if it has expired or was never written."""
        body = msgspec.json.encode(changed)
        request = Request(method="PATCH", path=path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        try:
            await self._rest.send(request)
        except NotFoundError:
            return False
        return True

    # In the background.

    async def run(self) -> None:
        """Send events and finish series, until cancelled; what is queued later is kept."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_SENDERS):
                group.create_task(self._send_all(), name="sender of events")
            group.create_task(_every(_FINISH_SECONDS, self._finish), name="finished series")
            group.create_task(_every(_REFRESH_SECONDS, self._refresh), name="live series")

    async def drain(self) -> None:
        """Wait until all recorded events are written, or the server stops answering."""
        ends = [
            asyncio.ensure_future(self._queue.join()),
            asyncio.ensure_future(self._is_unanswered.wait()),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def _send_all(self) -> None:
        while True:
            name, send = await self._queue.get()
            try:
                await self._send(name, send)
            finally:
                self._queue.task_done()

    async def _send(self, name: str, send: Send) -> None:
        for tries in range(1, _TRIES_MAX + 1):
            try:
                await send()
            except ApiError as error:
                if error.code:
                    self._is_unanswered.clear()
                    # The event itself is invalid or unwanted: a retry would not help.
                    level = logging.DEBUG if error.reason == "AlreadyExists" else logging.ERROR
                    log.log(level, "Server rejected event, not tried again: %s: %s", name, error)
                    return
                if tries == _TRIES_MAX:
                    log.error("Unable to write event, given up: %s: %s", name, error)
                    return
                log.info("Unable to write event, to be tried again: %s: %s", name, error)
            else:
                self._is_unanswered.clear()
                return
            self._is_unanswered.set()
            await asyncio.sleep(_RETRY_SECONDS * (1 + _RETRY_JITTER * self._random.random()))

    async def _refresh(self) -> None:
        """Write all series again, before the server expires them."""
        for known in list(self._remembered.values()):
            if known.count > 1:
                await self._write_now(known)

    async def _finish(self) -> None:
        """Forget events without a new occurrence; of a series, write the final count first."""
        before_ns = self._now_ns() - _FINISH_NS
        for key, known in list(self._remembered.items()):
            if known.observed_ns >= before_ns:
                continue
            count = known.count
            is_written = count == 1 or await self._write_now(known)
            if is_written and known.count == count:
                self._remembered.pop(key, None)

    async def _write_now(self, known: _Remembered) -> bool:
        """Write a series; return False if it must be written again."""
        try:
            await self._write(known, known.count, known.observed_ns)
        except ApiError as error:
            log.info("Unable to write series of events %s: %s", known.name, error)
            return error.code != 0
        return True


async def _every(seconds: float, do: Callable[[], Any]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await do()


def _reference_to(pod: Pod) -> ObjectReference:
    metadata = pod.metadata
    return ObjectReference(
        kind="Pod",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version="v1",
        resource_version=metadata.resource_version,
    )


def _plain_reference(reference: ObjectReference) -> dict[str, str]:
    """Return the reference as JSON values, in Go's order, without empty fields."""
    plain = {
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
        "apiVersion": reference.api_version,
        "resourceVersion": reference.resource_version,
        "fieldPath": reference.field_path,
    }
    return {name: value for name, value in plain.items() if value}


async def check_event_group(rest: Rest) -> None:
    """Warn if a server does not serve events.k8s.io/v1; other failures show elsewhere."""
    path = f"/apis/{_EVENTS.api_version}"
    try:
        await rest.send(Request(path=path, timeout_seconds=_DISCOVERY_SECONDS))
    except NotFoundError:
        log.warning("The API server does not serve %s: pods get no events", path)
    except ApiError as error:
        log.debug("Unable to discover %s: %s", path, error)
