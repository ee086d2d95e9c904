"""The proxy behaves like the network that is set."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from tests.loops import in_real_time

from .faulty_front import FaultyFront, Network

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_MOMENT_SECONDS = 0.03
_LONG_SECONDS = 10.0


@contextlib.asynccontextmanager
async def _fronted() -> AsyncIterator[FaultyFront]:
    """Put a proxy in front of an echo server."""
    handlers: list[asyncio.Task[None]] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "connections are handled in tasks"
        handlers.append(task)
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(line)
        writer.transport.abort()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    front = FaultyFront(f"http://{host}:{port}")
    await front.start()
    try:
        yield front
    finally:
        await front.stop()
        server.close()
        await asyncio.gather(*handlers)


async def _connect(front: FaultyFront) -> Streams:
    return await asyncio.open_connection("127.0.0.1", int(front.url.rpartition(":")[2]))


async def _ask(streams: Streams) -> bytes:
    reader, writer = streams
    writer.write(b"hello\n")
    return await reader.readline()


@in_real_time
async def test_a_good_network_forwards_everything() -> None:
    """Sent bytes come back."""
    async with _fronted() as front:
        streams = await _connect(front)
        assert b"hello\n" == await _ask(streams)
        streams[1].close()


@in_real_time
async def test_a_refusing_network() -> None:
    """Open connections are reset; afterwards the port is the same."""
    async with _fronted() as front:
        streams = await _connect(front)
        assert b"hello\n" == await _ask(streams)
        await front.become(Network.REFUSED)
        with pytest.raises(ConnectionRefusedError):
            await _connect(front)
        with pytest.raises(ConnectionResetError):
            await streams[0].readexactly(1)
        await front.become(Network.GOOD)
        again = await _connect(front)
        assert b"hello\n" == await _ask(again)
        for _, writer in (streams, again):
            writer.close()


@in_real_time
async def test_a_silent_network() -> None:
    """Nothing arrives; all connections are reset afterwards."""
    async with _fronted() as front:
        before = await _connect(front)
        assert b"hello\n" == await _ask(before)
        await front.become(Network.SILENT)
        during = await _connect(front)
        for streams in (before, during):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(_MOMENT_SECONDS):
                    await _ask(streams)
        await front.become(Network.GOOD)
        for streams in (before, during):
            with pytest.raises(ConnectionResetError):
                await streams[0].readexactly(1)
            streams[1].close()


@in_real_time
async def test_a_delay_holds_for_each_direction() -> None:
    """An answer takes twice as long."""
    async with _fronted() as front:
        front.delay_seconds = _MOMENT_SECONDS / 2
        streams = await _connect(front)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert b"hello\n" == await _ask(streams)
        assert loop.time() - began >= 0.9 * _MOMENT_SECONDS
        streams[1].close()


@pytest.mark.parametrize("turns", range(5))
@in_real_time
async def test_a_connection_that_is_being_accepted_ends_too(turns: int) -> None:
    """Wherever asyncio is with it when the proxy stops."""
    async with _fronted() as front:
        with socket.create_connection(("127.0.0.1", int(front.url.rpartition(":")[2]))) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            await front.stop()
            client.settimeout(_LONG_SECONDS)
            with contextlib.suppress(ConnectionResetError):
                assert b"" == await asyncio.to_thread(client.recv, 1)
