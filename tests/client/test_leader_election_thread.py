from __future__ import annotations

import asyncio
import random
import threading
import time
from datetime import UTC, datetime

from aiohttp import web

from kubesched.api.errors import ApiError
from kubesched.client.connect import connect
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.leader_election import ElectionTiming, LeaderElector
from kubesched.client.requests import Request
from kubesched.client.resource_locks import new_lock

from .lock_server import LockServer
from .scripted_server import ReceivedRequest, serving

_TIMING = ElectionTiming(
    lease_duration_seconds=2, renew_deadline_seconds=1, retry_period_seconds=0.005
)


class Background:
    """A server and an elector in a thread of their own, with a real connection between them."""

    def __init__(self) -> None:
        self.server = LockServer()
        self.elector: LeaderElector | None = None
        self.leads = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._loop: asyncio.AbstractEventLoop | None = None

    async def _answer(
        self, request: web.BaseRequest, received: list[ReceivedRequest]
    ) -> web.StreamResponse:
        last = received[-1]
        try:
            body = self.server.handle(Request(method=last.method, path=last.path, body=last.body))
        except ApiError as error:
            status = {"kind": "Status", "reason": error.reason, "code": error.code}
            return web.json_response(status, status=error.code)
        return web.Response(body=body)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with serving(self._answer) as server:
            timeout_seconds = _TIMING.client_timeout_seconds
            settings = ConnectionSettings(server=server.url)
            rest = connect(settings, qps=-1, timeout_seconds=timeout_seconds)
            self.elector = LeaderElector(
                new_lock("leases", rest, "kube-system", "kube-scheduler", "a"),
                _TIMING,
                clock=time.monotonic,
                wall_clock=lambda: datetime.now(UTC),
                random=random.Random(0).random,
            )
            await self.elector.run(self.leads.set)
            await rest.aclose()

    def stop(self) -> None:
        """Ask the elector to end, and wait for it."""
        assert self._loop is not None
        assert self.elector is not None
        self._loop.call_soon_threadsafe(self.elector.stop)
        self.thread.join()


def test_renewal_goes_on_while_the_main_thread_is_busy() -> None:
    """A long cycle in pure Python does not prevent renewals."""
    background = Background()
    background.thread.start()
    assert background.leads.wait(5)
    renewed = len(background.server.history)
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        sum(range(1000))
    assert len(background.server.history) > renewed
    assert background.elector is not None
    assert background.elector.fence.holds(time.monotonic())
    background.stop()
    assert not background.elector.fence.holds(time.monotonic())
    assert "" == background.server.history[-1][2]["spec"]["holderIdentity"]
