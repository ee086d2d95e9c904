"""Wire: a transport without a socket, for tests of connections."""

from __future__ import annotations

import asyncio

from kubesched.client.http_connection import HttpConnection


class Wire(asyncio.Transport):
    """Records what is written; closing it calls `connection_lost` at once.

    Attributes:
        written: All that was written.
        wants_more: Whether the connection reads; False while paused.
    """

    def __init__(self, connection: HttpConnection) -> None:
        super().__init__()
        self._connection = connection
        self._is_closed = False
        self.written = b""
        self.wants_more = True
        connection.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Record the data."""
        self.written += bytes(data)

    def deliver(self, data: bytes) -> None:
        """Pass data to the connection, as if the server had sent it."""
        while data:
            buffer = self._connection.get_buffer(-1)
            part, data = data[: len(buffer)], data[len(buffer) :]
            buffer[: len(part)] = part
            self._connection.buffer_updated(len(part))

    def pause_reading(self) -> None:
        """Record it."""
        self.wants_more = False

    def resume_reading(self) -> None:
        """Record it."""
        self.wants_more = True

    def is_closing(self) -> bool:
        """Whether it has been closed."""
        return self._is_closed

    def close(self) -> None:
        """Close it."""
        self.hang_up()

    def abort(self) -> None:
        """Close it."""
        self.hang_up()

    def hang_up(self, error: Exception | None = None) -> None:
        """Close the connection, as if the server had."""
        if not self._is_closed:
            self._is_closed = True
            self._connection.connection_lost(error)
