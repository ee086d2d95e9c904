"""A scheduler whose server is missing, refuses it, or is another kind of server."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from kubesched.apiserver.request import ApiRequest, Response, User
from kubesched.apiserver.server import ApiServer

from .harness import until
from .replica import SHORT, Lease, Replica, write_configuration, write_kubeconfig

pytestmark = pytest.mark.slow

_SECONDS_MAX = 120.0
_STRANGER = User("stranger", ("system:authenticated",))


async def _observed(
    directory: Path, server: str, is_enough: Callable[[str], bool], lease: Lease | None = SHORT
) -> Replica:
    """Run until the log has enough lines, stop the process, and return its result."""
    kubeconfig = write_kubeconfig(directory / "kubeconfig", server, "token")
    configuration = write_configuration(directory / "config.yaml", kubeconfig, lease)
    replica = Replica("replica", None, directory / "log")
    await replica.start(configuration)
    try:
        await until(
            lambda: is_enough(replica.log()) or not replica.is_running, _SECONDS_MAX, "a line"
        )
        assert replica.is_running, f"it tries again, instead of ending: {replica.log()}"
        await replica.end(signal.SIGTERM)
    finally:
        await replica.end()
    assert replica.exit_code == 0, replica.log()
    assert "Traceback" not in replica.log()
    return replica


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _warnings(log: str) -> list[str]:
    return [line for line in log.splitlines() if "API server at" in line]


def _has_warned(log: str) -> bool:
    return bool(_warnings(log))


def test_a_missing_server_is_logged_and_retried(tmp_path: Path) -> None:
    """One line has the address and the reason; SIGTERM ends the process."""
    server = f"http://127.0.0.1:{_free_port()}"

    lines = asyncio.run(_observed(tmp_path, server, _has_warned)).log().splitlines()
    assert ["Waiting", "Requested"] == [line.partition("] ")[2].split()[0] for line in lines]
    address = server.removeprefix("http://")
    assert f"dial tcp {address}: connect: connection refused" in lines[0]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        pytest.param({}, "refuses the credentials: Unauthorized; renew", id="401"),
        pytest.param({"token": _STRANGER}, 'User "stranger" cannot list resource', id="403"),
    ],
)
def test_refused_credentials_are_logged_and_retried(
    tokens: dict[str, User], expected: str, tmp_path: Path
) -> None:
    """One line for all kinds, with the server's message and the remedy."""

    async def observe() -> Replica:
        server = ApiServer(tokens)
        await server.start()
        try:
            return await _observed(tmp_path, server.url, _has_warned)
        finally:
            await server.stop()

    (line,) = _warnings(asyncio.run(observe()).log())
    assert expected in line


class _OldServer(ApiServer):
    """A server without resource.k8s.io/v1."""

    async def handle(self, request: ApiRequest) -> Response:
        """Return 404 for the missing group."""
        if request.path.startswith("/apis/resource.k8s.io/v1"):
            return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
        return await super().handle(request)


def test_a_kind_that_the_server_lacks_is_retried(tmp_path: Path) -> None:
    """Only this kind is logged; nothing is scheduled without it."""

    async def observe() -> Replica:
        server = _OldServer({"token": User("system:kube-scheduler", ("system:authenticated",))})
        await server.start()
        try:
            return await _observed(tmp_path, server.url, _has_warned)
        finally:
            await server.stop()

    log = asyncio.run(observe()).log()
    (line,) = _warnings(log)
    answer = "the server answered 404 Not Found: 404 page not found"
    assert f"such as deviceclasses.resource.k8s.io: {answer}" in line
    assert "3 of 18 kinds" in line
    assert "Caches are synced" not in log


def _page(
    body: str, kind: str, status: int
) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    async def answer(_request: web.BaseRequest) -> web.Response:
        return web.Response(text=body, content_type=kind, status=status)

    return answer


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        pytest.param("<h1>It works!</h1>", "text/html", 200, id="a page for everything"),
        pytest.param("<h1>Not Found</h1>", "text/html", 404, id="no page"),
        pytest.param(json.dumps({"hello": "world"}), "application/json", 200, id="other JSON"),
        pytest.param("[]", "application/json", 200, id="a list"),
    ],
)
def test_answers_of_another_server_are_logged_and_retried(
    body: str, kind: str, status: int, tmp_path: Path
) -> None:
    """They do not end the process."""

    async def observe() -> Replica:
        runner = web.ServerRunner(web.Server(_page(body, kind, status)))
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0]
            return await _observed(tmp_path, f"http://{host}:{port}", _has_warned)
        finally:
            await runner.cleanup()

    assert "Caches are synced" not in asyncio.run(observe()).log()


def test_sigterm_ends_the_process_during_the_first_request(tmp_path: Path) -> None:
    """The server does not answer."""

    async def observe() -> Replica:
        async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            holding.append(writer)
            has_come.set()

        holding: list[asyncio.StreamWriter] = []
        has_come = asyncio.Event()
        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        try:
            return await _observed(tmp_path, f"http://{host}:{port}", lambda _: has_come.is_set())
        finally:
            for writer in holding:
                writer.transport.abort()
            server.close()

    asyncio.run(observe())
