"""EventRecorder writes events of events.k8s.io/v1.

Events that differ only in their note form one series: the first is created, the second turns it
into a series of two, and further ones are counted. The count is written every half hour, and when
no event of the series has occurred for six minutes.

Upstream: staging/src/k8s.io/client-go/tools/events/event_broadcaster.go, event_recorder.go (v1.36)
Differs:  at most 65,536 series are kept; beyond that the oldest is finished early. See also
          `client.event_queue`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.api.core import ObjectReference
from kubesched.api.errors import AlreadyExistsError, ApiError
from kubesched.api.events import Event
from kubesched.api.scheme import kind_of
from kubesched.api.times import micro_time, moment_at
from kubesched.api.writes import EventRecord
from kubesched.client.event_queue import (
    EVENT_TYPES,
    EventQueue,
    RetryError,
    event_name,
    event_namespace,
    patch_event,
    plain_reference,
    reference_to,
)
from kubesched.client.requests import Request, Rest, path_of

_EVENTS: Final = kind_of(Event)
_REMEMBERED_MAX: Final = 65_536
_FINISH_SECONDS: Final = 6 * 60.0
_FINISH_NS: Final = 6 * 60 * 1_000_000_000
_REFRESH_SECONDS: Final = 30 * 60.0
_RETRY_SECONDS: Final = 10.0
_RETRY_JITTER: Final = 0.25
_DISCOVERY_SECONDS: Final = 32.0

log = logging.getLogger(__name__)

_Key = tuple[str, str, str, str, ObjectReference, ObjectReference | None]


class _Remembered:
    """An event that was recorded, and its count; with a count of 1 it is not a series yet."""

    __slots__ = ("count", "key", "name", "note", "observed_ns", "time_ns")

    def __init__(self, name: str, key: _Key, note: str, time_ns: int) -> None:
        self.name = name
        self.key = key
        self.note = note
        self.time_ns = time_ns
        self.count = 1
        self.observed_ns = time_ns


class _Write(NamedTuple):
    """A write as of the time of the event; the body is built when it is sent, to save memory."""

    known: _Remembered
    occurrences: int
    observed_ns: int


def _words(write: _Write) -> str:
    return f"{write.known.name} {write.known.key[2]}"


class EventRecorder:
    """Records events."""

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
        self._queue = EventQueue(self._write, _words, self._delay_seconds)

    def _delay_seconds(self, tries: int) -> float:
        return _RETRY_SECONDS * (1 + _RETRY_JITTER * self._random.random())

    def record_event(self, event: EventRecord) -> None:
        """Queue an event for writing; never waits, never raises."""
        if event.type not in EVENT_TYPES:
            log.error("Unsupported type of event: %s", event.type)
            return
        related = None if event.related is None else reference_to(event.related)
        regarding = reference_to(event.regarding)
        key = (
            *(event.type, event.action, event.reason, event.reporting_controller),
            *(regarding, related),
        )
        now_ns = self._now_ns()
        known = self._remembered.get(key)
        if known is None:
            name = event_name(regarding, now_ns, self._random)
            known = self._remembered[key] = _Remembered(name, key, event.note, now_ns)
            self._put(known)
            self._forget_oldest()
            return
        known.count += 1
        known.observed_ns = now_ns
        if known.count == 2:
            self._put(known)

    def _put(self, known: _Remembered) -> None:
        self._queue.put(_Write(known, known.count, known.observed_ns))

    def _forget_oldest(self) -> None:
        if len(self._remembered) > _REMEMBERED_MAX:
            oldest = self._remembered.pop(next(iter(self._remembered)))
            if oldest.count > 2:
                self._put(oldest)

    def _body(self, write: _Write) -> dict[str, Any]:
        known = write.known
        type_, action, reason, controller, regarding, related = known.key
        series, others = {}, {}
        if write.occurrences > 1:
            observed = micro_time(moment_at(write.observed_ns))
            series = {"series": {"count": write.occurrences, "lastObservedTime": observed}}
        if related is not None:
            others = {"related": plain_reference(related)}
        return {
            "kind": "Event",
            "apiVersion": _EVENTS.api_version,
            "metadata": {"name": known.name, "namespace": event_namespace(regarding)},
            "eventTime": micro_time(moment_at(known.time_ns)),
            **series,
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._hostname}",
            "action": action,
            "reason": reason,
            "regarding": plain_reference(regarding),
            **others,
            "note": known.note,
            "type": type_,
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }

    async def _write(self, write: _Write) -> None:
        """Write an event, or the count of its series.

        Raises:
            ApiError: The server refused, or there was no answer.
            RetryError: The event was written concurrently.
        """
        known, body = write.known, self._body(write)
        namespace = event_namespace(known.key[4])
        series = body.get("series")
        if series is not None:
            path = path_of(_EVENTS, namespace, known.name)
            if await patch_event(self._rest, path, {"series": series}):
                return
        request = Request(
            method="POST", path=path_of(_EVENTS, namespace), body=msgspec.json.encode(body)
        )
        try:
            await self._rest.send(request)
        except AlreadyExistsError as error:
            if series is None:
                raise
            raise RetryError(str(error)) from None

    # Periodic work.

    async def run(self) -> None:
        """Send events and finish series, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(), name="events")
            group.create_task(_every(_FINISH_SECONDS, self._finish), name="finished series")
            group.create_task(_every(_REFRESH_SECONDS, self._refresh), name="live series")

    async def drain(self) -> None:
        """Wait until all recorded events are written, or the server stops answering."""
        await self._queue.drain()

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
            await self._write(_Write(known, known.count, known.observed_ns))
        except RetryError:
            return False
        except ApiError as error:
            log.info("Unable to write series of events %s: %s", known.name, error)
            return error.code != 0
        return True


async def _every(seconds: float, do: Callable[[], Any]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await do()


async def serves_events(rest: Rest) -> bool:
    """Return whether a server serves events.k8s.io/v1."""
    try:
        await rest.send(
            Request(path=f"/apis/{_EVENTS.api_version}", timeout_seconds=_DISCOVERY_SECONDS)
        )
    except ApiError:
        return False
    return True
