"""Reflector keeps a sink up to date with the objects of one kind: it lists, watches, and repeats.

A list is a stream of initial events where the server supports it, else pages. A watch that ends is
resumed at its last version; if that version has expired, the reflector lists again.

    list and watch ── initial events, or pages if they fail ──▶ sink.replace
          ▲           watch, and watch again                ──▶ sink.apply, per event
          └── pause ◀── a failure that requires a new list

Upstream: staging/src/k8s.io/client-go/tools/cache/reflector.go (v1.36)
Invariants: the sink gets every change once, in the server's order.
Differs:  the reflector closes a stream 30 seconds after the server should have ended it: over
          HTTP/1.1 nothing else notices that the server hangs. A list at a minimum version is
          never paged, even if the server has no watch cache.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, NamedTuple, Protocol

from kubesched.api.errors import ApiError, TooManyRequestsError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import Kind
from kubesched.client.errors import (
    is_server_overwhelmed,
    is_unanswered,
    is_version_unavailable,
    very_short_watch,
)
from kubesched.client.pager import PAGE_SIZE, read_list
from kubesched.client.requests import Request, Rest, path_of
from kubesched.client.watch_events import (
    ADDED,
    DELETED,
    MODIFIED,
    Bookmark,
    WatchDecoder,
    WatchEvent,
)

_FIRST_SECONDS: Final = 0.8
_MAX_SECONDS: Final = 30.0
_FACTOR: Final = 2.0
_RESET_SECONDS: Final = 120.0


class Backoff:
    """A reflector's pauses: 0.8 s, doubled up to 30 s, each plus up to 100 % jitter.

    Upstream: staging/src/k8s.io/apimachinery/pkg/util/wait/backoff.go, DelayWithReset (v1.36)
    """

    def __init__(self, now: Callable[[], float], random: Random) -> None:
        """Set up; `now` is a monotonic clock in seconds.

        `random` draws the jitter, so that clients of a recovering server are spread.
        """
        self._now = now
        self._random = random
        self._began = now()
        self._next_seconds = _FIRST_SECONDS

    def step(self) -> float:
        """Return the next pause in seconds.

        The sequence restarts every two minutes, with or without failures in between.
        """
        now = self._now()
        if now - self._began > _RESET_SECONDS:
            self._began = now
            self._next_seconds = _FIRST_SECONDS
        seconds = self._next_seconds
        self._next_seconds = min(seconds * _FACTOR, _MAX_SECONDS)
        return seconds * (1 + self._random.random())


_TIMEOUT_MIN_SECONDS: Final = 300
_GRACE_SECONDS: Final = 30.0
_VERY_SHORT_SECONDS: Final = 1.0
# Events read before the event loop runs other tasks: a millisecond or two.
_EVENTS_AT_ONCE: Final = 128
# Verbosity 2: persistent failures are reported once for all kinds.
_VERBOSE: Final = logging.INFO - 2

log = logging.getLogger(__name__)

AnyEvent = WatchEvent[KubeObject] | Bookmark

Listed = dict[str, dict[str, KubeObject]]
"""Objects by namespace, then by name, so that no object needs a key of its own."""


class Sink(Protocol):
    """The receiver of the objects."""

    async def replace(self, items: Listed) -> None:
        """Replace all objects; the dicts may be kept."""

    def apply(self, event: WatchEvent[KubeObject]) -> None:
        """Apply a watch event."""


class WatchFailure(NamedTuple):
    """The last error since a list was complete or a watch opened: its HTTP status, and what failed.

    The status is 0 without a response, the message "" without an error.
    """

    code: int = 0
    message: str = ""


@dataclass
class _Stream:
    """An open watch: its lines, its start and its deadline, in seconds of the loop."""

    lines: AsyncIterator[bytes]
    began: float
    deadline: float


class Reflector:
    """Lists and watches one kind; `failure` is its last error."""

    def __init__(
        self, rest: Rest, kind: Kind, sink: Sink, random: Random, field_selector: str = ""
    ) -> None:
        """Set up while a loop runs; `run` begins.

        The sink gets the selected objects; `random` draws pauses and the lengths of watches.
        """
        self._rest = rest
        self._sink = sink
        self._random = random
        self._plural = kind.plural
        self._path = path_of(kind)
        self._selectors = {"fieldSelector": field_selector} if field_selector else {}
        self._decoder = WatchDecoder(kind)
        self._now = asyncio.get_running_loop().time
        self._backoff = Backoff(self._now, random)
        self._version = ""
        # Whether the server does not have that version.
        self._is_version_unavailable = False
        self.failure = WatchFailure()

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._list_and_watch()
            except ApiError as error:
                self._fail(error)
                log.log(_VERBOSE, "Failed to watch %s: %s", self._plural, error)
            await self._pause()

    def _fail(self, error: ApiError) -> None:
        # The exception itself is not kept: its frames hold all objects read so far.
        self.failure = WatchFailure(error.code, str(error))

    async def _pause(self) -> None:
        await asyncio.sleep(self._backoff.step())

    async def _list_and_watch(self) -> None:
        async with AsyncExitStack() as opened:
            try:
                stream = await self._initial_events(opened)
            except ApiError as error:
                log.log(_VERBOSE, "Listing %s, as streaming them failed: %s", self._plural, error)
                await opened.aclose()
                stream = None
                await self._list()
            await self._watch(opened, stream)

    async def _list(self) -> None:
        """Read all objects in pages."""
        version = "" if self._is_version_unavailable else self._version or "0"
        # A list at a minimum version can be served from a cache, but not in pages.
        limit = PAGE_SIZE if version in ("", "0") else 0
        read = partial(read_list, self._rest, self._decoder, self._path, self._selectors)
        try:
            listing = await read(version, limit)
        except ApiError as error:
            if not is_version_unavailable(error):
                raise
            self._is_version_unavailable = True
            listing = await read("", limit)
        items: Listed = {}
        for item in listing.items:
            items.setdefault(item.metadata.namespace, {})[item.metadata.name] = item
        await self._replace(items, listing.version)

    async def _replace(self, items: Listed, version: str) -> None:
        self._is_version_unavailable = False
        await self._sink.replace(items)
        self._version = version
        self.failure = WatchFailure()

    # Initial events.

    async def _initial_events(self, opened: AsyncExitStack) -> _Stream:
        """Read all objects from a stream; return the stream for the watch.

        Raises ApiError if the server does not support it, or cannot do it now.
        """
        while True:
            initial = _InitialEvents()
            try:
                stream = await self._open(opened, self._initial_query())
                if await self._read(stream, initial.take):
                    break
            except ApiError as error:
                if not await self._handle_stream_error(error):
                    raise
            await opened.aclose()
        await self._replace(initial.items, initial.version)
        # The watch starts here, for the check for very short watches.
        stream.began = self._now()
        return stream

    def _initial_query(self) -> Mapping[str, str]:
        version = "" if self._is_version_unavailable else self._version
        since = {"resourceVersion": version} if version else {}
        return {**since, "resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true"}

    async def _handle_stream_error(self, error: ApiError) -> bool:
        """Report an error, and pause if the server is overwhelmed; return whether to retry."""
        self._fail(error)
        if is_server_overwhelmed(error):
            await self._pause()
            return True
        if is_version_unavailable(error):
            self._is_version_unavailable = True
            return True
        return False

    # Watches.

    async def _watch(self, opened: AsyncExitStack, stream: _Stream | None) -> None:
        """Watch until a new list is needed; raises ApiError if the server refuses to watch."""
        while True:
            # Initial objects come in any order: their versions are not positions to resume from.
            is_in_order = stream is not None or self._version not in ("", "0")
            if stream is None:
                query = {"resourceVersion": self._version} if self._version else {}
                try:
                    stream = await self._open(opened, query)
                except ApiError as error:
                    if not is_server_overwhelmed(error):
                        raise
                    self._fail(error)
                    await self._pause()
                    continue
                self.failure = WatchFailure()
            try:
                await self._read(stream, self._follower(is_in_order))
            except TooManyRequestsError:
                await self._pause()
            except ApiError as error:
                log.info("Watch of %s ended: %s", self._plural, error)
                return
            stream = None
            await opened.aclose()

    def _follower(self, is_in_order: bool) -> Callable[[AnyEvent], bool]:
        """Return a function that passes events to the sink and records the version."""
        apply = self._sink.apply

        def follow(event: AnyEvent) -> bool:
            nonlocal is_in_order
            if isinstance(event, Bookmark):
                is_in_order = True
                self._version = event.resource_version
                return False
            apply(event)
            if is_in_order or event.type != ADDED:
                is_in_order = True
                self._version = event.object.metadata.resource_version
            return False

        return follow

    async def _open(self, opened: AsyncExitStack, query: Mapping[str, str]) -> _Stream:
        """Open a stream; one that breaks at once counts as empty."""
        began = self._now()
        seconds = int(_TIMEOUT_MIN_SECONDS * (1 + self._random.random()))
        limits = {"allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        whole = {**query, **self._selectors, **limits, "watch": "true"}
        # Sorted by name, as in upstream's queries.
        request = Request(path=self._path, query=dict(sorted(whole.items())))
        try:
            lines = await opened.enter_async_context(self._rest.stream(request))
        except ApiError as error:
            if not is_unanswered(error):
                raise
            lines = _no_lines()
        return _Stream(lines, began, began + seconds + _GRACE_SECONDS)

    async def _read(self, stream: _Stream, take: Callable[[AnyEvent], bool]) -> bool:
        """Pass on events until `take` returns True or the stream ends; return which.

        Raises ApiError if the watch failed, or ended within a second without an event.
        """
        decode = self._decoder.event
        read = 0
        try:
            async with asyncio.timeout_at(stream.deadline):
                async for line in stream.lines:
                    read += 1
                    if take(decode(line)):
                        return True
                    if read % _EVENTS_AT_ONCE == 0:
                        await asyncio.sleep(0)
        except TimeoutError:
            log.info("Watch of %s was not ended in time", self._plural)
        except ApiError as error:
            if not is_unanswered(error):
                raise
        if not read and self._now() - stream.began < _VERY_SHORT_SECONDS:
            raise very_short_watch(self._plural)
        return False


class _InitialEvents:
    """The objects of a stream up to the bookmark that ends the initial events."""

    def __init__(self) -> None:
        self.items: Listed = {}
        self.version = ""

    def take(self, event: AnyEvent) -> bool:
        """Apply an event; return whether it ends the initial events."""
        if isinstance(event, Bookmark):
            self.version = event.resource_version
            return event.is_initial_events_end
        metadata = event.object.metadata
        if event.type in (ADDED, MODIFIED):
            self.items.setdefault(metadata.namespace, {})[metadata.name] = event.object
        elif event.type == DELETED:
            self.items.get(metadata.namespace, {}).pop(metadata.name, None)
        return False


async def _no_lines() -> AsyncIterator[bytes]:
    return
    # Without it, this would not be a generator.
    yield
