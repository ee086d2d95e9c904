"""A server of pods without sockets, for lists and watches, that fails at random."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any, Final

import msgspec

from kubesched.api.errors import ApiError, GoneError, TooManyRequestsError
from kubesched.client.requests import Request

Plain = dict[str, Any]
_END = b""


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


class Change(msgspec.Struct, frozen=True):
    """What happened, at which version; before and after as far as they are there."""

    version: int
    before: Plain | None
    after: Plain | None


class FakeServer:
    """Stores pods and sends their changes to watches; a `Rest`.

    Attributes:
        pods: By name, as the server has them.
        version: Of the last change.
        requests: What was asked.
        faults: May be changed at any time.
        paused_seconds: How long every answer takes.
    """

    def __init__(self, random: Random, faults: Faults = FAULTLESS) -> None:
        self.pods: dict[str, Plain] = {}
        self.version = 1
        self.requests: list[Request] = []
        self.faults = faults
        self.paused_seconds = 0.0
        self._random = random
        self._changes: list[Change] = []
        self._oldest = 1
        self._changed = asyncio.Event()
        self._lists: dict[str, tuple[int, list[Plain]]] = {}

    # What others do.

    def put(self, name: str, phase: str = "Pending", **labels: str) -> None:
        """Create or change a pod."""
        self.version += 1
        before = self.pods.get(name)
        uid = before["metadata"]["uid"] if before else f"uid-{self.version}"
        after = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": uid,
                "resourceVersion": str(self.version),
                "creationTimestamp": None,
                "labels": labels,
            },
            "spec": {"containers": [{"name": "main", "image": "pause"}]},
            "status": {"phase": phase},
        }
        self.pods[name] = after
        self._note(Change(self.version, before, after))

    def delete(self, name: str) -> None:
        """Delete a pod."""
        self.version += 1
        self._note(Change(self.version, self.pods.pop(name), None))

    def forget(self) -> None:
        """Forget all changes up to now, and all lists that are being read."""
        self._oldest = self.version
        self._changes.clear()
        self._lists.clear()

    def _note(self, change: Change) -> None:
        self._changes.append(change)
        self._changed.set()
        self._changed = asyncio.Event()

    # Requests.

    async def send(self, request: Request) -> bytes:
        """List pods."""
        await self._answer(request)
        query = dict(request.query)
        token = query.get("continue", "")
        if token:
            if token not in self._lists:
                raise GoneError("The provided continue parameter is too old")
            version, items = self._lists.pop(token)
        else:
            self._check_version(query.get("resourceVersion", ""))
            version = self.version
            items = [pod for _, pod in sorted(self.pods.items()) if _is_selected(query, pod)]
        limit = int(query.get("limit", "0")) or len(items)
        rest = items[limit:]
        metadata: Plain = {"resourceVersion": str(version)}
        if rest:
            metadata["continue"] = f"token-{len(self.requests)}"
            self._lists[metadata["continue"]] = (version, rest)
        bare = [
            {name: pod[name] for name in ("metadata", "spec", "status")} for pod in items[:limit]
        ]
        return msgspec.json.encode(
            {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": bare}
        )

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Watch pods."""
        await self._answer(request)
        query = dict(request.query)
        if "sendInitialEvents" in query and not self.faults.streams_initial_events:
            raise ApiError(422, "Invalid", "sendInitialEvents is forbidden")
        lines = self._lines(query)
        try:
            yield lines
        finally:
            await lines.aclose()

    async def _answer(self, request: Request) -> None:
        self.requests.append(request)
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

    def _check_version(self, version: str) -> None:
        if version and int(version) > self.version:
            message = f"Timeout: Too large resource version: {version}, current: {self.version}"
            raise ApiError(504, "Timeout", message)

    async def _lines(self, query: dict[str, str]) -> Any:
        """Yield the lines of a watch; a generator, so that it can be closed."""
        deadline = asyncio.get_running_loop().time() + float(query["timeoutSeconds"])
        version = int(query.get("resourceVersion", "0") or "0")
        if "sendInitialEvents" in query or not version:
            self._check_version(query.get("resourceVersion", ""))
            version = self.version
            initial = [pod for _, pod in sorted(self.pods.items()) if _is_selected(query, pod)]
            self._random.shuffle(initial)
            for pod in initial:
                yield _line("ADDED", pod)
                if await self._goes_wrong():
                    return
            yield _bookmark(version, is_end=True)
        async for line in self._news(query, version, deadline):
            yield line

    async def _news(
        self, query: dict[str, str], version: int, deadline: float
    ) -> AsyncIterator[bytes]:
        while asyncio.get_running_loop().time() < deadline:
            if version < self._oldest:
                yield _line("ERROR", _status(410, "Expired", "too old resource version"))
                return
            for change in [change for change in self._changes if change.version > version]:
                version = change.version
                if line := _change_line(query, change):
                    yield line
                async for odd in self._oddities(version):
                    if odd == _END:
                        return
                    yield odd
            if self.version > version:
                # Something happened while this was being read.
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()

    async def _oddities(self, version: int) -> AsyncIterator[bytes]:
        random, faults = self._random, self.faults
        if random.random() < faults.bookmarks:
            yield _bookmark(version)
            yield _bookmark(version)
        if random.random() < faults.error_events:
            code, reason = random.choice(
                ((410, "Expired"), (429, "TooManyRequests"), (500, "InternalError"))
            )
            yield _line("ERROR", _status(code, reason, "something went wrong"))
            yield _END
        if await self._goes_wrong():
            yield _END

    async def _goes_wrong(self) -> bool:
        """Return whether the stream ends here; raises if its connection breaks."""
        await asyncio.sleep(self._random.random() * self.paused_seconds)
        if self._random.random() < self.faults.torn:
            raise ApiError(0, "Unanswered", "unexpected EOF")
        return self._random.random() < self.faults.cut


def _is_selected(query: dict[str, str], pod: Plain | None) -> bool:
    if pod is None:
        return False
    if "fieldSelector" not in query:
        return True
    return pod["status"]["phase"] not in ("Succeeded", "Failed")


def _change_line(query: dict[str, str], change: Change) -> bytes:
    before = _is_selected(query, change.before)
    after = _is_selected(query, change.after)
    if after:
        return _line("MODIFIED" if before else "ADDED", change.after or {})
    if not before:
        return b""
    last = change.after or change.before or {}
    metadata = last["metadata"] | {"resourceVersion": str(change.version)}
    return _line("DELETED", last | {"metadata": metadata})


def _line(word: str, item: Plain) -> bytes:
    return msgspec.json.encode({"type": word, "object": item})


def _bookmark(version: int, *, is_end: bool = False) -> bytes:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if is_end else {}
    metadata = {"resourceVersion": str(version), "creationTimestamp": None, **annotations}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"containers": None}}
    return _line("BOOKMARK", pod | {"status": {}})


def _status(code: int, reason: str, message: str) -> Plain:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
