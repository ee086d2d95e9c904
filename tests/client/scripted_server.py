"""A loopback HTTP server that answers as a test scripts it, and keeps the requests."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web


class ReceivedRequest(msgspec.Struct, frozen=True):
    """A request as it arrived."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]
    body: bytes


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


Answer = Callable[[web.BaseRequest, list[ReceivedRequest]], Awaitable[web.StreamResponse]]


class ScriptedServer:
    """What a test sees of the server.

    Attributes:
        url: Its URL.
        received: All requests, in order.
    """

    def __init__(self, url: str, received: list[ReceivedRequest]) -> None:
        self.url = url
        self.received = received


@asynccontextmanager
async def serving(
    answer: Answer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ScriptedServer]:
    """Serve on a free port of loopback."""
    received: list[ReceivedRequest] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        received.append(
            ReceivedRequest(
                request.method,
                request.raw_path.partition("?")[0],
                tuple(request.query.items()),
                {name.lower(): value for name, value in request.headers.items()},
                await request.read(),
            )
        )
        return await answer(request, received)

    server = web.Server(handle, handler_cancellation=True)
    runner = web.ServerRunner(server, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield ScriptedServer(f"{'https' if tls else 'http'}://127.0.0.1:{port}", received)
    finally:
        await runner.cleanup()
