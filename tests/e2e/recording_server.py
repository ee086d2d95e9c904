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


class RequestFault(msgspec.Struct, frozen=True):
    """Requests of replicas that fail.

    Attributes:
        effect: A status code as text, `hang` for no answer, `lost` for a request that is executed
            without an answer.
        requests: `leases`, `bindings`, `writes`, `reads` or `all`.
        share: The share of these requests that fail.
        retry_after_seconds: Of a 429 or 503; None for no such detail.
    """

    effect: str
    requests: str
    share: float
    retry_after_seconds: int | None = None

    def affects(self, request: ApiRequest, random: Random) -> bool:
        """Whether a request fails."""
        return _is_one_of(self.requests, request) and random.random() < self.share


def _is_one_of(requests: str, request: ApiRequest) -> bool:
    if requests == "leases":
        return "/leases" in request.path
    if requests == "bindings":
        return request.path.endswith("/binding")
    is_read = request.method in {"GET", "HEAD"}
    return requests == "all" or is_read == (requests == "reads")


def writer_of(request: ApiRequest) -> str:
    """Return the name of the replica that sent a request, "" for others."""
    return request.user.uid if request.user.name == SCHEDULER else ""


class RequestFaults:
    """The current faults of requests, kept across restarts of the server."""

    def __init__(self, random: Random) -> None:
        """Take the random source that chooses the requests."""
        self._random = random
        self._ends: dict[RequestFault, asyncio.Event] = {}

    async def inject(self, fault: RequestFault, seconds: float) -> None:
        """Let requests fail for a while, unless the same fault is there already."""
        if fault in self._ends:
            return
        self._ends[fault] = asyncio.Event()
        await asyncio.sleep(seconds)
        self._ends.pop(fault).set()

    def of(self, request: ApiRequest) -> RequestFault | None:
        """Return the fault of a request, None if it does not fail."""
        if not writer_of(request):
            return None
        return next((one for one in self._ends if one.affects(request, self._random)), None)

    async def wait_for_end(self, fault: RequestFault) -> None:
        """Wait until a fault is over."""
        end = self._ends.get(fault)
        if end is not None:
            await end.wait()


class RecordingServer(DurableServer):
    """An API server for tests; each replica has a token of its own, which is its name."""

    def __init__(self, path: Path, history: History, faults: RequestFaults) -> None:
        """Continue with the objects of a file."""
        super().__init__(path)
        self._history = history
        self._faults = faults
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
        """Return the answer, or an injected failure."""
        WRITER.set(writer_of(request))
        code = 0
        try:
            answer = await self._injected(request)
            code = answer.status
        finally:
            if request.path.endswith("/binding"):
                pod = request.path.split("/")[-2]
                entry = Posted(time.monotonic(), writer_of(request), pod, code)
                self._history.entries.append(entry)
        return answer

    async def _injected(self, request: ApiRequest) -> Response:
        fault = self._faults.of(request)
        if fault is None:
            return await super().handle(request)
        if fault.effect == "lost":
            await super().handle(request)
        if fault.effect in {"hang", "lost"}:
            await self._faults.wait_for_end(fault)
            return _refusal(503, None)
        return _refusal(int(fault.effect), fault.retry_after_seconds)


def _refusal(code: int, retry_after_seconds: int | None) -> Response:
    details = None if retry_after_seconds is None else {"retryAfterSeconds": retry_after_seconds}
    return refused(StatusError(code, _REASONS[code], "injected failure", details))
