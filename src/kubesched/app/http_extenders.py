"""HttpExtenderTransports connects HTTP extenders, each with its own connection pool.

Upstream: pkg/scheduler/extender.go, makeTransport (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Self
from urllib.parse import quote, unquote, urlsplit

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.client.connection_settings import TlsSettings
from kubesched.client.credentials import basic
from kubesched.client.dial import Dialer, DialError
from kubesched.client.http_connection import ConnectionPool
from kubesched.client.rest import PATH_SAFE
from kubesched.client.tls import TlsError, tls_context
from kubesched.config.types import ExtenderConfiguration, ExtenderTLSConfig


class HttpExtenderTransports:
    """Creates the transports of extenders, and closes them.

    `connect` is an argument of `scheduler.assembly.assemble`.
    """

    def __init__(self) -> None:
        self._transports: list[_HttpTransport] = []

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        for transport in self._transports:
            await transport.close()

    def connect(self, configuration: ExtenderConfiguration) -> _HttpTransport:
        """Return the transport of an extender; nothing is sent yet.

        Raises:
            ConfigError: Its TLS configuration is invalid.
        """
        tls = configuration.tls_config
        transport = _HttpTransport(
            configuration.url_prefix, _context_of(configuration), tls.server_name if tls else ""
        )
        self._transports.append(transport)
        return transport


class _HttpTransport:
    """The HTTP connections to one extender."""

    def __init__(self, url: str, tls: ssl.SSLContext, server_name: str) -> None:
        parts = urlsplit(url)
        self._dialer = Dialer(url, tls if parts.scheme == "https" else None, server_name)
        self._fields = f"Host: {self._dialer.authority}\r\nContent-Type: application/json\r\n"
        if parts.username:
            user, password = unquote(parts.username), unquote(parts.password or "")
            self._fields += f"Authorization: {basic(user, password).header}\r\n"
        self._pool: ConnectionPool | None = None

    async def post(self, url: str, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """POST JSON; return status and body; see `scheduler.extenders.ExtenderTransport`."""
        if self._pool is None:
            self._pool = ConnectionPool(self._dialer.dial)
        parts = urlsplit(url)
        target = quote(parts.path or "/", safe=PATH_SAFE)
        query = f"?{parts.query}" if parts.query else ""
        head = f"POST {target}{query} HTTP/1.1\r\n{self._fields}Content-Length: {len(body)}\r\n\r\n"
        phase = "Client.Timeout exceeded while awaiting headers"
        try:
            async with asyncio.timeout(timeout_seconds or None):
                connection = await self._pool.take()
                try:
                    status = await connection.ask(head.encode() + body)
                    phase = "Client.Timeout or context cancellation while reading body"
                    return status, await connection.read_all()
                finally:
                    self._pool.give_back(connection)
        except TimeoutError as error:
            raise TimeoutError(f"context deadline exceeded ({phase})") from error
        except DialError:
            raise
        except OSError as error:
            words = os.strerror(error.errno).lower() if error.errno else str(error)
            raise OSError(words) from error

    async def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            await self._pool.aclose()


def _context_of(configuration: ExtenderConfiguration) -> ssl.SSLContext:
    settings = _settings_of(configuration.tls_config or ExtenderTLSConfig())
    if configuration.enable_https and not settings.has_authority:
        settings = settings.without_authority()
    try:
        return tls_context(settings)
    except TlsError as error:
        place = f"extenders (urlPrefix {configuration.url_prefix}).tlsConfig"
        raise ConfigError([FieldError(place, str(error))]) from error


def _settings_of(tls: ExtenderTLSConfig) -> TlsSettings:
    return TlsSettings(
        ca_file=tls.ca_file,
        ca_pem=tls.ca_data,
        server_name=tls.server_name,
        is_insecure=tls.insecure,
        certificate_file=tls.cert_file,
        certificate_pem=tls.cert_data,
        key_file=tls.key_file,
        key_pem=tls.key_data,
    )
