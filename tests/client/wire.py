"""A transport without a socket: the test is the other end."""

from __future__ import annotations

import asyncio

from kubesched.client.http_connection import HttpConnection


class Wire(asyncio.Transport):
    """Keeps what is written; closing it is told to the connection at once.

    Attributes:
        written: All that was written.
        wants_more: Whether the connection wants to be told of more.
    """

    def __init__(self, connection: HttpConnection) -> None:
        super().__init__()
        self._connection = connection
        self._is_closed = False
        self.written = b""
        self.wants_more = True
        connection.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep what is written."""
        self.written += bytes(data)

    def pause_reading(self) -> None:
        """Take note."""
        self.wants_more = False

    def resume_reading(self) -> None:
        """Take note."""
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
        """Be the other end, and go."""
        if not self._is_closed:
            self._is_closed = True
            self._connection.connection_lost(error)
