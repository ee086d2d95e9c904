"""Dialer opens connections to a server: over TLS, through a proxy, to the first address to answer.

Upstream: net/http, transport.go: dialConn; net, dial.go (Go 1.25)
Differs:  SOCKS proxies are not supported.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection

from kubesched.client.connection_settings import TlsSettings
from kubesched.client.credentials import basic
from kubesched.client.http_connection import HttpConnection
from kubesched.client.tls import tls_context, tls_words

_CONNECT_SECONDS_MAX: Final = 30.0
_HANDSHAKE_SECONDS_MAX: Final = 10.0
# A peer that acknowledges nothing for 45 seconds is gone: HTTP/2 pings after 30 and waits for 15.
_PROBES: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 15, "TCP_USER_TIMEOUT": 45_000}
# After this time the next address is tried in parallel; as in Go.
_NEXT_ADDRESS_SECONDS: Final = 0.3
_UNKNOWN: Final = frozenset((socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)))
_PORTS: Final = {"http": 80, "https": 443}


class DialError(OSError):
    """A connection failed; the message names the step."""

    def __init__(self, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.errno = number


class _Place(NamedTuple):
    """Where to connect; `name` is the expected name in the certificate."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    name: str

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Dialer:
    """Dials one server.

    Attributes:
        authority: The server's host, with its port if the URL has one: the `Host` header.
        is_forwarded: Whether a proxy forwards single requests, which then contain the whole URL.
        proxy_authorization: The Proxy-Authorization header of such requests, "" for none.
    """

    def __init__(
        self, server: str, tls: ssl.SSLContext | None, server_name: str = "", proxy_url: str = ""
    ) -> None:
        """Set up; a server without TLS is reached by http.

        `server_name` is expected in the server's certificate, "" for the host's. `proxy_url` is
        that of an HTTP proxy, "" without one.
        """
        parts = urlsplit(server)
        self.authority = parts.netloc.rpartition("@")[2]
        self._server = _place(parts, tls, server_name)
        self._proxy: _Place | None = None
        self._proxy_scheme = ""
        self.proxy_authorization = ""
        if proxy_url:
            parts = urlsplit(proxy_url)
            self._proxy_scheme = parts.scheme
            secured = tls_context(TlsSettings()) if parts.scheme == "https" else None
            self._proxy = _place(parts, secured)
            self.proxy_authorization = _authorization(parts)
        self.is_forwarded = self._proxy is not None and tls is None

    def use(self, tls: ssl.SSLContext) -> None:
        """Begin to use another TLS context for the server."""
        self._server = self._server._replace(tls=tls)

    async def dial(self) -> HttpConnection:
        """Return a new connection.

        Raises DialError if the connection fails or a TLS handshake takes longer than 10 seconds,
        TimeoutError if no answer comes within 30 seconds.
        """
        first = self._proxy or self._server
        try:
            async with asyncio.timeout(_CONNECT_SECONDS_MAX):
                if self._proxy is None:
                    return await _connected(first)
                return await self._through(self._proxy)
        except TimeoutError:
            raise TimeoutError(f"dial tcp {first.address}: i/o timeout") from None

    async def _through(self, proxy: _Place) -> HttpConnection:
        if self._proxy_scheme not in _PORTS:
            raise DialError(
                f"proxyconnect tcp: unsupported scheme {self._proxy_scheme!r} of the proxy"
                f" {proxy.address}, must be http or https"
            )
        try:
            connection = await _connected(proxy)
        except DialError as error:
            raise DialError(f"proxyconnect tcp: {error}", error.errno) from error
        if self._server.tls is None:
            return connection
        try:
            return await self._tunnelled(connection, self._server.tls)
        except BaseException:
            connection.abort()
            raise

    async def _tunnelled(self, outer: HttpConnection, tls: ssl.SSLContext) -> HttpConnection:
        """Open a tunnel through a proxy, and start TLS with the server."""
        target = self._server.address
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self.proxy_authorization:
            lines.append(f"Proxy-Authorization: {self.proxy_authorization}")
        try:
            status = await outer.ask(("\r\n".join(lines) + "\r\n\r\n").encode())
        except OSError as error:
            raise DialError(f"proxyconnect tcp: {error}", error.errno) from error
        if status != HTTPStatus.OK:
            raise DialError(f"proxyconnect tcp: the proxy answered {status} to CONNECT {target}")
        inner = HttpConnection()
        try:
            transport = await asyncio.get_running_loop().start_tls(
                outer.transport,
                inner,
                tls,
                server_hostname=self._server.name,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS_MAX,
            )
        except OSError as error:
            raise _dial_error(error, self._server) from error
        assert transport is not None
        inner.connection_made(transport)
        return inner


async def _connected(place: _Place) -> HttpConnection:
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except OSError as error:
        is_unknown = error.errno in _UNKNOWN
        words = "no such host" if is_unknown else (error.strerror or str(error)).lower()
        raise DialError(f"dial tcp: lookup {place.host}: {words}") from error
    connection = HttpConnection()
    try:
        opened = await start_connection(
            addresses, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, socket_factory=_new_socket
        )
        await loop.create_connection(
            lambda: connection,
            sock=opened,
            ssl=place.tls,
            server_hostname=place.name if place.tls is not None else None,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS_MAX if place.tls is not None else None,
        )
    except (OSError, RuntimeError) as error:
        # uvloop raises RuntimeError for addresses that it cannot use.
        raise _dial_error(error, place) from error
    return connection


def _dial_error(error: Exception, place: _Place) -> DialError:
    """Return why a connection to an address failed, in Go's words."""
    if isinstance(error, ssl.SSLError):
        return DialError(f"tls: {tls_words(error)}")
    if "SSL handshake is taking longer" in str(error):
        return DialError("net/http: TLS handshake timeout")
    if isinstance(error, ConnectionResetError) and not error.errno:
        # asyncio's error for a server that ends the connection during the handshake.
        return DialError("EOF")
    number = error.errno if isinstance(error, OSError) else None
    words = os.strerror(number).lower() if number else str(error)
    return DialError(f"dial tcp {place.address}: connect: {words}", number)


def _new_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket that notices within a minute that the server is gone, also if it is quiet."""
    family, type_, protocol, _, _ = address
    opened = socket.socket(family=family, type=type_, proto=protocol)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():
        # Not every system has all.
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return opened


def _place(parts: SplitResult, tls: ssl.SSLContext | None, name: str = "") -> _Place:
    host = parts.hostname or ""
    return _Place(host, parts.port or _PORTS.get(parts.scheme, 0), tls, name or host)


def _authorization(parts: SplitResult) -> str:
    if not parts.username:
        return ""
    return basic(unquote(parts.username), unquote(parts.password or "")).header
