"""The server of a live page: its documents, access to them, and what it never sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession

from kubesched.answers.cluster import Cluster
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import load_scheduler
from kubesched.inputs.sources import SchedulerOptions
from kubesched.page.server import PageServer
from kubesched.page.shown import ShownCluster
from tests.cli.cluster import Json, node, pod
from tests.loops import as_test

SECRET = "hunter2-hunter2"  # noqa: S105 - what must not be sent
NODE = "worker-77"
DATA = ("/documents", "/why?pod=shop/waits", "/explain?pod=shop/waits", "/top")


def _objects() -> list[Json]:
    """A node, a pod on it and a pending pod, with a secret in every place for one."""
    waits, runs = pod("waits", "9"), pod("runs", "1", node_name=NODE)
    for item in (waits, runs):
        container = item["spec"]["containers"][0]
        container["env"] = [{"name": "PASSWORD", "value": SECRET}]
        container["command"] = ["sh", "-c", SECRET]
        item["metadata"]["annotations"] = {"example.com/note": SECRET}
    return [node(NODE, "4"), waits, runs]


class Client:
    """A client of one server."""

    def __init__(self, server: PageServer, session: ClientSession) -> None:
        self.server = server
        self._session = session
        self.origin = server.url.partition("/#")[0]

    async def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET"
    ) -> tuple[ClientResponse, bytes]:
        """Return a response and its body; with the token unless headers are given."""
        sent = {"Authorization": f"Bearer {self.server.token}"} if headers is None else headers
        async with self._session.request(method, self.origin + path, headers=sent) as response:
            return response, await response.read()


async def _serve(script: Callable[[Client], Awaitable[object]]) -> None:
    options = SchedulerOptions()
    cluster = Cluster.from_objects(_objects())
    source = ShownCluster(cluster, "of-the-shop", load_scheduler(options), options)
    server = PageServer(source)
    async with server.listening(), ClientSession() as session:
        await script(Client(server, session))


def served(story: Callable[..., Awaitable[object]]) -> Callable[..., None]:
    """Run a test with a client of a server of the cluster, which is its first argument."""
    return as_test(story, lambda script: asyncio.run(_serve(script)))


@served
async def test_documents_of_each_path(client: Client) -> None:
    """Each path returns documents of its kind."""
    kinds = []
    for path in DATA:
        response, body = await client.get(path)
        assert 200 == response.status
        found = json.loads(body)
        kinds += [one["kind"] for one in found.get("documents", [found])]
    assert ["ClusterView", "WhyReport", "PodExplanation", "TopReport"] == kinds


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="none"),
        pytest.param({"Authorization": "Bearer wrong"}, id="wrong"),
        pytest.param({"Authorization": "Bearer "}, id="empty"),
        pytest.param({"Authorization": "Basic {token}"}, id="another scheme"),
        pytest.param({"Cookie": "token={token}"}, id="cookie"),
    ],
)
@served
async def test_data_needs_the_token(client: Client, headers: dict[str, str]) -> None:
    """Without the token every path returns 401, also one that does not exist."""
    sent = {name: text.format(token=client.server.token) for name, text in headers.items()}
    for path in (*DATA, "/nothing"):
        response, body = await client.get(path, sent)
        assert 401 == response.status
        assert b"token" in body
        assert NODE.encode() not in body


@served
async def test_the_page_itself_has_no_data_and_no_token(client: Client) -> None:
    """The page needs no token, so it contains the program alone."""
    response, body = await client.get("/", {})
    assert (200, "text/html") == (response.status, response.content_type)
    assert b"of-the-shop" not in body
    assert NODE.encode() not in body
    assert client.server.token.encode() not in body


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "10.0.0.1", "[::]:1"]
)
@served
async def test_other_hosts_are_refused(client: Client, host: str) -> None:
    """A foreign Host header (DNS rebinding) gets 403, even with the token."""
    token = {"Authorization": f"Bearer {client.server.token}"}
    for path in ("/", *DATA):
        response, body = await client.get(path, {**token, "Host": host})
        assert 403 == response.status
        assert NODE.encode() not in body


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:1"])
@served
async def test_names_of_loopback_are_served(client: Client, host: str) -> None:
    """The port in the Host header may be that of a forwarding."""
    response, _ = await client.get("/", {"Host": host})
    assert 200 == response.status


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
@served
async def test_only_get_is_allowed(client: Client, method: str) -> None:
    """Other methods get 405, and no answer has CORS headers."""
    for path in ("/", *DATA):
        response, _ = await client.get(path, method=method)
        assert 405 == response.status
        assert not [name for name in response.headers if name.startswith("Access-Control-")]


@served
async def test_headers_keep_caches_and_other_sites_out(client: Client) -> None:
    """Every answer has them, errors too."""
    for path in ("/", *DATA, "/nothing", "/why"):
        response, _ = await client.get(path)
        headers = response.headers
        assert "no-store" == headers["Cache-Control"]
        assert "nosniff" == headers["X-Content-Type-Options"]
        assert "no-referrer" == headers["Referrer-Policy"]
        assert "DENY" == headers["X-Frame-Options"]
        assert "same-origin" == headers["Cross-Origin-Resource-Policy"]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert policy.endswith("frame-ancestors 'none'")
        assert "unsafe" not in policy
        assert "kubesched" == headers["Server"]


@served
async def test_nothing_secret_is_sent(client: Client) -> None:
    """No answer contains environment variables, commands or annotations."""
    for path in ("/", *DATA, "/why?pod=shop/runs", "/explain?pod=shop/runs"):
        _, body = await client.get(path)
        assert SECRET.encode() not in body


@served
async def test_unchanged_documents_are_not_sent_again(client: Client) -> None:
    """A request with the current ETag gets 304."""
    first, _ = await client.get("/documents")
    token = {"Authorization": f"Bearer {client.server.token}"}
    again, body = await client.get("/documents", {**token, "If-None-Match": first.headers["ETag"]})
    assert (304, b"") == (again.status, body)
    other, body = await client.get("/documents", {**token, "If-None-Match": '"other"'})
    assert 200 == other.status
    assert NODE.encode() in body


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/why?pod=shop/nobody", (422, "nobody")),
        ("/explain?pod=shop/nobody", (422, "nobody")),
        ("/why", (422, "pod: name one, as namespace/name")),
        ("/top?group=<b>", (422, "<b>: there is no such group; there are nodes, pools")),
        ("/nothing", (404, "not found")),
    ],
)
@served
async def test_errors_are_json(client: Client, path: str, expected: tuple[int, str]) -> None:
    """Errors are JSON with a message in one line, which browsers do not render as HTML."""
    response, body = await client.get(path)
    message = json.loads(body)["message"]
    assert "application/json" == response.content_type
    assert (expected[0], True) == (response.status, expected[1] in message)
    assert "\n" not in message


@served
async def test_port_in_use(client: Client) -> None:
    """The UserError names the port and the remedy."""
    port = int(client.origin.rpartition(":")[2])
    source: Any = client.server._source
    with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is taken; name another"):
        async with PageServer(source).listening(port):
            pass


@served
async def test_every_server_has_its_own_token(client: Client) -> None:
    """The token is long, and in the fragment of the URL, which browsers do not send."""
    source: Any = client.server._source
    assert client.server.token != PageServer(source).token
    assert len(client.server.token) >= 43
    assert f"{client.origin}/#token={client.server.token}" == client.server.url
