"""A watch sends the existing objects, then every change, line by line, until its timeout.

Upstream: staging/src/k8s.io/apiserver/pkg/{storage/cacher,endpoints/handlers/watch.go} (v1.36)
Invariants: a watcher sees each change of its selection once, in the order of versions; an object
            that enters the selection is ADDED; one that leaves it is DELETED, with its state before
            and the version of the change.
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing
from functools import cache
from typing import Final

from kubesched.api.errors import GoneError
from kubesched.apiserver.listing import ListOptions, exact_version
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.presentation import Presentation
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import expired, failure
from kubesched.apiserver.stored_object import StoredObject, head, sort_key, stamp
from kubesched.cluster.store import Change, ChangeType, Store

_BOOKMARK_SECONDS: Final = 60.0
# The last bookmark is sent this long before the end.
_FAREWELL_SECONDS: Final = 2.0
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}
# The maximum number of changes written at once, so that other tasks can run in between.
_BATCH: Final = 500
# Fields of a bookmark that upstream's internal types always have; here they are left out when zero.
_UNSET: Final[dict[str, Plain]] = {
    "Deployment": {"replicas": 0},
    "ReplicaSet": {"replicas": 0},
    "ReplicationController": {"template": None},
    "StatefulSet": {"replicas": 0},
}


class WatchStream:
    """The lines of one watch."""

    def __init__(
        self,
        store: Store[StoredObject],
        resource: Resource,
        namespace: str,
        options: ListOptions,
        presentation: Presentation,
        timeout_seconds: float,
    ) -> None:
        """Choose where the watch begins; raises StatusError if the version is not a number."""
        version = exact_version(options.resource_version)
        self._store = store
        self._resource = resource
        self._namespace = namespace
        self._options = options
        # The objects to send first, and the version after which changes follow.
        self._initial: list[StoredObject] = []
        self._start = version or store.version
        shows_all = options.sends_initial_events
        self._shows_all = not version if shows_all is None else shows_all
        if self._shows_all:
            listed = store.list(resource.storage_kind, namespace or None)
            found = filter(options.selection.matches, listed)
            self._initial, self._start = sorted(found, key=sort_key), store.version
        self._presentation = presentation
        self._timeout_seconds = timeout_seconds
        self._head = head(resource)
        self._newest = store.newest_change(resource.storage_kind)
        self._has_columns = False
        self._wake = asyncio.Event()

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield events, several at once where several are ready."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        end = begin + self._timeout_seconds
        bookmark_at = self._next_bookmark(begin, end)
        store, kind = self._store, self._resource.storage_kind
        try:
            with closing(store.watch(kind, self._start, self._wake.set)) as watch:
                if first := self._first_lines():
                    yield first
                while True:
                    while watch.has_changes:
                        if lines := b"".join(map(self._event, watch.read(_BATCH))):
                            yield lines
                    now = loop.time()
                    if now >= end:
                        return
                    if now >= bookmark_at:
                        bookmark_at = self._next_bookmark(now, end)
                        newest = store.newest_change(kind)
                        if self._options.allows_bookmarks and newest > self._newest:
                            yield self._bookmark(newest)
                    await self._sleep_until(loop, min(end, bookmark_at))
        except GoneError as error:
            yield _line("ERROR", encode(failure(expired(error.message))))

    def _next_bookmark(self, now: float, end: float) -> float:
        farewell = end - _FAREWELL_SECONDS
        regular = now + _BOOKMARK_SECONDS
        return farewell if now < farewell < regular else regular

    async def _sleep_until(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        # A timer and an event are cheaper than a task per wait.
        timer = loop.call_at(when, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
        self._wake.clear()

    def _first_lines(self) -> bytes:
        lines = [self._object_line("ADDED", stored) for stored in self._initial]
        if self._shows_all and self._options.allows_bookmarks:
            lines.append(self._bookmark(self._start, is_initial_end=True))
        return b"".join(lines)

    def _event(self, change: Change[StoredObject]) -> bytes:
        is_elsewhere = self._namespace and change.key.namespace != self._namespace
        if is_elsewhere or change.version <= self._start:
            return b""
        matches = self._options.selection.matches
        previous = change.previous
        is_deleted = change.type is ChangeType.DELETED
        if not is_deleted and matches(change.value):
            had = previous is not None and matches(previous)
            return self._object_line("MODIFIED" if had else "ADDED", change.value)
        if previous is None or not matches(previous):
            return b""
        left = change.value if is_deleted else stamp(previous, change.version)
        return self._object_line("DELETED", left)

    def _object_line(self, type_: str, stored: StoredObject) -> bytes:
        if self._presentation.is_plain:
            return _line(type_, self._head, stored.item(self._resource)[1:])
        return self._transformed_line(type_, stored.form(self._resource))

    def _transformed_line(self, type_: str, plain: Plain) -> bytes:
        shown = self._presentation.transformed(plain, has_columns=not self._has_columns)
        self._has_columns = True
        return _line(type_, encode(shown))

    def _bookmark(self, version: int, *, is_initial_end: bool = False) -> bytes:
        self._newest = version
        metadata: Plain = {"resourceVersion": str(version)}
        if is_initial_end:
            metadata["annotations"] = dict(_INITIAL_END)
        mark: Plain = {
            "kind": self._resource.kind,
            "apiVersion": self._resource.api_version,
            **_zero(self._resource),
            "metadata": metadata,
        }
        if self._presentation.is_plain:
            return _line("BOOKMARK", encode(mark))
        return self._transformed_line("BOOKMARK", mark)


def _line(type_: str, *body: bytes) -> bytes:
    return b"".join((b'{"type":"', type_.encode(), b'","object":', *body, b"}\n"))


@cache
def _zero(resource: Resource) -> Plain:
    """Return the fields that an object of a kind has even where nothing is set."""
    zero = resource.type.zero()
    unset = _UNSET.get(resource.built_in_kind)
    return {**zero, "spec": {**zero["spec"], **unset}} if unset else zero
