"""A proxy on loopback: passes on CONNECT, or answers single requests itself."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """What a test sees of the proxy.

    Attributes:
        address: Where it listens.
        heads: The first line of every request, and its credentials.
        refusal: Answered to CONNECT, "" to do it.
    """

    def __init__(self) -> None:
        self.address = ""
        self.heads: list[tuple[str, str]] = []
        self.refusal = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = dict(line.split(": ", 1) for line in lines[1:] if line)
            self.heads.append((lines[0], fields.get("Proxy-Authorization", "")))
            method, target, _ = lines[0].split()
            if method != "CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nforwarded")
                await writer.drain()
            elif self.refusal:
                writer.write(f"HTTP/1.1 {self.refusal}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
            else:
                host, _, port = target.rpartition(":")
                far_reader, far_writer = await asyncio.open_connection(host, int(port))
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def proxying(tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """Serve on a free port of loopback."""
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)
    proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
