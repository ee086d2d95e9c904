"""Reflector follows all objects of one kind: lists them, watches them, and begins again.

A list is a stream of initial events where the server can do that, and pages otherwise. A watch
that ends is taken up where it ended; one whose version is gone makes the reflector list again.

    list and watch ── initial events, or pages if they fail ──▶ sink.replace
          ▲           watch, and watch again                ──▶ sink.apply, one by one
          └── pause ◀── a failure that watching again does not cure

Upstream: staging/src/k8s.io/client-go/tools/cache/reflector.go (v1.36)
Invariants: the sink is told of every change once, in the server's order.
Differs:  a stream that the server should have ended half a minute ago is ended by us: over HTTP/1.1
          nothing else would notice that the server is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from random import Random
from typing import Final, Protocol

import msgspec

from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import Kind
from kubesched.client.errors import (
    is_expired,
    is_server_overwhelmed,
    is_too_large_version,
    is_too_many_requests,
    is_unanswered,
    very_short_watch,
)
from kubesched.client.lister import Lister
from kubesched.client.requests import EVERYTHING, ObjectSelector, Query, Request, Rest, path_of
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
    """A reflector's pauses: 0.8 s, doubled up to 30 s, and up to as much again by chance."""

    def __init__(self, now: Callable[[], float], random: Random) -> None:
        """Set up.

        Args:
            now: Returns the time in seconds, from any start.
            random: Spreads the clients of a server that comes back.
        """
        self._now = now
        self._random = random
        self._began = now()
        self._next_seconds = _FIRST_SECONDS

    def step(self) -> float:
        """Return the next pause in seconds.

        The pauses begin anew every two minutes, counted from the last beginning, whether there
        were failures meanwhile or not.
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
# So many events are read before others have a turn; a millisecond or two.
_EVENTS_AT_ONCE: Final = 128
# Verbosity 2: a failure that lasts is reported once for all kinds.
_VERBOSE: Final = logging.INFO - 2

log = logging.getLogger(__name__)

AnyEvent = WatchEvent[KubeObject] | Bookmark


class Sink(Protocol):
    """Where the objects go."""

    async def replace(self, items: Sequence[KubeObject]) -> None:
        """Take all objects there are."""
        ...

    def apply(self, event: WatchEvent[KubeObject]) -> None:
        """Take an object that came, changed or went."""
        ...


class ReflectorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a reflector has done.

    Attributes:
        lists: How often all objects were read.
        watches: How many streams were asked for, those of initial events among them.
        short_watches: How many streams ended at once and without an event.
        events: Lines read, bookmarks among them.
        pauses: How often a failure made it wait.
        last_resource_version: How far it has come.
        last_error: What went wrong since all objects were read for the last time, "" for nothing.
        last_code: The HTTP status of that; 0 without an answer.
    """

    lists: int = 0
    watches: int = 0
    short_watches: int = 0
    events: int = 0
    pauses: int = 0
    last_resource_version: str = ""
    last_error: str = ""
    last_code: int = 0


class _Stream:
    """An open watch: its lines, and the times it counts from and must end at."""

    def __init__(self, lines: AsyncIterator[bytes], began: float, deadline: float) -> None:
        self.lines = lines
        self.began = began
        self.deadline = deadline


class Reflector:
    """Follows one kind."""

    def __init__(
        self,
        rest: Rest,
        kind: Kind,
        sink: Sink,
        random: Random,
        selection: ObjectSelector = EVERYTHING,
    ) -> None:
        """Set up; `run` begins. To be called while a loop runs.

        Args:
            rest: Sends the requests.
            kind: What to follow.
            sink: Is told.
            random: Draws pauses and the lengths of watches.
            selection: Which objects.
        """
        self._rest = rest
        self._sink = sink
        self._random = random
        self._plural = kind.plural
        self._path = path_of(kind, selection.namespace)
        self._selectors = selection.query
        self._decoder = WatchDecoder(kind)
        self._lister = Lister(rest, self._decoder, self._path, self._selectors)
        self._now = asyncio.get_running_loop().time
        self._backoff = Backoff(self._now, random)
        self._version = ""
        # No exception is kept: its frames hold all objects that were read so far.
        self._last_error, self._last_code = "", 0
        # Whether the server said that it does not have that version, or not any more.
        self._is_version_unavailable = False
        self._lists = self._watches = self._short_watches = self._events = self._pauses = 0

    def statistics(self) -> ReflectorStatistics:
        """Return what has been done so far."""
        return ReflectorStatistics(
            lists=self._lists,
            watches=self._watches,
            short_watches=self._short_watches,
            events=self._events,
            pauses=self._pauses,
            last_resource_version=self._version,
            last_error=self._last_error,
            last_code=self._last_code,
        )

    async def run(self) -> None:
        """Follow for ever."""
        while True:
            try:
                await self._list_and_watch()
            except ApiError as error:
                self._last_error, self._last_code = str(error), error.code
                log.log(_VERBOSE, "Failed to watch %s: %s", self._plural, error)
            await self._pause()

    async def _pause(self) -> None:
        self._pauses += 1
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
        limit = self._lister.limit_for(version)
        try:
            listing = await self._lister.list(version, limit)
        except ApiError as error:
            if not (is_expired(error) or is_too_large_version(error)):
                raise
            self._is_version_unavailable = True
            listing = await self._lister.list("", limit)
        await self._replace(listing.items, listing.version)

    async def _replace(self, items: Sequence[KubeObject], version: str) -> None:
        self._is_version_unavailable = False
        self._lists += 1
        await self._sink.replace(items)
        self._version = version
        self._last_error, self._last_code = "", 0

    # Initial events.

    async def _initial_events(self, opened: AsyncExitStack) -> _Stream:
        """Read all objects from a stream; return it for what comes after.

        Raises:
            ApiError: The server does not do that, or not now.
        """
        while True:
            initial = _InitialEvents()
            try:
                stream = await self._open(opened, self._initial_query())
                is_complete = await self._read(stream, initial.take)
            except ApiError as error:
                if not await self._is_worth_another_stream(error):
                    raise
                is_complete = False
            if is_complete:
                break
            await opened.aclose()
        await self._replace(list(initial.items.values()), initial.version)
        # Whether the rest of it is a very short watch is counted from here.
        stream.began = self._now()
        return stream

    def _initial_query(self) -> Query:
        version = "" if self._is_version_unavailable else self._version
        return (
            ("resourceVersionMatch", "NotOlderThan"),
            ("sendInitialEvents", "true"),
            *((("resourceVersion", version),) if version else ()),
        )

    async def _is_worth_another_stream(self, error: ApiError) -> bool:
        """Whether to ask for the initial events again; pauses if the server is overwhelmed."""
        self._last_error, self._last_code = str(error), error.code
        if is_server_overwhelmed(error):
            await self._pause()
            return True
        if is_expired(error) or is_too_large_version(error):
            self._is_version_unavailable = True
            return True
        return False

    # Watches.

    async def _watch(self, opened: AsyncExitStack, stream: _Stream | None) -> None:
        """Watch until listing again is the cure.

        Raises:
            ApiError: The server refuses to watch.
        """
        while True:
            # Initial objects come in any order: their versions say nothing of how far we are.
            is_in_order = stream is not None or self._version not in ("", "0")
            if stream is None:
                query = (("resourceVersion", self._version),) if self._version else ()
                try:
                    stream = await self._open(opened, query)
                except ApiError as error:
                    if not is_server_overwhelmed(error):
                        raise
                    await self._pause()
                    continue
            try:
                await self._read(stream, self._follower(is_in_order))
            except ApiError as error:
                if not is_too_many_requests(error):
                    log.info("Watch of %s ended: %s", self._plural, error)
                    return
                await self._pause()
            stream = None
            await opened.aclose()

    def _follower(self, is_in_order: bool) -> Callable[[AnyEvent], bool]:
        """Return what hands events to the sink, and notes how far we are."""
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

    async def _open(self, opened: AsyncExitStack, query: Query) -> _Stream:
        """Open a stream; one that breaks at once is an empty one."""
        began = self._now()
        seconds = int(_TIMEOUT_MIN_SECONDS * (1 + self._random.random()))
        whole = (
            *(*query, *self._selectors, ("allowWatchBookmarks", "true"), ("watch", "true")),
            ("timeoutSeconds", str(seconds)),
        )
        # In the order of the names, as upstream writes every query.
        request = Request(path=self._path, query=tuple(sorted(whole)))
        self._watches += 1
        try:
            lines = await opened.enter_async_context(self._rest.stream(request))
        except ApiError as error:
            if not is_unanswered(error):
                raise
            lines = _NoLines()
        return _Stream(lines, began, began + seconds + _GRACE_SECONDS)

    async def _read(self, stream: _Stream, take: Callable[[AnyEvent], bool]) -> bool:
        """Hand over events until it is enough or the stream ends; return whether it is enough.

        Raises:
            ApiError: The stream said that the watch failed, or it ended at once without an event.
        """
        decode = self._decoder.event
        read = self._events
        try:
            async with asyncio.timeout_at(stream.deadline):
                async for line in stream.lines:
                    self._events += 1
                    if take(decode(line)):
                        return True
                    if self._events % _EVENTS_AT_ONCE == 0:
                        await asyncio.sleep(0)
        except TimeoutError:
            log.info("Watch of %s was not ended in time", self._plural)
        except ApiError as error:
            if not is_unanswered(error):
                raise
        if self._events == read and self._now() - stream.began < _VERY_SHORT_SECONDS:
            self._short_watches += 1
            raise very_short_watch(self._plural)
        return False


class _InitialEvents:
    """The objects of a stream, until the bookmark that ends the initial events."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], KubeObject] = {}
        self.version = ""

    def take(self, event: AnyEvent) -> bool:
        """Take note of an event; return whether it is the end."""
        if isinstance(event, Bookmark):
            self.version = event.resource_version
            return event.is_initial_events_end
        metadata = event.object.metadata
        if event.type in (ADDED, MODIFIED):
            self.items[metadata.namespace, metadata.name] = event.object
        elif event.type == DELETED:
            self.items.pop((metadata.namespace, metadata.name), None)
        return False


class _NoLines:
    """The lines of a stream that ended before it began."""

    def __aiter__(self) -> _NoLines:
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration
