"""ConnectionPool keeps connections to one server; each carries one request at a time.

Upstream: net/http, transport.go: Transport.getConn, tryPutIdleConn (Go 1.25)
Differs:  at the limit, a request waits for a connection to become free instead of dialling.
Invariants: a connection carries one request at a time; there are at most `CONNECTIONS_MAX`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from kubesched.client.http_connection import HttpConnection

CONNECTIONS_MAX: Final = 64
_IDLE_SECONDS_MAX: Final = 60.0
_CLOSING_SECONDS_MAX: Final = 1.0


class ConnectionPool:
    """Connections, dialled when no idle one exists."""

    def __init__(self, dial: Callable[[], Awaitable[HttpConnection]]) -> None:
        """Set up. To be called while a loop runs.

        Args:
            dial: Opens a connection; raises OSError on failure.
        """
        self._dial = dial
        self._loop = asyncio.get_running_loop()
        # The last used is reused first, so that the others time out.
        self._idle: list[tuple[HttpConnection, float]] = []
        self._usable: set[HttpConnection] = set()
        self._retired: set[HttpConnection] = set()
        self._dialing = 0
        self._waiters: deque[asyncio.Future[HttpConnection | None]] = deque()
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take_idle(self) -> HttpConnection | None:
        """Return an idle connection if there is one."""
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.is_reusable:
                return connection
            self._usable.discard(connection)
        return None

    async def take(self) -> HttpConnection:
        """Return an idle connection, a new one, or the next that becomes free; in that order.

        Raises:
            OSError: Dialling failed, or the pool is closed.
        """
        while True:
            if self._is_closed:
                raise ConnectionAbortedError("the connection has been closed")
            connection = self.take_idle()
            if connection is None and len(self._usable) + self._dialing < CONNECTIONS_MAX:
                connection = await self._dialled()
            if connection is None:
                connection = await self._given_back()
            if connection is not None:
                return connection

    def give_back(self, connection: HttpConnection) -> None:
        """Return a connection to the pool; it is closed if its response was not read to the end."""
        if not connection.is_reusable or connection not in self._usable:
            connection.close()
            self._usable.discard(connection)
            self._retired.discard(connection)
            self._wake(None)
        elif self._waiters:
            self._wake(connection)
        else:
            self._keep(connection)

    def retire(self) -> None:
        """Do not reuse any current connection; requests under way are not interrupted."""
        for connection, _ in self._idle:
            connection.close()
            self._usable.discard(connection)
        self._idle.clear()
        self._retired |= self._usable
        self._usable.clear()

    async def aclose(self) -> None:
        """Close all connections; requests under way fail."""
        self._is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        while self._waiters:
            self._wake(None)
        closing = self._usable | self._retired
        for connection in closing:
            connection.close()
        if closing:
            ends = [connection.lost for connection in closing]
            await asyncio.wait(ends, timeout=_CLOSING_SECONDS_MAX)
        for connection in closing:
            connection.abort()

    async def _dialled(self) -> HttpConnection:
        self._dialing += 1
        try:
            connection = await self._dial()
        except BaseException:
            self._wake(None)
            raise
        finally:
            self._dialing -= 1
        if self._is_closed:
            connection.abort()
            raise ConnectionAbortedError("the connection has been closed")
        self._usable.add(connection)
        return connection

    async def _given_back(self) -> HttpConnection | None:
        """Wait for a connection; None if another one may be dialled instead."""
        waiter: asyncio.Future[HttpConnection | None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except BaseException:
            # A cancelled waiter passes its connection on to the next one.
            if waiter.done() and not waiter.cancelled():
                connection = waiter.result()
                if connection is None:
                    self._wake(None)
                else:
                    self.give_back(connection)
            raise

    def _wake(self, connection: HttpConnection | None) -> None:
        """Pass a connection, or the right to dial one, to the longest waiter."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is not None:
            self._keep(connection)

    def _keep(self, connection: HttpConnection) -> None:
        self._idle.append((connection, self._loop.time()))
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(_IDLE_SECONDS_MAX, self._sweep)

    def _sweep(self) -> None:
        """Close connections that have been idle for too long."""
        used_since = self._loop.time() - _IDLE_SECONDS_MAX
        fresh = [(connection, used) for connection, used in self._idle if used > used_since]
        for connection, used in self._idle:
            if used <= used_since:
                connection.close()
                self._usable.discard(connection)
        self._idle = fresh
        self._sweeping = None
        if fresh:
            wait = fresh[0][1] - used_since
            self._sweeping = self._loop.call_later(wait, self._sweep)
