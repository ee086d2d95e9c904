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
from collections.abc import Awaitable, Callable, Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Protocol, Self
from urllib.parse import unquote

import httptools

from kubesched.app.http_exchange import HttpRequest, HttpResponse, error_response
from kubesched.framework.structured_log import V3, V4, write

log: Final = logging.getLogger(__name__)

Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]

# How long requests under way may continue when the port closes.
_SHUTDOWN_SECONDS: Final = 5.0

_READ_BYTES: Final = 64 << 10
_HEAD_BYTES_MAX: Final = 64 << 10
_BODY_BYTES_MAX: Final = 1 << 20
# Without a whole request for so long, a connection is closed.
_IDLE_SECONDS_MAX: Final = 90.0


class SecureServing:
    """A listener, open within `async with`; then `port` is known even if the system chose it."""

    def __init__(
        self,
        handler: Handler,
        context: ssl.SSLContext,
        address: str,
        port: int,
        *,
        shares_port: bool = False,
    ) -> None:
        """Set up for an address, which may be unspecified, and a port; 0 takes a free port.

        With `shares_port`, other processes may listen on the port too.
        """
        self.address = address
        self.port = port
        self._handler = handler
        self._context = context
        self._shares_port = shares_port
        self._server: asyncio.Server
        self._is_closing = False
        # A task per connection, and those of them that answer a request at present.
        self._connections: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Start to listen; raises OSError if the address is in use, or not of this machine."""
        self._server = await asyncio.start_server(
            self._serve,
            None if self.address in {"", "0.0.0.0", "::"} else self.address,
            self.port,
            ssl=self._context,
            reuse_port=self._shares_port or None,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        log.info("Serving securely on %s", self._place)
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Stop listening, and wait up to five seconds for requests under way."""
        # `wait_closed` would wait for clients that never begin their TLS handshake.
        self._server.close()
        self._is_closing = True
        if self._answering:
            await asyncio.wait(self._answering, timeout=_SHUTDOWN_SECONDS)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        log.info("Stopped listening on %s", self._place)

    @property
    def _place(self) -> str:
        """Address and port, as a URL has them."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection, one after the other."""
        task = asyncio.current_task()
        assert task is not None
        requests = _Requests(_certificates_of(writer.get_extra_info("ssl_object")))
        self._connections.add(task)
        try:
            is_kept = True
            while is_kept and await _has_more(reader, requests):
                self._answering.add(task)
                is_kept = await self._answer_all(requests, writer)
                self._answering.discard(task)
        except OSError as error:
            log.log(V4, "A connection broke: %s", error)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            self._answering.discard(task)
            requests.close()
            writer.close()

    async def _answer_all(self, requests: _Requests, writer: asyncio.StreamWriter) -> bool:
        """Answer the requests received; return whether the connection is kept."""
        is_kept = True
        while requests.received and is_kept:
            item, is_kept = requests.received.popleft()
            has_body = True
            if isinstance(item, HttpRequest):
                has_body = item.method != "HEAD"
                item = await self._answer(item, writer.get_extra_info("peername") or ("",))
            is_kept = is_kept and not (self._is_closing and not requests.received)
            if writer.transport.is_closing():
                # The client left meanwhile; uvloop refuses to write to it.
                return False
            writer.write(_encoded(item, is_kept=is_kept, has_body=has_body))
            await writer.drain()
        return is_kept

    async def _answer(self, request: HttpRequest, peer: Sequence[object]) -> HttpResponse:
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
                srcIP=peer[0],
                resp=answer.status,
            )
        return answer


async def _has_more(reader: asyncio.StreamReader, requests: _Requests) -> bool:
    """Read until a whole request has arrived; return False if none comes."""
    try:
        async with asyncio.timeout(_IDLE_SECONDS_MAX):
            while not requests.received:
                data = await reader.read(_READ_BYTES)
                if not data:
                    return False
                requests.feed(data)
    except TimeoutError:
        return False
    return True


class _Requests:
    """Parses the requests of a connection.

    `received` are those to answer, or what to answer to a malformed one, each with whether the
    connection is kept afterwards.
    """

    def __init__(self, certificates: tuple[bytes, ...]) -> None:
        self.received: deque[tuple[HttpRequest | HttpResponse, bool]] = deque()
        self._certificates = certificates
        self._parser = httptools.HttpRequestParser(self)
        self._reset()

    def _reset(self) -> None:
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._head_bytes = 0
        self._has_head = False
        self._body = bytearray()
        self._is_too_long = False

    def close(self) -> None:
        """Break the reference cycle with the parser."""
        del self._parser

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request itself is complete, and is answered.
            request, _ = self.received.pop()
            self.received.append((request, False))
        except httptools.HttpParserError:
            self.received.append((error_response("400 Bad Request", 400), False))

    # Callbacks of the parser.

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those after the body are ignored."""
        self._count(len(name) + len(value))
        if not self._has_head:
            self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Note that what follows is the body."""
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._is_too_long = self._is_too_long or len(self._body) + len(body) > _BODY_BYTES_MAX
        if not self._is_too_long:
            self._body += body

    def on_message_complete(self) -> None:
        parser = self._parser
        if self._is_too_long:
            self.received.append((error_response("http: request body too large", 413), False))
        else:
            is_kept = parser.should_keep_alive() and parser.get_http_version() == "1.1"
            self.received.append((self._request(), is_kept))
        self._reset()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > _HEAD_BYTES_MAX:
            raise ValueError("the head is too long")

    def _request(self) -> HttpRequest:
        target = self._target.decode("latin-1")
        return HttpRequest(
            method=self._parser.get_method().decode(),
            path=unquote(target.partition("?")[0]),
            target=target,
            headers=tuple(self._headers),
            body=bytes(self._body),
            certificates=self._certificates,
        )


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
