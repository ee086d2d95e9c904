"""A client with a permit checks it before each write."""

import asyncio

import pytest
from aiohttp import web

from kubesched.api.errors import ApiError
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.requests import Request
from kubesched.client.rest import HttpRestClient
from tests.loops import in_real_time

from .scripted_server import ReceivedRequest, serving

WRITE = Request(method="POST", path="/api/v1/x", body=b"{}")
READ = Request(path="/api/v1/x")


async def _answer(_request: web.BaseRequest, _received: list[ReceivedRequest]) -> web.Response:
    return web.Response(body=b"{}")


class _Leadership:
    """Permits until it is lost."""

    def __init__(self) -> None:
        self.is_lost = False

    def check(self) -> None:
        if self.is_lost:
            raise ApiError(0, "NotLeader", "another replica leads")


@in_real_time
async def test_writes_need_permission() -> None:
    """Without it nothing is written, also on open connections; reads work."""
    leadership = _Leadership()
    async with serving(_answer) as server:
        rest = HttpRestClient(ConnectionSettings(server=server.url), permit=leadership.check)
        await rest.send(WRITE)
        leadership.is_lost = True
        with pytest.raises(ApiError, match="another replica leads"):
            await rest.send(WRITE)
        await rest.send(READ)
        leadership.is_lost = False
        await rest.send(WRITE)
        await rest.aclose()
        assert ["POST", "GET", "POST"] == [received.method for received in server.received]


@in_real_time
async def test_permission_is_asked_after_waiting_for_a_connection() -> None:
    """A write that waited for one of the connections is held back if it is too late by then."""
    leadership = _Leadership()
    release = asyncio.Event()
    all_busy = asyncio.Event()

    async def slow(_request: web.BaseRequest, received: list[ReceivedRequest]) -> web.Response:
        if len(received) == 64:
            all_busy.set()
        await release.wait()
        return web.Response(body=b"{}")

    async with serving(slow) as server:
        rest = HttpRestClient(ConnectionSettings(server=server.url), permit=leadership.check)
        writes = [asyncio.ensure_future(rest.send(WRITE)) for _ in range(70)]
        await all_busy.wait()
        leadership.is_lost = True
        release.set()
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        await rest.aclose()
        refused = sum(isinstance(outcome, ApiError) for outcome in outcomes)
        assert (64, 6) == (len(server.received), refused)
