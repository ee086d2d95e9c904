from __future__ import annotations

import asyncio
from random import Random

import pytest

from kubesched.client.http_connection import CONNECTIONS_MAX, ConnectionPool, HttpConnection
from tests.loops import on_virtual_time

from .wire import Wire


class _Server:
    """Makes connections.

    Attributes:
        made: All of them, in order.
        refuses: Whether new ones fail.
        seconds: How long dialling takes.
    """

    def __init__(self) -> None:
        self.made: list[HttpConnection] = []
        self.wires: dict[HttpConnection, Wire] = {}
        self.refuses = False
        self.seconds = 0.0

    async def dial(self) -> HttpConnection:
        """Make one."""
        await asyncio.sleep(self.seconds)
        if self.refuses:
            raise ConnectionRefusedError
        connection = HttpConnection()
        self.wires[connection] = Wire(connection)
        self.made.append(connection)
        return connection

    @property
    def open(self) -> int:
        """How many connections are open."""
        return sum(not wire.is_closing() for wire in self.wires.values())


def _opened() -> tuple[_Server, ConnectionPool]:
    server = _Server()
    return server, ConnectionPool(server.dial)


@on_virtual_time
async def test_the_last_used_is_used_first() -> None:
    """One exchange after the other needs one connection; two at a time need two."""
    server, pool = _opened()
    first = await pool.take()
    pool.give_back(first)
    assert first is await pool.take()
    second = await pool.take()
    pool.give_back(first)
    pool.give_back(second)
    assert second is await pool.take()
    assert first is await pool.take()
    assert [first, second] == server.made


@on_virtual_time
async def test_connections_that_the_server_closed() -> None:
    """An idle connection may be closed at any time; it is not lent then."""
    server, pool = _opened()
    connections = [await pool.take() for _ in range(2)]
    for connection in connections:
        pool.give_back(connection)
    server.wires[connections[1]].hang_up()
    assert connections[0] is await pool.take()
    assert connections[0] is not await pool.take()


@on_virtual_time
async def test_idle_connections_are_closed_after_a_minute() -> None:
    """Those that are not needed any more go; the one that is stays."""
    server, pool = _opened()
    for connection in [await pool.take() for _ in range(3)]:
        pool.give_back(connection)
    seen = []
    for _ in range(8):
        await asyncio.sleep(20)
        pool.give_back(await pool.take())
        seen.append(server.open)
    await asyncio.sleep(100)
    last = server.made[-1]
    assert last is not await pool.take()
    assert [3, 3, 1, 1, 1, 1, 1, 1, 1] == [*seen, server.open]


@on_virtual_time
async def test_late_responses_are_not_awaited_for_ever() -> None:
    """A silent server breaks a request that has a deadline, not a stream."""
    _, pool = _opened()
    stream, connection = [await pool.take() for _ in range(2)]
    asking = asyncio.ensure_future(stream.ask(b"watch"))
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        await connection.ask(b"bind", 90.0)
    pool.give_back(connection)
    assert 90 <= asyncio.get_running_loop().time() - began <= 100
    assert connection is not await pool.take()
    assert not asking.done()
    await pool.aclose()
    with pytest.raises(ConnectionResetError):
        await asking


@on_virtual_time
async def test_waiters_are_served_in_order() -> None:
    """At the limit, waiters get connections in order; a broken one makes room."""
    server, pool = _opened()
    lent = [await pool.take() for _ in range(CONNECTIONS_MAX)]
    got: dict[str, HttpConnection] = {}

    async def wait(name: str) -> None:
        got[name] = await pool.take()

    waiting = [asyncio.ensure_future(wait(name)) for name in "abc"]
    await asyncio.sleep(0)
    pool.give_back(lent[0])
    server.wires[lent[1]].hang_up()
    pool.give_back(lent[1])
    pool.give_back(lent[2])
    await asyncio.gather(*waiting)
    assert ["a", "b", "c"] == list(got)
    assert {lent[0], lent[2], server.made[-1]} == set(got.values())
    assert CONNECTIONS_MAX == server.open


@on_virtual_time
async def test_failed_dials_make_room() -> None:
    """A refused connection does not count, so the next waiter dials."""
    server, pool = _opened()
    server.refuses, server.seconds = True, 1.0
    outcomes = await asyncio.gather(
        *(pool.take() for _ in range(CONNECTIONS_MAX + 3)), return_exceptions=True
    )
    assert [ConnectionRefusedError] * (CONNECTIONS_MAX + 3) == [type(one) for one in outcomes]


@on_virtual_time
async def test_retired_connections() -> None:
    """`retire` closes idle connections at once, lent ones when they come back."""
    server, pool = _opened()
    lent, idle = [await pool.take() for _ in range(2)]
    pool.give_back(idle)
    pool.retire()
    assert 1 == server.open
    pool.give_back(lent)
    assert 0 == server.open
    assert await pool.take() not in (lent, idle)


@on_virtual_time
async def test_closing() -> None:
    """Lent, idle and new connections are closed, and waiters get an error."""
    server, pool = _opened()
    lent = [await pool.take() for _ in range(CONNECTIONS_MAX // 2)]
    pool.give_back(lent.pop())
    pool.retire()
    lent += [await pool.take() for _ in range(CONNECTIONS_MAX // 2)]
    server.seconds = 1.0
    waiting = [asyncio.ensure_future(pool.take()) for _ in range(3)]
    await asyncio.sleep(0)
    await pool.aclose()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    with pytest.raises(ConnectionAbortedError):
        await pool.take()
    assert 0 == server.open
    assert [ConnectionAbortedError] * 3 == [type(outcome) for outcome in outcomes]


@pytest.mark.parametrize("seed", range(20))
@on_virtual_time
async def test_no_connection_is_lent_twice_or_lost(seed: int) -> None:
    """After any events, each has one user, the limit holds, and all come back."""
    random = Random(seed)
    server, pool = _opened()
    lent: set[HttpConnection] = set()

    async def use() -> None:
        connection = await pool.take()
        assert connection not in lent
        lent.add(connection)
        assert len(lent) <= CONNECTIONS_MAX
        try:
            await asyncio.sleep(random.random())
            if random.random() < 0.2:
                server.wires[connection].hang_up()
        finally:
            lent.remove(connection)
            pool.give_back(connection)

    users = []
    for _ in range(600):
        users.append(asyncio.ensure_future(use()))
        server.seconds = 0.1 * random.random()
        server.refuses = random.random() < 0.2
        if random.random() < 0.3:
            random.choice(users).cancel()
        await asyncio.sleep(0.01 * random.random())
    outcomes = await asyncio.gather(*users, return_exceptions=True)
    failures = {type(one) for one in outcomes if isinstance(one, BaseException)}
    assert failures <= {asyncio.CancelledError, ConnectionRefusedError}
    server.refuses = False
    assert not lent
    assert server.open <= CONNECTIONS_MAX
    async with asyncio.timeout(10):
        again = [await pool.take() for _ in range(CONNECTIONS_MAX)]
    assert CONNECTIONS_MAX == len(set(again)) == server.open
