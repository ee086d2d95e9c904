"""A scheduler whose server is missing, refuses it, or is another kind of server."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Final

import pytest
from aiohttp import web

from kubesched.apiserver.request import ApiRequest, Response, User
from kubesched.apiserver.server import ApiServer

from .harness import until
from .replica import SHORT, Replica, write_configuration, write_kubeconfig

pytestmark = pytest.mark.slow

_SECONDS_MAX = 120.0
_NOBODY = "127.0.0.1:9"  # nobody listens on the port of a protocol out of use
_STRANGER = User("stranger", ("system:authenticated",))


async def _observed(directory: Path, server: str, is_enough: Callable[[str], bool]) -> str:
    """Run until the log has enough lines, stop the process, and return its log."""
    kubeconfig = write_kubeconfig(directory / "kubeconfig", server, "token")
    configuration = write_configuration(directory / "config.yaml", kubeconfig, SHORT)
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
    return replica.log()


def _has_warned(log: str) -> bool:
    return bool(_warnings(log))


def _warnings(log: str) -> list[str]:
    return [line for line in log.splitlines() if "API server at" in line]


# Servers, each of which yields its URL.


@asynccontextmanager
async def _served(server: ApiServer) -> AsyncIterator[str]:
    await server.start()
    try:
        yield server.url
    finally:
        await server.stop()


class _OldServer(ApiServer):
    """A server without resource.k8s.io/v1."""

    async def handle(self, request: ApiRequest) -> Response:
        """Return 404 for the missing group."""
        if request.path.startswith("/apis/resource.k8s.io/v1"):
            return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
        return await super().handle(request)


@asynccontextmanager
async def _page(body: str, kind: str, status: int) -> AsyncIterator[str]:
    """Answer every request with the same."""

    async def answer(_request: web.BaseRequest) -> web.Response:
        return web.Response(text=body, content_type=kind, status=status)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


_PAGES: Final = {
    "a page for everything": ("<h1>It works!</h1>", "text/html", 200),
    "no page": ("<h1>Not Found</h1>", "text/html", 404),
    "other JSON": (json.dumps({"hello": "world"}), "application/json", 200),
    "a list": ("[]", "application/json", 200),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the logs of schedulers, one per server, that waited side by side until they warned."""
    scheduler = User("system:kube-scheduler", ("system:authenticated",))
    servers: dict[str, AbstractAsyncContextManager[str]] = {
        "missing": nullcontext(f"http://{_NOBODY}"),
        "401": _served(ApiServer({})),
        "403": _served(ApiServer({"token": _STRANGER})),
        "old": _served(_OldServer({"token": scheduler})),
        **{name: _page(*answer) for name, answer in _PAGES.items()},
    }

    async def log(server: AbstractAsyncContextManager[str]) -> str:
        async with server as url:
            return await _observed(tmp_path_factory.mktemp("replica"), url, _has_warned)

    async def observe() -> dict[str, str]:
        found = await asyncio.gather(*map(log, servers.values()))
        return dict(zip(servers, found, strict=True))

    return asyncio.run(observe())


def test_a_missing_server_is_logged_and_retried(logs: dict[str, str]) -> None:
    """One line has the address and the reason; SIGTERM ends the process."""
    start, waiting, end = logs["missing"].splitlines()
    first_words = [line.partition("] ")[2].split()[0] for line in (start, waiting, end)]
    assert ['"Starting', "Waiting", "Requested"] == first_words
    assert f"dial tcp {_NOBODY}: connect: connection refused" in waiting


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("401", "refuses the credentials: Unauthorized; renew"),
        ("403", 'User "stranger" cannot list resource'),
    ],
)
def test_refused_credentials_are_logged_and_retried(
    code: str, expected: str, logs: dict[str, str]
) -> None:
    """One line for all kinds, with the server's message and the remedy."""
    (line,) = _warnings(logs[code])
    assert expected in line


def test_a_kind_that_the_server_lacks_is_retried(logs: dict[str, str]) -> None:
    """Only this kind is logged; nothing is scheduled without it."""
    (line,) = _warnings(logs["old"])
    answer = "the server answered 404 Not Found: 404 page not found"
    assert f"such as deviceclasses.resource.k8s.io: {answer}" in line
    assert "3 of 18 kinds" in line
    assert "Caches are synced" not in logs["old"]


@pytest.mark.parametrize("name", _PAGES)
def test_answers_of_another_server_are_logged_and_retried(name: str, logs: dict[str, str]) -> None:
    """They do not end the process."""
    assert _has_warned(logs[name])
    assert "Caches are synced" not in logs[name]


def test_sigterm_ends_the_process_during_the_first_request(tmp_path: Path) -> None:
    """The server does not answer."""

    async def observe() -> None:
        async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            holding.append(writer)
            has_come.set()

        holding: list[asyncio.StreamWriter] = []
        has_come = asyncio.Event()
        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        try:
            await _observed(tmp_path, f"http://{host}:{port}", lambda _: has_come.is_set())
        finally:
            for writer in holding:
                writer.transport.abort()
            server.close()

    asyncio.run(observe())
