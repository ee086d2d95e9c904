"""Connections to servers and proxies, on asyncio's event loop and on that of live processes."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from aiohappyeyeballs import AddrInfoType, start_connection
from aiohttp import web

from kubesched.api.errors import ApiError
from kubesched.client.connect import new_event_loop
from kubesched.client.connection_settings import ConnectionSettings, TlsSettings
from kubesched.client.dial import Dialer, DialError
from kubesched.client.errors import is_server_overwhelmed
from kubesched.client.requests import Request
from kubesched.client.rest import HttpRestClient
from kubesched.client.tls import tls_context

from .certificates import authority, server_context, signed
from .proxy import Proxy, proxying
from .scripted_server import ReceivedRequest, free_port, serving

_AUTHORITY = authority()
_SERVER = signed(_AUTHORITY, "server", usage=None, hosts=("127.0.0.1", "kube.example"))
_TLS = tls_context(TlsSettings(ca_pem=_AUTHORITY.pem))


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on asyncio's event loop, and on that of live processes."""

    @wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        for loop_factory in (asyncio.new_event_loop, new_event_loop):
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(test(*args, **kwargs))

    return run


async def _answer(request: web.BaseRequest, received: list[ReceivedRequest]) -> web.StreamResponse:
    return web.Response(text=f"number {len(received)}")


async def _through(
    proxy: Proxy, scheme: str, tls: ssl.SSLContext | None, user: str = ""
) -> list[bytes]:
    """Send two requests through a proxy; return the responses."""
    async with serving(_answer, server_context(_SERVER) if tls else None) as server:
        url = f"{scheme}://{user}{proxy.address}"
        settings = ConnectionSettings(
            server=server.url, tls=TlsSettings(ca_pem=_AUTHORITY.pem), proxy_url=url
        )
        rest = HttpRestClient(settings)
        try:
            return [await rest.send(Request(path="/x")) for _ in range(2)]
        finally:
            await rest.aclose()


@on_both_loops
async def test_tls_goes_through_a_tunnel() -> None:
    """The proxy gets one CONNECT per connection, with the credentials, and no request."""
    async with proxying() as proxy:
        answers = await _through(proxy, "http", _TLS, user="me:a%40b@")
        assert [b"number 1", b"number 2"] == answers
        ((line, authorization),) = proxy.heads
        assert line.startswith("CONNECT 127.0.0.1:")
        assert authorization == "Basic bWU6YUBi"


@on_both_loops
async def test_tls_to_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy with an https URL is verified with the system's authorities."""
    (tmp_path / "ca.pem").write_bytes(_AUTHORITY.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    async with proxying(server_context(_SERVER)) as proxy:
        assert [b"number 1", b"number 2"] == await _through(proxy, "https", _TLS)


@on_both_loops
async def test_plain_requests_are_forwarded() -> None:
    """Without TLS the proxy gets requests with absolute URLs."""
    async with proxying() as proxy:
        assert b"forwarded" == (await _through(proxy, "http", None, user="me:x@"))[0]
        line, authorization = proxy.heads[0]
        assert line.startswith("GET http://127.0.0.1:")
        assert line.endswith("/x HTTP/1.1")
        assert authorization == "Basic bWU6eA=="


@on_both_loops
async def test_errors_of_proxies() -> None:
    """The error names the proxy's answer and the server, or the proxy that does not answer."""
    async with proxying() as proxy:
        proxy.refusal = "407 Proxy Authentication Required"
        with pytest.raises(ApiError, match=r"the proxy answered 407 to CONNECT 127.0.0.1:"):
            await _through(proxy, "http", _TLS)
        proxy.refusal = ""
        with pytest.raises(ApiError, match=r"unsupported scheme 'socks5' of the proxy 127"):
            await _through(proxy, "socks5", _TLS)
    with pytest.raises(ApiError, match=r"proxyconnect tcp: dial tcp 127.*refused") as caught:
        await _through(proxy, "http", _TLS)
    assert is_server_overwhelmed(caught.value)


async def _dialled(url: str, tls: ssl.SSLContext | None = None) -> str:
    with pytest.raises(DialError) as caught:
        await Dialer(url, tls).dial()
    return str(caught.value)


@on_both_loops
async def test_messages_are_gos() -> None:
    """Failures to connect have the messages of Go's net and tls packages."""
    port = free_port()
    refused = "connect: connection refused"
    assert f"dial tcp 127.0.0.1:{port}: {refused}" == await _dialled(f"http://127.0.0.1:{port}")
    assert f"dial tcp localhost:{port}: {refused}" == await _dialled(f"http://localhost:{port}")
    assert "dial tcp: lookup x.invalid: no such host" == await _dialled("http://x.invalid")
    async with serving(_answer) as plain:
        url = plain.url.replace("http:", "https:")
        words = "tls: first record does not look like a TLS handshake"
        assert words == await _dialled(url, _TLS)
    async with serving(_answer, server_context(_SERVER)) as server:
        stranger = tls_context(TlsSettings(ca_pem=authority("other").pem))
        words = "tls: certificate verify failed: unable to get local issuer certificate"
        assert words == await _dialled(server.url, stranger)

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    async with await asyncio.start_server(leave, "127.0.0.1", 0) as leaving:
        port = leaving.sockets[0].getsockname()[1]
        assert "EOF" == await _dialled(f"https://127.0.0.1:{port}", _TLS)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("_CONNECT_SECONDS_MAX", r"dial tcp 127.0.0.1:\d+: i/o timeout"),
        ("_HANDSHAKE_SECONDS_MAX", "^net/http: TLS handshake timeout$"),
    ],
)
@on_both_loops
async def test_connecting_times_out(
    limit: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a server does not answer the handshake, the connection is closed."""
    monkeypatch.setattr(f"kubesched.client.dial.{limit}", 0.05)
    accepted, closed = asyncio.Event(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        await reader.read()
        writer.close()
        closed.set()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        async with asyncio.timeout(5):
            # On a busy machine the time may be up before the connection begins.
            while not accepted.is_set():
                with pytest.raises((TimeoutError, DialError), match=words):
                    await Dialer(f"https://127.0.0.1:{port}", _TLS).dial()
            await closed.wait()


@on_both_loops
async def test_a_connection_that_is_lost_before_the_request() -> None:
    """It breaks as one that is lost later; uvloop does not write to it."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        connection = await Dialer(f"http://127.0.0.1:{port}", None).dial()
        await connection.lost
        await asyncio.sleep(0)
        with pytest.raises(ConnectionResetError) as failed:
            await connection.ask(b"GET / HTTP/1.1\r\n\r\n")
        assert "EOF" == str(failed.value)
    finally:
        server.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="not every system has it")
@on_both_loops
async def test_a_server_that_is_gone_is_noticed() -> None:
    """What is sent must be acknowledged within 45 seconds, and so must probes."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        connection = await Dialer(f"http://127.0.0.1:{port}", None).dial()
        opened = connection.transport.get_extra_info("socket")
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_USER_TIMEOUT")
        options = [opened.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
        assert [30, 15, 45_000] == options
        connection.abort()
    finally:
        server.close()


@on_both_loops
async def test_a_cancelled_dial_closes_its_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket does not keep the number of its descriptor, which may be another's soon."""
    opened: list[socket.socket] = []

    async def connect(addresses: Sequence[AddrInfoType], **options: Any) -> socket.socket:
        opened.append(await start_connection(addresses, **options))
        asyncio.get_running_loop().call_soon(dialling.cancel)
        return opened[0]

    monkeypatch.setattr("kubesched.client.dial.start_connection", connect)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        dialling = asyncio.create_task(Dialer(f"http://127.0.0.1:{port}", None).dial())
        with pytest.raises(asyncio.CancelledError):
            await dialling
        await asyncio.sleep(0)
        assert -1 == opened[0].fileno()
    finally:
        server.close()
