"""HttpFront with clients that disconnect, and when it stops."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncGenerator
from typing import Final

import pytest

from kubesched.apiserver.request import ApiRequest, Response, User
from kubesched.apiserver.server import HttpFront

_RESET: Final = struct.pack("ii", 1, 0)


def test_a_client_that_disconnects_before_its_watch_begins_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A disconnected client is not an error of the server."""

    async def lines() -> AsyncGenerator[bytes]:
        yield b"{}\n"

    async def main() -> None:
        asked, disconnected = asyncio.Event(), asyncio.Event()

        async def answer(_request: ApiRequest) -> Response:
            asked.set()
            await disconnected.wait()
            return Response(200, stream=lines())

        front = HttpFront(answer, lambda _headers: User("me", ()))
        await front.start("127.0.0.1", 0)
        host, port = front.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: it\r\n\r\n")
        await asked.wait()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()
        await asyncio.sleep(0.02)
        disconnected.set()
        await asyncio.sleep(0.02)
        await front.stop()
        assert reader.at_eof() or not await reader.read()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert [] == [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_that_is_being_accepted_ends_with_the_server(turns: int) -> None:
    """Accepting takes a few turns of the loop; stopping may begin in each of them."""

    async def main() -> bytes:
        front = HttpFront(_no_answer, lambda _headers: User("me", ()))
        await front.start("127.0.0.1", 0)
        host, port = front.address.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            await front.stop()
            try:
                return client.recv(1)
            except ConnectionResetError:
                # It was not accepted.
                return b""

    assert b"" == asyncio.run(main())


async def _no_answer(_request: ApiRequest) -> Response:
    raise AssertionError("nothing is asked")
