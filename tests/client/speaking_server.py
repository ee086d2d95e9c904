"""A loopback HTTP server that answers as a test scripts it, and keeps what it was asked."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web


class Asked(msgspec.Struct, frozen=True):
    """A request as it arrived."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]
    body: bytes


Answer = Callable[[web.BaseRequest, list[Asked]], Awaitable[web.StreamResponse]]


class SpeakingServer:
    """What a test sees of the server.

    Attributes:
        url: Where it listens.
        asked: Every request, in order.
    """

    def __init__(self, url: str, asked: list[Asked]) -> None:
        self.url = url
        self.asked = asked


@asynccontextmanager
async def serving(
    answer: Answer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[SpeakingServer]:
    """Serve on a free port of loopback."""
    asked: list[Asked] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(
            Asked(
                request.method,
                request.raw_path.partition("?")[0],
                tuple(request.query.items()),
                {name.lower(): value for name, value in request.headers.items()},
                await request.read(),
            )
        )
        return await answer(request, asked)

    server = web.Server(handle, handler_cancellation=True)
    runner = web.ServerRunner(server, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield SpeakingServer(f"{'https' if tls else 'http'}://127.0.0.1:{port}", asked)
    finally:
        await runner.cleanup()
