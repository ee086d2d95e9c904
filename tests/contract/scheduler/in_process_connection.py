"""InProcessConnection carries a scheduler's requests to an API server in the same process.

It stands where `client.rest.HttpRestClient` stands otherwise, and tells the server what that would:
who asks, with which part of the program, within which time. Every request is noted as an audit log
does.

Differs:  a request is a millisecond on its way, and so is its answer; requests of one process
          arrive in the order in which they were sent. Nothing is retried.
"""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import msgspec

from kubesched.api.go_text import go_duration
from kubesched.apiserver import request as served
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.errors import error_of_answer, error_of_failure
from kubesched.client.requests import Request, RequestObserver
from kubesched.client.rest import Permit, TokenBucket, limiter_of

Plain = dict[str, Any]
Ask = Callable[[served.ApiRequest], Awaitable[served.Response]]

SCHEDULER: Final = served.User("system:kube-scheduler", ("system:authenticated",))
HALF_WAY_SECONDS: Final = 0.001
_APART_SECONDS: Final = 0.00001
_GOOD: Final = range(200, 207)


class Sent(msgspec.Struct):
    """A request of the scheduler, as in an audit log.

    Attributes:
        steps: How many steps of the script were done when it arrived.
        client: The last part of the user agent.
        method, path, query, body: What was asked.
        code, response: The answer; the status of a watch comes with its first event.
    """

    steps: int
    client: str
    method: str
    path: str
    query: dict[str, str]
    body: Plain
    code: int = 0
    response: Plain = {}


class Network:
    """One process's connection to the server.

    Attributes:
        is_cut: Whether nothing gets through any more.
    """

    def __init__(self, ask: Ask, sent: list[Sent], steps: Callable[[], int]) -> None:
        """Take who answers, where to note requests, and what counts the steps of the script."""
        self._ask = ask
        self._sent = sent
        self._steps = steps
        self._last_arrival = 0.0
        self._cut = asyncio.Event()

    @property
    def is_cut(self) -> bool:
        """Whether connections are refused."""
        return self._cut.is_set()

    def cut(self) -> None:
        """Refuse connections from now on, and break open ones."""
        self._cut.set()

    def connect(
        self,
        settings: ConnectionSettings,
        *,
        qps: float = 0.0,
        burst: int = 0,
        user_agent_suffix: str = "",
        timeout_seconds: float | None = None,
        observer: RequestObserver | None = None,
        permit: Permit | None = None,
    ) -> InProcessConnection:
        """Return a connection, as `client.connect.connect` does."""
        limiter = limiter_of(qps, burst)
        return InProcessConnection(self, user_agent_suffix, limiter, timeout_seconds, permit)

    async def exchange(
        self, request: Request, client: str, permit: Permit | None
    ) -> served.Response:
        """Send a request; return the answer as the server sent it."""
        await self._arrive()
        if self.is_cut:
            raise error_of_failure(_refused(), request.method, request.path)
        if permit is not None and request.method != "GET":
            permit()
        body = json.loads(request.body) if request.body else {}
        query = dict(request.query)
        sent = Sent(self._steps(), client, request.method, request.path, query, body)
        self._sent.append(sent)
        answer = await self._ask(_as_served(request))
        sent.code = answer.status
        if answer.stream is None and answer.body:
            sent.response = json.loads(answer.body)
        return answer

    async def _arrive(self) -> None:
        """Wait until the request arrives, after those sent earlier."""
        now = asyncio.get_running_loop().time()
        self._last_arrival = max(now + HALF_WAY_SECONDS, self._last_arrival + _APART_SECONDS)
        await asyncio.sleep(self._last_arrival - now)

    async def lines(self, stream: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
        """Yield a stream's lines shortly after they were sent, until the network is cut."""
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            while True:
                part = asyncio.ensure_future(anext(stream, None))
                await asyncio.wait((part, cut), return_when=asyncio.FIRST_COMPLETED)
                if self.is_cut:
                    part.cancel()
                    await asyncio.wait((part,))
                    raise error_of_failure(ConnectionResetError(), "GET", "")
                lines = part.result()
                if lines is None:
                    return
                await asyncio.sleep(HALF_WAY_SECONDS)
                for line in lines.splitlines():
                    yield line
        finally:
            cut.cancel()
            part.cancel()
            await asyncio.gather(part, return_exceptions=True)


class InProcessConnection:
    """Sends requests, as `client.requests.Rest`."""

    def __init__(
        self,
        network: Network,
        client: str,
        limiter: TokenBucket | None,
        timeout_seconds: float | None,
        permit: Permit | None,
    ) -> None:
        """See `Network.connect`."""
        self._network = network
        self._client = client
        self._limiter = limiter
        self._timeout_seconds = timeout_seconds
        self._permit = permit

    async def send(self, request: Request) -> bytes:
        """Return the body of the answer.

        Raises:
            ApiError: The server refused, or cannot be reached.
        """
        if self._limiter is not None:
            await self._limiter.wait()
        answer = await self._network.exchange(
            self._with_timeout(request), self._client, self._permit
        )
        await asyncio.sleep(HALF_WAY_SECONDS)
        return _body_of(answer, request.method)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream; yields its lines.

        Raises:
            ApiError: The server refused, or cannot be reached.
        """
        answer = await self._network.exchange(request, self._client, None)
        await asyncio.sleep(HALF_WAY_SECONDS)
        _body_of(answer, request.method)
        assert answer.stream is not None
        async with aclosing(answer.stream) as stream:
            yield self._network.lines(stream)

    async def aclose(self) -> None:
        """Do nothing: there is no connection to close."""

    def _with_timeout(self, request: Request) -> Request:
        if self._timeout_seconds is None:
            return request
        told = {**request.query, "timeout": go_duration(self._timeout_seconds)}
        return msgspec.structs.replace(request, query=told)


def _as_served(request: Request) -> served.ApiRequest:
    headers = {"accept": "application/json", "user-agent": "kubesched/contract"}
    if request.body:
        headers["content-type"] = request.content_type
    query = {name: (value,) for name, value in request.query.items()}
    return served.ApiRequest(request.method, request.path, query, headers, request.body, SCHEDULER)


def _body_of(answer: served.Response, method: str) -> bytes:
    if answer.status in _GOOD:
        return answer.body
    raise error_of_answer(
        answer.status, answer.body, method=method, content_type=answer.content_type
    )


def _refused() -> OSError:
    return ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
