"""An API server that records its history and refuses requests on demand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from kubesched.apiserver.durable import DurableServer
from kubesched.apiserver.request import ApiRequest, Response, User, refused
from kubesched.apiserver.server import ADMIN
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.stored_object import StoredObject
from kubesched.cluster.store import Change

from .history import WRITER, History, Posted

_REASONS: Final = {
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
SCHEDULER: Final = "system:kube-scheduler"


class Storm(msgspec.Struct, frozen=True):
    """Requests of replicas that fail.

    Attributes:
        trouble: A status code as a word, `hang` for no answer, `lost` for a request that is done
            without saying so.
        what: `leases`, `bindings`, `writes`, `reads` or `all`.
        share: So many of 1 go wrong.
        retry_after_seconds: What a 429 or 503 says; None for nothing.
        writer: The replica; "" for all.
    """

    trouble: str
    what: str
    share: float = 1.0
    retry_after_seconds: int | None = None
    writer: str = ""

    def strikes(self, request: ApiRequest, random: Random) -> bool:
        """Whether the storm affects a request."""
        if self.writer and self.writer != writer_of(request):
            return False
        return _is_one_of(self.what, request) and random.random() < self.share


def _is_one_of(what: str, request: ApiRequest) -> bool:
    if what == "leases":
        return "/leases" in request.path
    if what == "bindings":
        return request.path.endswith("/binding")
    is_read = request.method in {"GET", "HEAD"}
    return what == "all" or is_read == (what == "reads")


def writer_of(request: ApiRequest) -> str:
    """Return the name of the replica that sent a request, "" for others."""
    return request.user.uid if request.user.name == SCHEDULER else ""


class Weather:
    """The current storms, kept across restarts of the server."""

    def __init__(self, random: Random) -> None:
        """Take what decides which request is hit."""
        self._random = random
        self.storms: dict[Storm, asyncio.Event] = {}

    def begin(self, storm: Storm) -> None:
        """Start a storm."""
        self.storms[storm] = asyncio.Event()

    def end(self, storm: Storm) -> None:
        """End a storm, and the requests that hang in it."""
        self.storms.pop(storm).set()

    def storm_for(self, request: ApiRequest) -> Storm | None:
        """Return the storm that affects a request of a replica."""
        if not writer_of(request):
            return None
        return next((one for one in self.storms if one.strikes(request, self._random)), None)

    async def passed(self, storm: Storm) -> None:
        """Wait until a storm is over."""
        over = self.storms.get(storm)
        if over is not None:
            await over.wait()


class RecordingServer(DurableServer):
    """An API server for tests; each replica has a token of its own, which is its name."""

    def __init__(self, path: Path, history: History, weather: Weather) -> None:
        """Go on with a file."""
        super().__init__(path, tracks_managers=False)
        self._history = history
        self._weather = weather
        # Recorded before it is kept.
        self.registry.store.on_write.insert(0, self._record)

    def _record(self, change: Change[StoredObject]) -> None:
        self._history.add_change(change, time.monotonic())

    def user_of(self, headers: Mapping[str, str]) -> User:
        """Return the administrator or a replica, by the token, which is the name."""
        name = headers.get("authorization", "").removeprefix("Bearer ")
        if name == ADMIN.name:
            return ADMIN
        return User(SCHEDULER, ("system:authenticated",), name)

    async def handle(self, request: ApiRequest) -> Response:
        """Return the answer, or the failure of a storm."""
        WRITER.set(writer_of(request))
        code = 0
        try:
            answer = await self._weathered(request)
            code = answer.status
        finally:
            if request.path.endswith("/binding"):
                pod = request.path.split("/")[-2]
                entry = Posted(time.monotonic(), writer_of(request), pod, code)
                self._history.entries.append(entry)
        return answer

    async def _weathered(self, request: ApiRequest) -> Response:
        storm = self._weather.storm_for(request)
        if storm is None:
            return await super().handle(request)
        if storm.trouble == "lost":
            await super().handle(request)
        if storm.trouble in {"hang", "lost"}:
            await self._weather.passed(storm)
            return _refusal(503, None)
        return _refusal(int(storm.trouble), storm.retry_after_seconds)


def _refusal(code: int, retry_after_seconds: int | None) -> Response:
    details = None if retry_after_seconds is None else {"retryAfterSeconds": retry_after_seconds}
    return refused(StatusError(code, _REASONS[code], "the weather is bad", details))
