"""A TCP proxy between one replica and the API server that simulates a bad network.

What is on its way when the network is cut never arrives: a connection that was cut is reset once
the network is back, so that nothing is delivered minutes after it was sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from kubesched.apiserver.server import close_listener

_CHUNK_BYTES: Final = 2**16
_NO_LINGERING: Final = struct.pack("ii", 1, 0)
_HOST: Final = "127.0.0.1"


class Network(Enum):
    """The state of the network."""

    GOOD = "good"
    REFUSED = "refused"
    """Nobody listens, and what was open is reset."""
    SILENT = "silent"
    """Connections open and stay open, and nothing arrives any more."""


class _Link:
    """A connection with both its ends."""

    def __init__(self, *writers: asyncio.StreamWriter) -> None:
        self.writers = list(writers)
        self.is_cut = False

    def reset(self) -> None:
        for writer in self.writers:
            if not writer.transport.is_closing():
                # Without waiting for pending bytes, so that the other side gets a reset.
                opened = writer.get_extra_info("socket")
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
            writer.transport.abort()


class FaultyFront:
    """Forwards bytes as the state of the network allows.

    Attributes:
        delay_seconds: How long everything takes, in each direction.
    """

    def __init__(self, upstream: str) -> None:
        """Take the URL of the server."""
        parts = urlsplit(upstream)
        assert parts.hostname is not None, "a URL with a host"
        assert parts.port is not None, "a URL with a port"
        self._upstream = (parts.hostname, parts.port)
        # While nobody listens, no connection of another process may get the port.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind((_HOST, 0))
        self._port = self._reserved.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._network = Network.GOOD
        self._is_stopped = False
        self._links: dict[_Link, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.delay_seconds = 0.0

    @property
    def url(self) -> str:
        """The URL for replicas."""
        return f"http://{_HOST}:{self._port}"

    async def start(self) -> None:
        """Listen, also after a restart."""
        self._server = await asyncio.start_server(self._accept, _HOST, self._port)

    async def become(self, network: Network) -> None:
        """Change the state of the network."""
        if network is self._network or self._is_stopped:
            return
        was, self._network = self._network, network
        if network is Network.SILENT:
            for link in self._links:
                link.is_cut = True
        else:
            self.reset(only_cut=network is Network.GOOD)
        if network is Network.REFUSED:
            await self._close()
        elif was is Network.REFUSED:
            await self.start()

    def reset(self, *, only_cut: bool = False) -> None:
        """Break what is open."""
        for link in list(self._links):
            if link.is_cut or not only_cut:
                link.reset()

    async def stop(self) -> None:
        """Stop listening and reset open connections."""
        self._is_stopped = True
        await self._close()
        self._reserved.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await close_listener(server)
        self.reset()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer)
        link.is_cut = self._network is Network.SILENT
        task = asyncio.current_task()
        assert task is not None, "connections are handled in tasks"
        self._links[link] = self._tasks[task] = None
        try:
            # Streams take a handler that is cancelled for one that failed.
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._serve(link, reader, writer)
        finally:
            link.reset()
            del self._links[link], self._tasks[task]

    async def _serve(
        self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        theirs, ours = await asyncio.open_connection(*self._upstream)
        link.writers.append(ours)
        ways = [
            asyncio.ensure_future(self._pass(link, reader, ours)),
            asyncio.ensure_future(self._pass(link, theirs, writer)),
        ]
        try:
            # A client waits for nothing once it has closed its side, so one end is the end.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(
        self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while chunk := await reader.read(_CHUNK_BYTES):
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            if link.is_cut:
                # Whoever has sent it does not know.
                continue
            writer.write(chunk)
            await writer.drain()
        if link.is_cut:
            await asyncio.Event().wait()
