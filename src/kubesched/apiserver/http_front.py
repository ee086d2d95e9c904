"""HttpFront carries requests from HTTP to the server and its answers back.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters (v1.36)
Invariants: a slow watcher delays only itself.
Differs:  HTTP/1.1; answers are not compressed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.web_runner import ServerRunner, TCPSite

from kubesched.api.errors import ApiError
from kubesched.apiserver.request import JSON, ApiRequest, Response, User
from kubesched.apiserver.status import StatusError, refused

_BODY_MAX: Final = 3 * 1024 * 1024
_BROWSERS: Final = ("curl", "Wget", "Mozilla/5.0")
_STOP_SECONDS: Final = 1.0


class HttpFront:
    """Listens for a server.

    Attributes:
        address: Host and port where it listens; "" while it does not.
    """

    def __init__(
        self,
        answer: Callable[[ApiRequest], Awaitable[Response]],
        user_of: Callable[[Mapping[str, str]], User],
    ) -> None:
        """Set up; nothing happens before `start`.

        Args:
            answer: Returns the answer to a request; raises nothing.
            user_of: Returns who sends a request with such headers, or raises an ApiError.
        """
        self.address = ""
        self._answer = answer
        self._user_of = user_of
        self._runner: ServerRunner | None = None
        self._streaming: dict[asyncio.Task[object], None] = {}

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen.

        Args:
            host: The address; one of the machine's own.
            port: 0 for any that is free.
            tls: Holds the certificate to show; None for plain HTTP.

        Raises:
            OSError: Nothing can listen there.
        """
        runner = ServerRunner(
            web.Server(self._handle, access_log=None), shutdown_timeout=_STOP_SECONDS
        )
        await runner.setup()
        try:
            await TCPSite(runner, host, port, ssl_context=tls).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        found = runner.addresses[0]
        self.address = f"{found[0]}:{found[1]}"

    async def stop(self) -> None:
        """End all watches, and listen no more; stopping twice is fine."""
        runner, self._runner = self._runner, None
        if runner is not None:
            for task in tuple(self._streaming):
                task.cancel()
            assert runner.server is not None, "it has been set up"
            transports = [connection.transport for connection in runner.server.connections]
            await runner.cleanup()
            # Over TLS, closing waits for the client to agree.
            for transport in transports:
                if transport is not None:
                    transport.abort()
            await asyncio.sleep(0)
            self.address = ""

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        try:
            request = await self._read(incoming)
        except ApiError as error:
            return _plain(refused(error), b"")
        answer = await self._answer(request)
        if answer.stream is not None:
            return await self._stream(incoming, answer)
        return _plain(answer, _shown(request, answer))

    async def _read(self, incoming: web.BaseRequest) -> ApiRequest:
        headers: dict[str, str] = {}
        for name, value in incoming.headers.items():
            # One header may come in several lines.
            earlier = headers.get(name.lower())
            headers[name.lower()] = value if earlier is None else f"{earlier},{value}"
        user = self._user_of(headers)
        body = await _body_of(incoming) if incoming.body_exists else b""
        query: dict[str, tuple[str, ...]] = {}
        if incoming.query_string:
            for name in dict.fromkeys(incoming.query):
                query[name] = tuple(incoming.query.getall(name))
        return ApiRequest(incoming.method, incoming.path, query, headers, body, user)

    async def _stream(self, incoming: web.BaseRequest, answer: Response) -> web.StreamResponse:
        outgoing = web.StreamResponse(status=answer.status, headers=_headers(answer))
        outgoing.enable_chunked_encoding()
        assert answer.stream is not None, "asked before"
        task = asyncio.current_task()
        assert task is not None, "handlers run in tasks"
        self._streaming[task] = None
        try:
            async with contextlib.aclosing(answer.stream) as lines:
                # A write fails once the client has disconnected.
                with contextlib.suppress(ConnectionResetError):
                    await outgoing.prepare(incoming)
                    async for line in lines:
                        await outgoing.write(line)
                    await outgoing.write_eof()
        finally:
            self._streaming.pop(task, None)
        return outgoing


async def _body_of(incoming: web.BaseRequest) -> bytes:
    parts = []
    size = incoming.content_length or 0
    if size > _BODY_MAX:
        raise _too_large()
    size = 0
    async for part in incoming.content.iter_any():
        size += len(part)
        if size > _BODY_MAX:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def _too_large() -> StatusError:
    message = f"Request entity too large: limit is {_BODY_MAX}"
    return StatusError(413, "RequestEntityTooLarge", message)


def _headers(answer: Response) -> list[tuple[str, str]]:
    headers = list(answer.headers.items())
    if answer.content_type:
        headers.append(("Content-Type", answer.content_type))
    headers.append(("Cache-Control", "no-cache, private"))
    for text in answer.warnings:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        headers.append(("Warning", f'299 - "{quoted}"'))
    return headers


def _plain(answer: Response, body: bytes) -> web.Response:
    return web.Response(body=body or answer.body, status=answer.status, headers=_headers(answer))


def _shown(request: ApiRequest, answer: Response) -> bytes:
    """Return the body, indented if the client wants that."""
    if answer.content_type != JSON:
        return answer.body
    pretty = request.query.get("pretty")
    if pretty is None:
        agent = request.headers.get("user-agent", "")
        is_wanted = agent.startswith(_BROWSERS)
    else:
        is_wanted = request.flag("pretty")
    if not is_wanted:
        return answer.body
    return msgspec.json.format(answer.body, indent=2)
