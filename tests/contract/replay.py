"""Recorded conversations with a real API server, replayed with ours step by step."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import aiohttp

from kubesched.apiserver.listing import Page, token_of
from kubesched.apiserver.request import ANONYMOUS, ApiRequest, Response, User
from kubesched.apiserver.server import ADMIN, ApiServer

from .placeholders import EPOCH, DifferenceError, Placeholders

DATA: Final = Path(__file__).parent / "data" / "api"
USERS: Final = {
    "admin": ADMIN,
    "alice": User("alice", ("", "system:authenticated"), "alice-uid"),
    "system:kube-scheduler": User("system:kube-scheduler", ("system:authenticated",)),
}
_QUIET_SECONDS: Final = 0.5
_SOON_SECONDS: Final = 0.02
_END_SECONDS: Final = 120.0
_COMPARED_HEADERS: Final = ("warning", "retry-after", "allow")

Ask = Callable[[ApiRequest], Awaitable[Response]]


def names() -> list[str]:
    """Return the names of all recorded conversations."""
    return sorted(path.name.removesuffix(".json.gz") for path in DATA.glob("*.json.gz"))


def load(name: str) -> dict[str, Any]:
    """Return a recorded conversation."""
    recorded: dict[str, Any] = json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))
    return recorded


def _now() -> datetime:
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


async def replay_over_http(recorded: dict[str, Any]) -> None:
    """Replay a conversation with a new server that listens.

    Raises:
        DifferenceError: The server answers other than the real one did.
    """
    tokens = {f"token-{name}": user for name, user in USERS.items()}
    server = ApiServer(tokens, random=Random(1))
    await server.start()
    names = {user.name: f"Bearer {token}" for token, user in tokens.items()}
    async with aiohttp.ClientSession(server.url) as session:
        ask = HttpAsk(session, names).ask
        conversation = Conversation(recorded, ask, lambda: datetime.now(UTC), _SOON_SECONDS)
        try:
            await conversation.run()
        finally:
            await conversation.close()
            await server.stop()


class HttpAsk:
    """Sends requests over HTTP instead of in the process."""

    def __init__(self, session: aiohttp.ClientSession, credentials: dict[str, str]) -> None:
        self._session = session
        self._credentials = credentials

    async def ask(self, request: ApiRequest) -> Response:
        """Return what comes back."""
        headers = dict(request.headers)
        if request.user.name in self._credentials:
            headers["authorization"] = self._credentials[request.user.name]
        incoming = await self._session.request(
            request.method,
            request.path,
            params=[(name, value) for name, all_ in request.query.items() for value in all_],
            headers=headers,
            data=request.body or None,
            skip_auto_headers=("content-type", "accept"),
        )
        answer = Response(incoming.status, content_type=incoming.headers.get("content-type", ""))
        answer.headers = {
            name: incoming.headers[name]
            for name in ("retry-after", "allow")
            if name in incoming.headers
        }
        answer.warnings = tuple(_unquoted(text) for text in incoming.headers.getall("warning", ()))
        if incoming.headers.get("transfer-encoding") == "chunked":
            answer.stream = _lines(incoming)
        else:
            answer.body = await incoming.read()
        return answer


def _unquoted(warning: str) -> str:
    text = warning.removeprefix('299 - "').removesuffix('"')
    return text.replace('\\"', '"').replace("\\\\", "\\")


async def _lines(incoming: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    try:
        async for line in incoming.content:
            yield line
    finally:
        incoming.close()


async def replay(recorded: dict[str, Any]) -> None:
    """Replay a conversation with a new server.

    Raises:
        DifferenceError: The server answers other than the real one did.
    """
    # The random numbers and the times are the same in every run.
    server = ApiServer(now=_now, random=Random(1))
    conversation = Conversation(recorded, server.handle, _now)
    try:
        await conversation.run()
    finally:
        await conversation.close()


class Conversation:
    """The replay of one recorded conversation."""

    def __init__(
        self,
        recorded: dict[str, Any],
        ask: Ask,
        now: Callable[[], datetime],
        quiet_seconds: float = _QUIET_SECONDS,
    ) -> None:
        """Prepare to hold a conversation.

        Args:
            recorded: What was said.
            ask: Returns the answer to a request.
            now: The present, for the server's times.
            quiet_seconds: A stream that shows nothing for so long has shown everything.
        """
        self._quiet_seconds = quiet_seconds
        self._recorded = recorded
        self._ask = ask
        self._now = now
        self._keeps_managers = bool(recorded["managed_fields"])
        self._placeholders = Placeholders(recorded.get("list_only_rvs", ()))
        # What the real one got was made for a list that had shown two objects.
        self._placeholders.bind("<continue:expired>", token_of(Page(1, "c1\0")))
        self._streams: dict[str, _Stream] = {}

    async def run(self) -> None:
        """Carry out all steps in order."""
        for number, step in enumerate(self._recorded["steps"], 1):
            try:
                await self._do(step)
            except DifferenceError as difference:
                request = step.get("request") or {}
                about = f"{request.get('method', '')} {request.get('path', '')}".strip()
                what = about or ", ".join(f"{name} {step[name]!r:.60}" for name in step)
                note = f" ({step['note']})" if "note" in step else ""
                raise DifferenceError(f"step {number}, {what}{note}: {difference}") from None

    async def close(self) -> None:
        """End all streams."""
        for stream in self._streams.values():
            await stream.close()

    async def _do(self, step: dict[str, Any]) -> None:
        if "parallel" in step:
            await self._at_once(step["parallel"])
        elif "watch" in step:
            await self._open(step)
        elif "stream" in step:
            await self._read(step)
        elif "close" in step:
            await self._streams.pop(step["close"]).close()
        elif "wait_seconds" in step:
            await asyncio.sleep(step["wait_seconds"])
        else:
            await self._exchange(step)

    async def _exchange(self, step: dict[str, Any]) -> None:
        answer = await self._ask(self._request(step["request"]))
        self._compare(step["response"], answer)

    async def _at_once(self, entries: list[dict[str, Any]]) -> None:
        requests = [self._request(entry["request"]) for entry in entries]
        answers = await asyncio.gather(*(self._ask(request) for request in requests))
        statuses = sorted(answer.status for answer in answers)
        expected = sorted(entry["response"]["status"] for entry in entries)
        if statuses != expected:
            raise DifferenceError(f"statuses: expected {expected}, got {statuses}")
        # Ours takes them in order, so that the first is the winner here too.
        for entry, answer in zip(entries, answers, strict=True):
            self._compare(entry["response"], answer)

    def _request(self, recorded: dict[str, Any]) -> ApiRequest:
        filled = self._placeholders.filled(recorded)
        if "body" in filled:
            body = json.dumps(filled["body"]).encode()
        else:
            body = filled.get("body_text", "").encode()
        name = filled.get("user", "admin")
        return ApiRequest(
            filled["method"],
            filled["path"],
            {key: (value,) for key, value in filled.get("query", {}).items()},
            {"user-agent": "contract/1.0", **filled.get("headers", {})},
            body,
            ANONYMOUS if name is None else USERS[name],
        )

    def _compare(self, expected: dict[str, Any], answer: Response) -> None:
        if expected["status"] != answer.status:
            raise DifferenceError(
                f"status: expected {expected['status']}, got {answer.status}: "
                f"{answer.body.decode()[:600]}"
            )
        if "body" in expected:
            actual = json.loads(answer.body)
            self._compare_values(expected["body"], actual, "body")
        elif answer.stream is None:
            text = answer.body.decode()
            self._compare_values(expected.get("body_text", ""), text, "body")
        self._compare_headers(expected["headers"], answer)

    def _compare_values(self, expected: Any, actual: Any, path: str) -> None:
        if not self._keeps_managers:
            _strip_managers(actual)
        self._placeholders.compare(expected, actual, self._now(), path)

    def _compare_headers(self, expected: dict[str, str], answer: Response) -> None:
        actual = {name.lower(): value for name, value in answer.headers.items()}
        if answer.content_type:
            actual["content-type"] = answer.content_type
        if answer.warnings:
            # Of several headers of one name, the last is on record.
            text = answer.warnings[-1].replace("\\", "\\\\").replace('"', '\\"')
            actual["warning"] = f'299 - "{text}"'
        wanted: dict[str, str] = {
            name: actual[name] for name in _COMPARED_HEADERS if name in actual
        }
        if "content-type" in expected:
            wanted["content-type"] = actual.get("content-type", "")
        self._compare_values(expected, wanted, "headers")

    # Watches.

    async def _open(self, step: dict[str, Any]) -> None:
        answer = await self._ask(self._request(step["request"]))
        self._compare(step["response"], answer)
        if answer.stream is not None:
            self._streams[step["watch"]] = _Stream(answer, self._quiet_seconds)

    async def _read(self, step: dict[str, Any]) -> None:
        stream = self._streams[step["stream"]]
        events = await stream.read(until_end=bool(step.get("until_end")))
        shown = [event["type"] for event in events]
        expected = [event["type"] for event in step["events"]]
        if shown != expected:
            raise DifferenceError(f"events: expected {expected}, got {events!r:.600}")
        self._compare_values(step["events"], events, "events")
        if "ended_by" in step and not stream.is_over:
            raise DifferenceError("the stream goes on")


class _Stream:
    """Collects the events of a watch."""

    def __init__(self, answer: Response, quiet_seconds: float) -> None:
        self._answer = answer
        self._quiet_seconds = quiet_seconds
        self._events: list[dict[str, Any]] = []
        self._task = asyncio.create_task(self._gather())

    @property
    def is_over(self) -> bool:
        return self._task.done()

    async def _gather(self) -> None:
        assert self._answer.stream is not None
        async for lines in self._answer.stream:
            for line in lines.splitlines():
                event = json.loads(line)
                # The same bookmark several times in a row is on record once.
                is_repeated = event["type"] == "BOOKMARK" and self._events[-1:] == [event]
                if not is_repeated:
                    self._events.append(event)

    async def read(self, *, until_end: bool) -> list[dict[str, Any]]:
        await asyncio.wait([self._task], timeout=_END_SECONDS if until_end else self._quiet_seconds)
        if self.is_over:
            self._task.result()
        events, self._events = self._events, []
        return events

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


def _strip_managers(value: Any) -> None:
    if isinstance(value, dict):
        value.pop("managedFields", None)
        for one in value.values():
            _strip_managers(one)
    elif isinstance(value, list):
        for one in value:
            _strip_managers(one)
