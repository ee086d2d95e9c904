"""Extenders over real sockets on loopback."""

import asyncio
import socket

import pytest
from aiohttp import web

from kubesched.api.field_errors import ConfigError
from kubesched.app.environment import http_extenders
from kubesched.config.types import ExtenderConfiguration, ExtenderTLSConfig
from tests.client.scripted_server import serving
from tests.loops import in_real_time


async def post(url: str, timeout_seconds: float = 5.0) -> tuple[int, bytes]:
    """Ask through a transport."""
    async with http_extenders() as connect:
        transport = connect(ExtenderConfiguration(url_prefix=url))
        return await transport.post(url, b'{"Pod":1}', timeout_seconds)


@in_real_time
async def test_body_and_headers_arrive_and_the_answer_comes_back() -> None:
    """The extender reads JSON; its status and body are returned as they are."""

    async def answer(request: web.BaseRequest, _: object) -> web.Response:
        assert "application/json" == request.headers["Content-Type"]
        return web.Response(status=418, body=await request.read() * 100_000)

    async with serving(answer) as server:
        assert (418, b'{"Pod":1}' * 100_000) == await post(server.url)


@in_real_time
async def test_the_time_limit_covers_the_whole_exchange() -> None:
    """An extender that does not answer in time is a TimeoutError, which is an OSError."""

    async def answer(request: web.BaseRequest, _: object) -> web.Response:
        await asyncio.sleep(1)
        return web.Response()

    words = r"^context deadline exceeded \(Client.Timeout exceeded while awaiting headers\)$"
    async with serving(answer) as server:
        with pytest.raises(TimeoutError, match=words):
            await post(server.url, 0.02)


@in_real_time
async def test_the_time_limit_covers_the_body() -> None:
    """An answer that begins in time and does not end in time is none."""

    async def answer(request: web.BaseRequest, _: object) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{")
        await asyncio.sleep(1)
        return response

    async with serving(answer) as server:
        with pytest.raises(TimeoutError, match="while reading body"):
            await post(server.url, 0.05)


def test_refused_connection() -> None:
    """It raises OSError with Go's message, which kube-scheduler's events have."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(OSError, match=f"^dial tcp {place}: connect: connection refused$"):
            asyncio.run(post(f"http://{place}/filter"))


@in_real_time
async def test_broken_connections() -> None:
    """An extender that closes the connection or does not use TLS raises OSError."""

    async def hang_up(request: web.BaseRequest, _: object) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    words = r"^tls: first record does not look like a TLS handshake$"
    async with serving(hang_up) as server:
        with pytest.raises(OSError, match=r"^EOF$"):
            await post(server.url)
        with pytest.raises(OSError, match=words):
            await post(server.url.replace("http:", "https:"))


@in_real_time
async def test_certificates_that_cannot_be_read_are_a_field_error_of_the_configuration() -> None:
    """The field error names the extender."""
    tls = ExtenderTLSConfig(ca_file="/nowhere/ca.crt")
    extender = ExtenderConfiguration(url_prefix="https://x", enable_https=True, tls_config=tls)
    async with http_extenders() as connect:
        with pytest.raises(ConfigError, match=r"https://x.*nowhere"):
            connect(extender)
