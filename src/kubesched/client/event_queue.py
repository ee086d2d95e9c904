"""EventQueue sends events in the background, with retries; callers never wait.

Upstream: staging/src/k8s.io/client-go/tools/reference/ref.go, tools/record/util/util.go,
          staging/src/k8s.io/client-go/tools/events/event_broadcaster.go, attemptRecording;
          staging/src/k8s.io/client-go/tools/record/event.go, recordToSink (v1.36)
Differs:  sixteen senders write the events in the order in which they were recorded, where upstream
          starts a goroutine for each; a sender retries its event before it takes the next, so that
          few events use up their twelve tries in an outage. When more than
          262,144 events wait (some 150 MB), the oldest is dropped; upstream has no limit.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec

from kubesched.api.core import ObjectReference
from kubesched.api.errors import ApiError, NotFoundError
from kubesched.api.media_types import STRATEGIC_MERGE_PATCH
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import kind_of
from kubesched.client.requests import Request, Rest

EVENT_TYPES: Final = frozenset(("Normal", "Warning"))
_DEFAULT_NAMESPACE: Final = "default"
_NAME_LENGTH_MAX: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def reference_to(item: KubeObject | ObjectReference) -> ObjectReference:
    """Return a reference to an object, with its resource version; a reference as it is."""
    if isinstance(item, ObjectReference):
        return item
    kind, api_version = item.kind, item.api_version
    if not (kind and api_version):
        known = kind_of(type(item))
        kind, api_version = known.kind, known.api_version
    metadata = item.metadata
    return ObjectReference(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=api_version,
        resource_version=metadata.resource_version,
    )


def plain_reference(reference: ObjectReference) -> dict[str, str]:
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


def event_namespace(reference: ObjectReference) -> str:
    """Return the namespace of events about an object."""
    return reference.namespace or _DEFAULT_NAMESPACE


def event_name(reference: ObjectReference, now_ns: int, random: Random) -> str:
    """Return a name for an event: the object's name and the time.

    `random` draws a UUID if the object's name is not valid for an event.
    """
    name = f"{reference.name}.{now_ns:x}"
    if len(name) <= _NAME_LENGTH_MAX and _NAME.fullmatch(name):
        return name
    return str(UUID(int=random.getrandbits(128), version=4))


async def patch_event(rest: Rest, path: str, changed: Mapping[str, Any]) -> bool:
    """Change fields of an event; return False if it has expired or was never written.

    Raises:
        ApiError: The server refused for another reason, or there was no answer.
    """
    body = msgspec.json.encode(changed)
    request = Request(method="PATCH", path=path, body=body, content_type=STRATEGIC_MERGE_PATCH)
    try:
        await rest.send(request)
    except NotFoundError:
        return False
    return True


# The queue.

# More than a burst of the largest supported cluster, with 150,000 pods.
_WAITING_MAX: Final = 262_144
_TRIES_MAX: Final = 12
_SENDERS_MAX: Final = 16
_DROPS_PER_WARNING: Final = 1000

log = logging.getLogger(__name__)

Write = TypeVar("Write")


class RetryError(Exception):
    """The server refused; a retry may succeed."""


class EventQueue(Generic[Write]):
    """Writes that wait or are under way."""

    def __init__(
        self,
        send: Callable[[Write], Awaitable[None]],
        words: Callable[[Write], str],
        delay_seconds: Callable[[int], float],
    ) -> None:
        """Set up; `run` begins.

        `send` raises `ApiError` if the server refuses, with code 0 if it does not answer, and
        `RetryError`. `words` describes a write, for the log. `delay_seconds` returns the delay
        after a number of tries.
        """
        self._send = send
        self._words = words
        self._delay_seconds = delay_seconds
        self._pending: deque[Write] = deque()
        # Senders run while events are pending; resting ones wait for a retry.
        self._group: asyncio.TaskGroup | None = None
        self._senders = 0
        self._resting = 0
        self._drained = asyncio.Event()
        self._drained.set()
        self._dropped = 0

    def put(self, write: Write) -> None:
        """Queue a write; never waits."""
        if len(self._pending) >= _WAITING_MAX:
            self._drop_oldest()
        self._pending.append(write)
        self._start_sender()
        self._update_drained()

    def _start_sender(self) -> None:
        if self._group is not None and self._senders < _SENDERS_MAX:
            self._senders += 1
            self._group.create_task(self._send_all(), name="sender of events")

    def _drop_oldest(self) -> None:
        # The newest events are more useful.
        oldest = self._pending.popleft()
        self._dropped += 1
        if self._dropped % _DROPS_PER_WARNING == 1:
            words = self._words(oldest)
            log.warning("Dropped %s events, as too many wait: %s", self._dropped, words)

    async def run(self) -> None:
        """Send until cancelled; what is queued later is kept."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for _ in range(len(self._pending)):
                    self._start_sender()
                await asyncio.Event().wait()
            finally:
                # Before the group ends: it takes no more tasks then.
                self._group = None

    async def drain(self) -> None:
        """Wait until the queue is empty, or the server stops answering."""
        await self._drained.wait()

    def _update_drained(self) -> None:
        is_running = self._senders > self._resting
        is_stuck = self._resting == _SENDERS_MAX
        if is_running or (self._pending and not is_stuck):
            self._drained.clear()
        else:
            self._drained.set()

    async def _send_all(self) -> None:
        try:
            while self._pending:
                await self._send_one(self._pending.popleft())
        finally:
            self._senders -= 1
            self._update_drained()

    async def _send_one(self, write: Write) -> None:
        for tries in range(1, _TRIES_MAX + 1):
            problem = await self._try(write)
            if problem is None:
                return
            words = self._words(write)
            if tries == _TRIES_MAX:
                log.error("Unable to write event, given up: %s: %s", words, problem)
            else:
                log.info("Unable to write event, to be tried again: %s: %s", words, problem)
                await self._rest(self._delay_seconds(tries))

    async def _try(self, write: Write) -> Exception | None:
        """Send once; return the error if a retry may help."""
        try:
            await self._send(write)
        except RetryError as error:
            return error
        except ApiError as error:
            if not error.code:
                return error
            # The event itself is invalid or unwanted: a retry would not help.
            level = logging.DEBUG if error.reason == "AlreadyExists" else logging.ERROR
            words = self._words(write)
            log.log(level, "Server rejected event, not tried again: %s: %s", words, error)
        return None

    async def _rest(self, seconds: float) -> None:
        self._resting += 1
        self._update_drained()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._resting -= 1
            self._update_drained()
