"""SecureServing listens on a port, and passes the requests of its connections to a handler.

llhttp does the framing, as in the API client.

Upstream: net/http, server.go (Go 1.25);
          staging/src/k8s.io/apiserver/pkg/server/secure_serving.go (v1.36)
Rejects:  heads longer than 64 KiB, bodies longer than 1 MiB, requests that are not HTTP.
Invariants: the answers of a connection are sent in the order of its requests.
Differs:  only HTTP/1.1, without upgrades.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Protocol, Self, cast
from urllib.parse import unquote

import httptools

from kubesched.app.http_exchange import HttpRequest, HttpResponse, error_response
from kubesched.framework.structured_log import V3, write

log: Final = logging.getLogger(__name__)

Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]

SHUTDOWN_SECONDS: Final = 5.0
"""How long requests under way may continue when the port closes."""

_HEAD_BYTES_MAX: Final = 64 << 10
_BODY_BYTES_MAX: Final = 1 << 20
# Without a whole request for so long, a connection is closed.
_IDLE_SECONDS_MAX: Final = 90.0


class SecureServing:
    """A listener, open within `async with`.

    Attributes:
        address: The address.
        port: The port, also if the system chose it.
    """

    def __init__(
        self,
        handler: Handler,
        context: ssl.SSLContext,
        address: str,
        port: int,
        *,
        shares_port: bool = False,
        shutdown_seconds: float = SHUTDOWN_SECONDS,
    ) -> None:
        """Set up for an address, which may be unspecified, and a port; 0 takes a free port.

        With `shares_port`, other processes may listen on the port too. Requests under way may
        continue for `shutdown_seconds`.
        """
        self.address = address
        self.port = port
        self._handler = handler
        self._context = context
        self._shares_port = shares_port
        self._shutdown_seconds = shutdown_seconds
        self._server: asyncio.Server | None = None
        self._connections: set[_ServedConnection] = set()

    async def __aenter__(self) -> Self:
        """Start to listen.

        Raises:
            OSError: The address is in use, or not one of this machine.
        """
        host = None if self.address in {"", "0.0.0.0", "::"} else self.address
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _ServedConnection(self._answer, self._connections),
            host,
            self.port,
            ssl=self._context,
            reuse_port=self._shares_port or None,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        log.info("Serving securely on %s:%d", self.address, self.port)
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Stop listening, and wait for requests under way, up to `shutdown_seconds`."""
        if self._server is None:
            return
        self._server.close()
        under_way = [task for each in list(self._connections) if (task := each.finish())]
        if under_way:
            _, late = await asyncio.wait(under_way, timeout=self._shutdown_seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for connection in list(self._connections):
            connection.transport.abort()
        # `wait_closed` would wait for clients that never begin their TLS handshake.
        self._server = None
        log.info("Stopped listening on %s:%d", self.address, self.port)

    async def _answer(self, request: HttpRequest, peer: str) -> HttpResponse:
        now = asyncio.get_running_loop().time
        began = now()
        try:
            answer = await self._handler(request)
        except Exception:
            log.exception("Failed to answer %s %s", request.method, request.path)
            answer = error_response(
                "This request caused apiserver to panic. Look in the logs.", 500
            )
        if log.isEnabledFor(V3):
            milliseconds = (now() - began) * 1000
            write(
                log,
                V3,
                "HTTP",
                verb=request.method,
                URI=request.target,
                latency=f"{milliseconds:.3f}ms",
                userAgent=request.header("User-Agent"),
                srcIP=peer,
                resp=answer.status,
            )
        return answer


class _ServedConnection(asyncio.Protocol):
    """A client's connection: parses requests, and sends an answer to each."""

    transport: asyncio.Transport

    def __init__(
        self,
        answer: Callable[[HttpRequest, str], Awaitable[HttpResponse]],
        connections: set[_ServedConnection],
    ) -> None:
        self._answer = answer
        self._connections = connections
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        # Requests to answer, each with whether the connection is kept afterwards.
        self._waiting: deque[tuple[HttpRequest | HttpResponse, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._is_finishing = False
        self._reset()

    def _reset(self) -> None:
        """Forget the current request."""
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._head_bytes = 0
        self._has_head = False
        self._body = bytearray()
        self._is_too_long = False

    def finish(self) -> asyncio.Task[None] | None:
        """Accept no more requests; return the task that still answers, None if there is none."""
        self._is_finishing = True
        if self._task is None:
            self.transport.close()
        return self._task

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop, but finish the current request: others may wait for the same access review."""
        # Break the reference cycle with the parser.
        self._parser = None
        self._stop_waiting()
        if self._task is None:
            self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        if self._parser is None:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request itself is complete, and is answered.
            self._parser = None
        except httptools.HttpParserError:
            self._parser = None
            self._put(error_response("400 Bad Request", 400), is_kept=False)

    # Callbacks of the parser.

    def on_url(self, url: bytes) -> None:
        """Keep a part of the target."""
        self._target += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those after the body are ignored."""
        self._count(len(name) + len(value))
        if not self._has_head:
            self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Ask for the body if the client waits for that."""
        self._has_head = True
        if ("expect", "100-continue") in {(a.lower(), b.lower()) for a, b in self._headers}:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body, unless it is too long."""
        if len(self._body) + len(body) > _BODY_BYTES_MAX:
            self._is_too_long = True
        if not self._is_too_long:
            self._body += body

    def on_message_complete(self) -> None:
        """Queue the request; requests are answered in order."""
        parser = self._parser
        assert parser is not None
        if self._is_too_long:
            self._put(error_response("http: request body too large", 413), is_kept=False)
        else:
            self._put(
                self._request(parser.get_method().decode()),
                is_kept=parser.should_keep_alive() and parser.get_http_version() == "1.1",
            )
        self._reset()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > _HEAD_BYTES_MAX:
            raise ValueError("the head is too long")

    def _request(self, method: str) -> HttpRequest:
        target = self._target.decode("latin-1")
        return HttpRequest(
            method=method,
            path=unquote(target.partition("?")[0]),
            target=target,
            headers=tuple(self._headers),
            body=bytes(self._body),
            certificates=_certificates_of(self.transport.get_extra_info("ssl_object")),
        )

    # Answers.

    def _put(self, item: HttpRequest | HttpResponse, *, is_kept: bool) -> None:
        self._waiting.append((item, is_kept))
        self._stop_waiting()
        if self._task is None:
            # What the client sends meanwhile waits in the system's buffers.
            self.transport.pause_reading()
            self._task = asyncio.ensure_future(self._answer_all())

    async def _answer_all(self) -> None:
        peer = (self.transport.get_extra_info("peername") or ("",))[0]
        while self._waiting and not self.transport.is_closing():
            item, is_kept = self._waiting.popleft()
            has_body = True
            if isinstance(item, HttpRequest):
                has_body = item.method != "HEAD"
                item = await self._answer(item, peer)
                if self.transport.is_closing():
                    # The client left meanwhile; uvloop refuses to write to it.
                    break
            is_kept = is_kept and not (self._is_finishing and not self._waiting)
            self.transport.write(_encoded(item, is_kept=is_kept, has_body=has_body))
            if not is_kept:
                self.transport.close()
        self._task = None
        if self.transport.is_closing():
            self._connections.discard(self)
        else:
            self.transport.resume_reading()
            self._wait()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(_IDLE_SECONDS_MAX, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


def _encoded(answer: HttpResponse, *, is_kept: bool, has_body: bool) -> bytes:
    fields = [
        *answer.headers,
        ("Cache-Control", "no-cache, private"),
        ("Content-Length", str(len(answer.body))),
        ("Date", formatdate(usegmt=True)),
    ]
    if answer.content_type:
        fields.append(("Content-Type", answer.content_type))
    if not is_kept:
        fields.append(("Connection", "close"))
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return head.encode("latin-1", "replace") + (answer.body if has_body else b"")


class _Chained(Protocol):
    """A TLS connection of Python 3.13 or later."""

    def get_unverified_chain(self) -> list[bytes]: ...


def _certificates_of(connection: ssl.SSLObject | None) -> tuple[bytes, ...]:
    if connection is None:
        return ()
    own = connection.getpeercert(binary_form=True)
    if own is None:
        # Python 3.13 cannot return the chain of a client without a certificate.
        return ()
    if hasattr(connection, "get_unverified_chain"):
        chained: _Chained = connection
        return tuple(chained.get_unverified_chain())
    return (own,)
