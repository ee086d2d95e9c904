"""ConnectionPool keeps connections to one server, and lends each to one exchange at a time.

Upstream: net/http, transport.go: Transport.getConn, tryPutIdleConn (Go 1.25)
Differs:  who waits for a connection does not dial one of its own beyond the bound.
Invariants: a connection is lent to one exchange at a time; there are never more than the bound.
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
    """Connections that are made when there is no idle one."""

    def __init__(self, dial: Callable[[], Awaitable[HttpConnection]]) -> None:
        """Set up. To be called while a loop runs.

        Args:
            dial: Makes a connection; raises an OSError if it cannot.
        """
        self._dial = dial
        self._loop = asyncio.get_running_loop()
        # The one used last is the first to be used again, so that the others grow old.
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
        """Return an idle connection, a new one, or the first that is given back; in that order.

        Raises:
            OSError: None could be made, or the pool is closed.
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
        """Have others use a connection; one whose answer was not read to its end is closed."""
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
        """Use no connection again that there is now; those that are lent go on."""
        for connection, _ in self._idle:
            connection.close()
            self._usable.discard(connection)
        self._idle.clear()
        self._retired |= self._usable
        self._usable.clear()

    async def aclose(self) -> None:
        """Close all connections; what is under way fails."""
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
        """Wait for a connection; None if there is room for another one instead."""
        waiter: asyncio.Future[HttpConnection | None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except BaseException:
            # What was handed over to somebody who has left belongs to the next.
            if waiter.done() and not waiter.cancelled():
                connection = waiter.result()
                if connection is None:
                    self._wake(None)
                else:
                    self.give_back(connection)
            raise

    def _wake(self, connection: HttpConnection | None) -> None:
        """Hand a connection, or the room for one, to who has waited longest."""
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
        """Close what has not been used for a while."""
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
