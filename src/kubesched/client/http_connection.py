"""HttpConnection sends requests over one connection, one after the other.

llhttp does the framing. `dial.py` opens connections, and `connection_pool.py` assigns them.

Upstream: net/http, transport.go: persistConn (Go 1.25)
Differs:  HTTP/1.1 only, without compression; interim responses are skipped; a response in another
          protocol is an error.
Invariants: a connection is reused only after its response was read to the end.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Final, cast

import httptools

# The read buffer; beyond it, reading pauses.
_UNREAD_BYTES_MAX: Final = 2**20
_FINAL_STATUS_MIN: Final = 200


class DisconnectedError(ConnectionResetError):
    """The server closed the connection before it responded."""


class UnfinishedAnswerError(OSError):
    """The connection broke within a response, or the response is not HTTP."""


class _State(Enum):
    """The state of the current request."""

    IDLE = "no request, or its response is complete"
    ASKED = "waiting for the head of the response"
    ANSWERING = "reading the body of the response"


class HttpConnection(asyncio.Protocol):
    """One connection: ask, read the response to its end, ask again.

    Attributes:
        status: HTTP status of the response.
        headers: Of the response, by lower-case name; the last value of a repeated header.
        transport: Set once the connection is made.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        """Set up. To be called while a loop runs."""
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._chunks: list[bytes] = []
        self._unread = 0
        self._is_paused = False
        self._state = _State.IDLE
        self._is_kept = True
        self.status = 0
        self.headers: dict[bytes, bytes] = {}

    @property
    def is_reusable(self) -> bool:
        """Whether another request may be sent."""
        return self._state is _State.IDLE and self._is_kept and self._failure is None

    async def ask(self, message: bytes) -> int:
        """Send a request, head and body; return the status once the response's head has arrived.

        Raises:
            DisconnectedError: The connection was closed before the response began.
            OSError: It broke.
        """
        if self._chunks:
            # The previous caller left without reading the response.
            self._taken()
        self.headers = {}
        self._state = _State.ASKED
        self.transport.write(message)
        while self._state is _State.ASKED:
            await self._more()
        return self.status

    async def read(self) -> bytes:
        """Return the bytes of the body that have arrived and were not read yet, b"" at its end.

        Raises:
            OSError: The connection broke before the end.
        """
        while not self._chunks:
            if self._state is _State.IDLE:
                return b""
            await self._more()
        return self._taken()

    async def read_all(self) -> bytes:
        """Return the body.

        Raises:
            OSError: The connection broke before its end.
        """
        if self._state is _State.IDLE:
            # Most responses are short and arrive together with their heads.
            return self._taken()
        parts = []
        while part := await self.read():
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the connection, gracefully if no request is under way."""
        if self.is_reusable:
            self._is_kept = False
            self.transport.close()
        else:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_kept = False
        self.transport.abort()

    @property
    def lost(self) -> asyncio.Future[None]:
        """Done once the connection is closed."""
        return self._lost

    async def _more(self) -> None:
        """Wait for data."""
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        await self._waiter

    def _taken(self) -> bytes:
        chunks = self._chunks
        self._chunks = []
        self._unread = 0
        if self._is_paused:
            self._is_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        if self._parser is None:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._failure is None:
                self._failure = UnfinishedAnswerError(f"malformed HTTP response: {error}")
            self._parser = None
            self.transport.abort()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the current request; a response without a length ends here without a failure."""
        # Break the reference cycle with the parser.
        self._parser = None
        if self._failure is None:
            self._failure = self._reason(exc)
            if self._state is _State.ANSWERING and exc is None and not self._has_length():
                self._state = _State.IDLE
        if not self._lost.done():
            self._lost.set_result(None)
        self._wake()

    def _has_length(self) -> bool:
        return b"content-length" in self.headers or b"transfer-encoding" in self.headers

    def _reason(self, exc: Exception | None) -> Exception:
        if self._state is _State.ANSWERING:
            return UnfinishedAnswerError(f"unexpected EOF: {exc}" if exc else "unexpected EOF")
        if isinstance(exc, OSError) and exc.errno is not None:
            return exc
        return DisconnectedError(f"EOF: {exc}" if exc else "EOF")

    # Callbacks of the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Take the status of the response."""
        if self._state is not _State.ASKED:
            raise UnfinishedAnswerError("an answer to nothing")
        parser = self._parser
        assert parser is not None
        self.status = parser.get_status_code()
        if self.status >= _FINAL_STATUS_MIN:
            self._state = _State.ANSWERING

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._chunks.append(body)
        self._unread += len(body)
        if self._unread > _UNREAD_BYTES_MAX and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        """End the response, unless it was an interim one."""
        if self._state is _State.ASKED:
            self.headers = {}
            return
        parser = self._parser
        assert parser is not None
        self._state = _State.IDLE
        self._is_kept = parser.should_keep_alive()
