"""CoreEventRecorder writes events of the core group: for leader election and for old servers.

EventCorrelator counts equal events and combines similar ones.

Upstream: staging/src/k8s.io/client-go/tools/record/events_cache.go,
          staging/src/k8s.io/client-go/tools/record/event.go (v1.36)
Differs:  see `client.event_queue`; events are sent concurrently, not one after the other.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import Any, Final, Generic, TypeVar

import msgspec

from kubesched.api.core import CoreEvent, EventSource, ObjectReference
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheme import kind_of
from kubesched.api.times import moment_at, second_time
from kubesched.api.writes import EventRecord
from kubesched.client.event_queue import (
    EVENT_TYPES,
    EventQueue,
    event_name,
    event_namespace,
    patch_event,
    plain_reference,
    reference_to,
)
from kubesched.client.requests import Request, Rest, path_of

V = TypeVar("V")

_KEPT_MAX: Final = 4096
_SIMILAR_MAX: Final = 10
_SIMILAR_NS: Final = 600 * 1_000_000_000
_BURST: Final = 25
_PER_SECOND: Final = 1 / 300
_SECOND_NS: Final = 1_000_000_000
_COMBINED: Final = "(combined from similar events): "

_Key = tuple[str, ...]


class _Cache(Generic[V]):
    """A least-recently-used cache."""

    def __init__(self) -> None:
        self._values: OrderedDict[_Key, V] = OrderedDict()

    def get(self, key: _Key) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: _Key, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > _KEPT_MAX:
            self._values.popitem(last=False)


class _Similar(msgspec.Struct):
    """The distinct messages of similar events, and the time of the last one."""

    messages: dict[str, None]
    last_ns: int


class _Bucket(msgspec.Struct):
    """A token bucket: tokens left at a time."""

    tokens: float
    at_ns: int


class _Observed(msgspec.Struct, frozen=True):
    """An event that was written: its name, first timestamp and count."""

    name: str
    first_timestamp: str | None
    count: int


class EventCorrelator:
    """Correlates the events of one source."""

    def __init__(
        self, now_ns: Callable[[], int], name_of: Callable[[CoreEvent, int], tuple[str, str]]
    ) -> None:
        """Set up; `now_ns` returns the time of day in nanoseconds since the epoch.

        `name_of` returns name and timestamp for an event that combines others.
        """
        self._now_ns = now_ns
        self._name_of = name_of
        self._similar: _Cache[_Similar] = _Cache()
        self._observed: _Cache[_Observed] = _Cache()
        self._buckets: _Cache[_Bucket] = _Cache()

    def correlate(self, event: CoreEvent) -> CoreEvent | None:
        """Return the event to write, None to drop it; a count above 1 means an update."""
        combined, key = self._combined(event)
        counted = self._counted(combined, key)
        return counted if self._take_token(counted) else None

    def _combined(self, event: CoreEvent) -> tuple[CoreEvent, _Key]:
        """Return the event, or one that combines it with others that differ in the message."""
        now_ns = self._now_ns()
        group = (
            *_source_and_object(event),
            *(event.type, event.reason, event.reporting_component, event.reporting_instance),
        )
        similar = self._similar.get(group)
        if similar is None or now_ns - similar.last_ns > _SIMILAR_NS:
            similar = _Similar({}, now_ns)
        similar.messages[event.message] = None
        similar.last_ns = now_ns
        self._similar.put(group, similar)
        if len(similar.messages) < _SIMILAR_MAX:
            path = event.involved_object.field_path
            key = (*_source_and_object(event), path, event.type, event.reason, event.message)
            return event, key
        # Forget one message, to bound the memory.
        del similar.messages[next(iter(similar.messages))]
        name, timestamp = self._name_of(event, now_ns)
        combined = CoreEvent(
            metadata=msgspec.structs.replace(event.metadata, name=name),
            involved_object=event.involved_object,
            reason=event.reason,
            message=_COMBINED + event.message,
            source=event.source,
            first_timestamp=timestamp,
            last_timestamp=timestamp,
            count=1,
            type=event.type,
        )
        return combined, group

    def _counted(self, event: CoreEvent, key: _Key) -> CoreEvent:
        """Return the event with name and count of its earlier occurrences."""
        last = self._observed.get(key)
        if last is not None:
            event = msgspec.structs.replace(
                event,
                metadata=msgspec.structs.replace(event.metadata, name=last.name),
                first_timestamp=last.first_timestamp,
                count=last.count + 1,
            )
        observed = _Observed(event.metadata.name, event.first_timestamp, event.count)
        self._observed.put(key, observed)
        return event

    def _take_token(self, event: CoreEvent) -> bool:
        """Count an event of the object; return whether the rate limit permits it."""
        now_ns = self._now_ns()
        key = (*_source_and_object(event), event.type)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = _Bucket(float(_BURST), now_ns)
        since = (now_ns - bucket.at_ns) / _SECOND_NS
        bucket.tokens = min(float(_BURST), bucket.tokens + since * _PER_SECOND)
        bucket.at_ns = now_ns
        self._buckets.put(key, bucket)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _source_and_object(event: CoreEvent) -> _Key:
    there = event.involved_object
    return (
        *(event.source.component, event.source.host),
        *(there.kind, there.namespace, there.name, there.uid, there.api_version),
    )


# The recorder.

_EVENTS: Final = kind_of(CoreEvent)
_RETRY_SECONDS: Final = 10.0

log = logging.getLogger(__name__)


class CoreEventRecorder:
    """Records events."""

    def __init__(
        self, rest: Rest, now_ns: Callable[[], int], random: Random, component: str
    ) -> None:
        """Set up while a loop runs; `run` begins.

        `now_ns` returns the time of day in nanoseconds since the epoch, `random` spreads retries,
        and `component` reports events that name no other one.
        """
        self._rest = rest
        self._now_ns = now_ns
        self._random = random
        self._component = component
        self._correlator = EventCorrelator(now_ns, self._name_and_time)
        self._queue = EventQueue(self._write, _words, self._delay_seconds)

    def _delay_seconds(self, tries: int) -> float:
        # The first wait is random, so that clients do not retry at the same time.
        return _RETRY_SECONDS * (self._random.random() if tries == 1 else 1.0)

    def _name_and_time(self, event: CoreEvent, now_ns: int) -> tuple[str, str]:
        return f"{event.involved_object.name}.{now_ns:x}", second_time(moment_at(now_ns))

    async def run(self) -> None:
        """Send events until cancelled."""
        await self._queue.run()

    async def drain(self) -> None:
        """Wait until all recorded events are written, or the server stops answering."""
        await self._queue.drain()

    def record_event(self, event: EventRecord) -> None:
        """Queue an event for writing, without action and related object."""
        component = event.reporting_controller or self._component
        self._record(reference_to(event.regarding), event.type, event.reason, event.note, component)

    def record(self, involved: ObjectReference, type_: str, reason: str, message: str) -> None:
        """Queue an event, `Normal` or `Warning`, for writing; never waits, never raises."""
        self._record(involved, type_, reason, message, self._component)

    def _record(
        self, involved: ObjectReference, type_: str, reason: str, message: str, component: str
    ) -> None:
        if type_ not in EVENT_TYPES:
            log.error("Unsupported type of event: %s", type_)
            return
        now_ns = self._now_ns()
        time = second_time(moment_at(now_ns))
        metadata = ObjectMeta(
            name=event_name(involved, now_ns, self._random), namespace=event_namespace(involved)
        )
        event = self._correlator.correlate(
            CoreEvent(
                metadata=metadata,
                involved_object=involved,
                reason=reason,
                message=message,
                source=EventSource(component=component),
                first_timestamp=time,
                last_timestamp=time,
                count=1,
                type=type_,
                reporting_component=component,
            )
        )
        if event is not None:
            self._queue.put(event)

    async def _write(self, event: CoreEvent) -> None:
        """Create an event, or update its count."""
        namespace = event.metadata.namespace
        if event.count > 1:
            changed = {
                "count": event.count,
                "lastTimestamp": event.last_timestamp,
                **({"message": event.message} if event.message else {}),
            }
            path = path_of(_EVENTS, namespace, event.metadata.name)
            if await patch_event(self._rest, path, changed):
                return
        body = msgspec.json.encode(_body(event))
        await self._rest.send(Request(method="POST", path=path_of(_EVENTS, namespace), body=body))


def _words(event: CoreEvent) -> str:
    return f"{event.metadata.name} {event.reason}"


def _body(event: CoreEvent) -> dict[str, Any]:
    return {
        "kind": "Event",
        "apiVersion": _EVENTS.api_version,
        "metadata": {"name": event.metadata.name, "namespace": event.metadata.namespace},
        "involvedObject": plain_reference(event.involved_object),
        "reason": event.reason,
        "message": event.message,
        "source": {"component": event.source.component},
        "firstTimestamp": event.first_timestamp,
        "lastTimestamp": event.last_timestamp,
        "count": event.count,
        "type": event.type,
        "eventTime": None,
        "reportingComponent": event.reporting_component,
        "reportingInstance": event.reporting_instance,
    }
