"""HttpConnection sends requests over one connection, one after the other.

llhttp does the framing. `dial.py` opens connections, and ConnectionPool assigns them.

Upstream: net/http, transport.go: persistConn, Transport.getConn, tryPutIdleConn (Go 1.25)
Invariants: a connection is reused only after its response was read to the end; it carries one
            request at a time; there are at most `CONNECTIONS_MAX`.
Differs:  HTTP/1.1 only, without compression; interim responses are skipped; a response in another
          protocol is an error. At the limit, a request waits for a connection to become free
          instead of dialling.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, cast

import httptools

# The length of a TLS record. Most responses are shorter.
_BUFFER_BYTES: Final = 16 << 10
# Beyond so much unread data, reading pauses.
_UNREAD_BYTES_MAX: Final = 2**20
_FINAL_STATUS_MIN: Final = 200


class _State(Enum):
    """The state of the current request."""

    IDLE = "no request, or its response is complete"
    SENT = "waiting for the head of the response"
    ANSWERING = "reading the body of the response"


class HttpConnection(asyncio.BufferedProtocol):
    """One connection: ask, read the response to its end, ask again.

    Attributes:
        status: HTTP status of the response.
        headers: Of the response, by lower-case name; the last value of a repeated header.
        transport: Set once the connection is made.
        lost: Done once the connection is closed.
        is_retired: Whether no further request may be sent.
        deadline: When the response must be complete, in seconds of the loop; infinite for streams.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        """Set up. To be called while a loop runs."""
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        # With a buffer of its own, a read does not allocate one of 256 KiB.
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._chunks: list[bytes] = []
        self._unread = 0
        self._is_paused = False
        self._state = _State.IDLE
        self._is_kept = True
        self.is_retired = False
        self.deadline = math.inf
        self.status = 0
        self.headers: dict[bytes, bytes] = {}

    @property
    def is_reusable(self) -> bool:
        """Whether another request may be sent."""
        is_idle = self._state is _State.IDLE and self._is_kept and self._failure is None
        return is_idle and not self.is_retired

    async def ask(self, message: bytes, seconds_max: float = math.inf) -> int:
        """Send a request, head and body; return the status once the response's head has arrived.

        `seconds_max` is the time for the whole response; ConnectionPool breaks late ones. Raises
        ConnectionResetError if the connection was closed before the response began, OSError if it
        broke.
        """
        if self._chunks:
            # The previous caller left without reading the response.
            self._taken()
        self.headers = {}
        if self._failure is not None or self.transport.is_closing():
            # It was lost after it was opened; uvloop refuses to write to it.
            raise self._failure or ConnectionResetError("EOF")
        self._state = _State.SENT
        self.deadline = self._loop.time() + seconds_max
        self.transport.write(message)
        while self._state is _State.SENT:
            await self._more()
        return self.status

    async def read(self) -> bytes:
        """Return the bytes of the body that have arrived and were not read yet, b"" at its end.

        Raises OSError if the connection broke before the end.
        """
        while not self._chunks:
            if self._state is _State.IDLE:
                return b""
            await self._more()
        return self._taken()

    async def read_all(self) -> bytes:
        """Return the body; raises OSError if the connection broke before its end."""
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

    def expire(self) -> None:
        """Break a request whose deadline has passed."""
        is_late = self._loop.time() > self.deadline
        if is_late and self._state is not _State.IDLE and self._failure is None:
            self._failure = TimeoutError("the server did not respond in time")
            self.abort()
            self._wake()

    def _more(self) -> asyncio.Future[None]:
        """Return a future that is done when data has arrived, or raise why none will."""
        if self._failure is not None:
            raise self._failure
        self._waiter = waiter = self._loop.create_future()
        return waiter

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

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put data."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Feed the parser."""
        if self._parser is None:
            return
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._failure is None:
                self._failure = OSError(f"malformed HTTP response: {error}")
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
        if not self.lost.done():
            self.lost.set_result(None)
        self._wake()

    def _has_length(self) -> bool:
        return b"content-length" in self.headers or b"transfer-encoding" in self.headers

    def _reason(self, exc: Exception | None) -> Exception:
        if self._state is _State.ANSWERING:
            return OSError(f"unexpected EOF: {exc}" if exc else "unexpected EOF")
        if isinstance(exc, OSError) and exc.errno is not None:
            return exc
        return ConnectionResetError(f"EOF: {exc}" if exc else "EOF")

    # Callbacks of the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Take the status of the response."""
        if self._state is not _State.SENT:
            raise OSError("an answer to nothing")
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
        if self._state is _State.SENT:
            self.headers = {}
            return
        parser = self._parser
        assert parser is not None
        self._state = _State.IDLE
        self._is_kept = parser.should_keep_alive()


# Connections to one server.

CONNECTIONS_MAX: Final = 64
_IDLE_SECONDS_MAX: Final = 60.0
_CLOSING_SECONDS_MAX: Final = 1.0
_EXPIRING_SECONDS: Final = 5.0


class ConnectionPool:
    """Connections, dialled when no idle one exists."""

    def __init__(self, dial: Callable[[], Awaitable[HttpConnection]]) -> None:
        """Set up; `dial` opens a connection, or raises OSError."""
        self._dial = dial
        # One is held for each connection that is lent.
        self._turns = asyncio.Semaphore(CONNECTIONS_MAX)
        # The last used is reused first, so that the others grow old.
        self._idle: deque[tuple[HttpConnection, float]] = deque()
        self._open: set[HttpConnection] = set()
        self._is_closed = False
        self._expiring: asyncio.TimerHandle | None = None

    async def take(self) -> HttpConnection:
        """Return an idle connection or a new one; at the limit, wait until one comes back.

        Raises OSError if dialling failed, or the pool is closed.
        """
        await self._turns.acquire()
        try:
            self._check_open()
            self._close_old()
            while self._idle:
                connection, _ = self._idle.pop()
                if connection.is_reusable:
                    return connection
                self._open.discard(connection)
            return await self._dialled()
        except BaseException:
            self._turns.release()
            raise

    async def _dialled(self) -> HttpConnection:
        connection = await self._dial()
        self._open.add(connection)
        try:
            self._check_open()
        except OSError:
            connection.abort()
            raise
        if self._expiring is None:
            self._expire()
        return connection

    def _expire(self) -> None:
        """Break late requests, now and every few seconds; a timer for each would cost more."""
        for connection in self._open:
            connection.expire()
        self._expiring = asyncio.get_running_loop().call_later(_EXPIRING_SECONDS, self._expire)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionAbortedError("the connection has been closed")

    def give_back(self, connection: HttpConnection) -> None:
        """Return a connection to the pool; it is closed if its response was not read to the end."""
        if connection.is_reusable:
            self._idle.append((connection, _now()))
        else:
            self._close(connection)
        self._turns.release()

    def retire(self) -> None:
        """Do not reuse any current connection; requests under way are not interrupted."""
        while self._idle:
            self._close(self._idle.pop()[0])
        for connection in self._open:
            connection.is_retired = True

    async def aclose(self) -> None:
        """Close all connections; requests under way fail."""
        self._is_closed = True
        if self._expiring is not None:
            self._expiring.cancel()
        self._idle.clear()
        closing = tuple(self._open)
        for connection in closing:
            connection.close()
        # Wakes who waits for a turn, one after the other.
        self._turns.release()
        if closing:
            ends = [connection.lost for connection in closing]
            await asyncio.wait(ends, timeout=_CLOSING_SECONDS_MAX)
        for connection in closing:
            connection.abort()

    def _close_old(self) -> None:
        """Close connections before the server does, maybe in the moment of a request."""
        used_since = _now() - _IDLE_SECONDS_MAX
        while self._idle and self._idle[0][1] <= used_since:
            self._close(self._idle.popleft()[0])

    def _close(self, connection: HttpConnection) -> None:
        connection.close()
        self._open.discard(connection)


def _now() -> float:
    return asyncio.get_running_loop().time()
