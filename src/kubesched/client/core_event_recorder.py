"""CoreEventRecorder writes events of the core group: for leader election and for old servers.

Upstream: staging/src/k8s.io/client-go/tools/record/event.go (v1.36)
Differs:  see `client.event_queue`; events are sent concurrently, not one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec

from kubesched.api.core import CoreEvent, EventSource, ObjectReference
from kubesched.api.errors import NotFoundError
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheme import kind_of
from kubesched.api.times import moment_at, second_time
from kubesched.client.event_correlator import EventCorrelator
from kubesched.client.event_queue import EventQueue, EventStatistics
from kubesched.client.event_recorder import Occurrence
from kubesched.client.event_references import (
    EVENT_TYPES,
    event_name,
    event_namespace,
    plain_reference,
    reference_to,
)
from kubesched.client.requests import STRATEGIC_MERGE_PATCH, Request, Rest, path_of

_EVENTS: Final = kind_of(CoreEvent)
_RETRY_SECONDS: Final = 10.0

log = logging.getLogger(__name__)


class CoreEventRecorder:
    """Records events."""

    def __init__(
        self, rest: Rest, now_ns: Callable[[], int], random: Random, component: str
    ) -> None:
        """Set up; `run` begins. To be called while a loop runs.

        Args:
            rest: Sends the requests.
            now_ns: Returns the time of day in nanoseconds since the epoch.
            random: Spreads retries.
            component: The reporting component, unless an event names another.
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

    def statistics(self) -> EventStatistics:
        """Return the counts of sent, refused and waiting events."""
        return self._queue.statistics()

    async def run(self) -> None:
        """Send events until cancelled."""
        await self._queue.run()

    async def drain(self) -> None:
        """Wait until all recorded events are written, or the server stops answering."""
        await self._queue.drain()

    def record_event(self, event: Occurrence) -> None:
        """Queue an event for writing, without action and related object."""
        component = event.reporting_controller or self._component
        self._record(reference_to(event.regarding), event.type, event.reason, event.note, component)

    def record(self, involved: ObjectReference, type_: str, reason: str, message: str) -> None:
        """Queue an event for writing; never waits, never raises.

        Args:
            involved: The object it is about.
            type_: `Normal` or `Warning`.
            reason: Such as `LeaderElection`.
            message: For people.
        """
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
            request = Request(
                method="PATCH",
                path=path_of(_EVENTS, namespace, event.metadata.name),
                body=msgspec.json.encode(changed),
                content_type=STRATEGIC_MERGE_PATCH,
            )
            try:
                await self._rest.send(request)
            except NotFoundError:
                # It has expired or was never written.
                pass
            else:
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
