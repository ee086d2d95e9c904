"""The API server's lists and watches of pods, over a connection that fails at random."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Final

import msgspec

from kubesched.api.errors import ApiError, TooManyRequestsError
from kubesched.apiserver.listing import ListOptions, list_objects, list_options
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.presentation import PLAIN, Presentation
from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.stored_object import StoredObject, stamp
from kubesched.apiserver.watching import WatchStream
from kubesched.client.requests import Request
from kubesched.cluster.store import Key, Store
from tests.apiserver.verdicts import served

_PODS: Final = served("pods")
_SHOWN: Final = Presentation(_PODS, PLAIN, "", lambda: datetime.now(UTC))


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """How often things go wrong, as shares of all cases.

    Attributes:
        refused: Connections that are refused.
        busy: Requests that are answered with 429.
        broken: Requests whose answer never comes.
        failing: Requests that are answered with an internal error.
        cut: Events after which a stream ends.
        torn: Events after which a connection breaks.
        error_events: Events that are followed by an ERROR event of 410, 429 or 500.
        bookmarks: Events that are followed by a bookmark, and that by the same again.
        streams_initial_events: Whether watches can begin with all objects.
    """

    refused: float = 0.0
    busy: float = 0.0
    broken: float = 0.0
    failing: float = 0.0
    cut: float = 0.0
    torn: float = 0.0
    error_events: float = 0.0
    bookmarks: float = 0.0
    streams_initial_events: bool = True


FAULTLESS: Final = Faults()


class FaultyServer:
    """Stores pods, lists them and sends their changes to watches; a `Rest`.

    Attributes:
        faults: May be changed at any time.
        paused_seconds: How long every answer takes.
    """

    def __init__(self, random: Random, faults: Faults = FAULTLESS) -> None:
        self.faults = faults
        self.paused_seconds = 0.0
        self._random = random
        self._store: Store[StoredObject] = Store(stamp)

    # What others do.

    @property
    def pods(self) -> dict[str, Plain]:
        """The pods by name."""
        return {key.name: stored.plain for key, stored in self._store.keyed("pods").items()}

    def put(self, name: str, phase: str = "Pending", **labels: str) -> None:
        """Create or change a pod."""
        key = Key("pods", "default", name)
        before = self._store.find(key)
        uid = before.plain["metadata"]["uid"] if before else f"uid-{self._store.version}"
        metadata = {"name": name, "namespace": "default", "uid": uid, "labels": labels}
        pod = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {**metadata, "creationTimestamp": None},
            "spec": {"containers": [{"name": "main", "image": "pause"}]},
            "status": {"phase": phase},
        }
        write = self._store.update if before else self._store.create
        write(key, StoredObject(pod))

    def delete(self, name: str) -> None:
        """Delete a pod."""
        self._store.delete(Key("pods", "default", name))

    def forget(self) -> None:
        """Forget all changes up to now, and all lists that are being read."""
        self._store.compact_all()

    # Requests.

    async def send(self, request: Request) -> bytes:
        """List pods."""
        await self._answer()
        options = _options(request, is_watch=False)
        return _SHOWN.many(await list_objects(self._store, _PODS, "", options))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Watch pods."""
        await self._answer()
        options = _options(request, is_watch=True)
        if options.sends_initial_events and not self.faults.streams_initial_events:
            raise ApiError(422, "Invalid", "sendInitialEvents is forbidden")
        seconds = float(options.timeout_seconds or 0)
        watch = WatchStream(self._store, _PODS, "", options, _SHOWN, seconds)
        async with aclosing(watch.lines()) as parts:
            yield self._lines(parts)

    async def _answer(self) -> None:
        await asyncio.sleep(self.paused_seconds)
        faults, random = self.faults, self._random
        if random.random() < faults.refused:
            raise ApiError(0, "ConnectionRefused", "connection refused")
        if random.random() < faults.busy:
            raise TooManyRequestsError("too many requests")
        if random.random() < faults.broken:
            raise ApiError(0, "Unanswered", "connection reset by peer")
        if random.random() < faults.failing:
            raise ApiError(500, "InternalError", "etcd is away")

    async def _lines(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the lines of a watch until something goes wrong."""
        random = self._random
        async for part in parts:
            for line in part.splitlines():
                yield line
                if random.random() < self.faults.bookmarks:
                    version = msgspec.json.decode(line)["object"]["metadata"]["resourceVersion"]
                    bookmark = _line("BOOKMARK", {"metadata": {"resourceVersion": version}})
                    yield bookmark
                    yield bookmark
                if random.random() < self.faults.error_events:
                    code, reason = random.choice(
                        ((410, "Expired"), (429, "TooManyRequests"), (500, "InternalError"))
                    )
                    yield _line("ERROR", {"kind": "Status", "code": code, "reason": reason})
                    return
                await asyncio.sleep(random.random() * self.paused_seconds)
                if random.random() < self.faults.torn:
                    raise ApiError(0, "Unanswered", "unexpected EOF")
                if random.random() < self.faults.cut:
                    return


def _options(request: Request, *, is_watch: bool) -> ListOptions:
    query = {name: (value,) for name, value in request.query.items()}
    return list_options(ApiRequest("GET", request.path, query), _PODS, is_watch=is_watch)


def _line(word: str, item: Plain) -> bytes:
    return msgspec.json.encode({"type": word, "object": item})
