"""The log names what keeps the caches from being synced: once for all kinds, and rarely."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from kubesched.api.core import Node, Pod
from kubesched.api.errors import ApiError
from kubesched.api.scheme import kind_of
from kubesched.app.scheduler_informers import report_failures
from kubesched.client.informers import Informers
from kubesched.client.requests import Request
from kubesched.framework.structured_log import V0
from kubesched.simulator.virtual_loop import run
from tests.client.follower import Follower

SERVER = "https://server:6443"


REFUSED = ApiError(0, "ConnectionRefused", "connect: connection refused")
UNAUTHORIZED = ApiError(401, "Unauthorized", "Unauthorized")
FORBIDDEN = ApiError(403, "Forbidden", 'nodes is forbidden: User "u" cannot list resource "nodes"')
NOT_SERVED = ApiError(404, "NotFound", "the server answered 404 Not Found")
BROKEN = ApiError(500, "InternalError", "etcdserver: leader changed")
END = (
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":'
    b'{"k8s.io/initial-events-end":"true"}}}}'
)


class _Server:
    """A connection that answers each kind with nothing for so many seconds, then with an error."""

    def __init__(self, error: ApiError, seconds: float = 0.0) -> None:
        self.error = error
        self.seconds = seconds

    async def send(self, request: Request) -> bytes:
        """Fail."""
        raise self.error

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Answer, or fail."""
        if asyncio.get_running_loop().time() >= self.seconds:
            raise self.error
        yield self._lines()

    async def _lines(self) -> AsyncIterator[bytes]:
        yield END
        await asyncio.sleep(self.seconds)


async def _wait(seconds: float, server: _Server) -> None:
    informers = Informers(server, Follower(), Random(1))
    informers.add(kind_of(Node))
    informers.add(kind_of(Pod))
    tasks = [
        asyncio.ensure_future(informers.run()),
        asyncio.ensure_future(report_failures(informers, SERVER)),
    ]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(autouse=True)
def _shows_verbosity_0(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(V0)


def test_a_start_without_delay_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Two seconds are no reason to complain."""
    run(_wait(1.9, _Server(UNAUTHORIZED)))
    assert [] == caplog.messages


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(
            REFUSED,
            f"Waiting for the API server at {SERVER}: 2 of 2 kinds are not synced, "
            "such as nodes: connect: connection refused",
            id="no-server",
        ),
        pytest.param(
            UNAUTHORIZED,
            f"The API server at {SERVER} refuses the credentials: Unauthorized; "
            "renew the token or client certificate of the kubeconfig or service account",
            id="unauthorized",
        ),
        pytest.param(
            FORBIDDEN,
            f"The API server at {SERVER} forbids reading 2 of 2 kinds, such as nodes: {FORBIDDEN}; "
            "bind the user to the cluster roles system:kube-scheduler and system:volume-scheduler, "
            "and to one for the plugins' custom resources",
            id="forbidden",
        ),
        pytest.param(
            NOT_SERVED,
            f"The API server at {SERVER} does not serve 2 of 2 kinds, such as nodes: "
            "the server answered 404 Not Found; check its address in the kubeconfig",
            id="not-served",
        ),
    ],
)
def test_lasting_failures_are_logged_less_often(
    error: ApiError, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for all kinds after 2, 12, 32, 72, 152 and 312 s, then every five minutes."""
    run(_wait(32.1, _Server(error)))
    assert [expected] * 3 == caplog.messages
    caplog.clear()
    run(_wait(1000, _Server(error)))
    assert [expected] * 8 == caplog.messages


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(UNAUTHORIZED, f"The API server at {SERVER} refuses", id="unauthorized"),
        pytest.param(
            BROKEN,
            f"Reading from the API server at {SERVER} fails for 2 of 2 kinds, such as nodes: "
            "etcdserver: leader changed",
            id="broken",
        ),
    ],
)
def test_a_failure_after_the_start_is_logged_too(
    error: ApiError, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A token may be refused that was good at first."""
    run(_wait(64, _Server(error, seconds=60)))
    assert [expected] == [message[: len(expected)] for message in caplog.messages]


class _Recovering(_Server):
    """A connection that fails for so many seconds, and answers then."""

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Fail, or answer."""
        if asyncio.get_running_loop().time() < self.seconds:
            raise self.error
        yield self._lines()


def test_the_end_of_a_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Also if the next report of the failure is far."""
    run(_wait(200, _Recovering(REFUSED, seconds=80)))
    waiting, *_, last = caplog.messages
    assert waiting.startswith("Waiting for the API server")
    assert f"The API server at {SERVER} serves all kinds" == last
    assert 1 == caplog.messages.count(last)
