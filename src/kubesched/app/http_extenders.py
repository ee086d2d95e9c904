"""HttpExtenderTransports connects HTTP extenders, each with its own connection pool.

Upstream: pkg/scheduler/extender.go, makeTransport (v1.36)
Differs:  an answer longer than 256 MiB is refused.
"""

from __future__ import annotations

import os
import ssl
from types import TracebackType
from typing import Final, Self

import aiohttp

from kubesched.client.connection_settings import TlsSettings
from kubesched.client.dial import dial_error
from kubesched.client.tls import TlsError, tls_context
from kubesched.config.field_errors import ConfigError, FieldError
from kubesched.config.types import ExtenderConfiguration, ExtenderTLSConfig

_ANSWER_BYTES_MAX: Final = 256 * 2**20
_CONNECTIONS_MAX: Final = 100
_HEADERS: Final = {"Content-Type": "application/json"}


class HttpExtenderTransports:
    """Creates the transports of extenders, and closes them.

    `connect` is an argument of `scheduler.assembly.assemble`.
    """

    def __init__(self) -> None:
        self._transports: list[_HttpTransport] = []

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Close all connections."""
        for transport in self._transports:
            await transport.close()

    def connect(self, configuration: ExtenderConfiguration) -> _HttpTransport:
        """Return the transport of an extender; nothing is sent yet.

        Raises:
            ConfigError: Its TLS configuration is invalid.
        """
        tls = configuration.tls_config
        transport = _HttpTransport(_context_of(configuration), tls.server_name if tls else "")
        self._transports.append(transport)
        return transport


class _HttpTransport:
    """The HTTP connection to one extender."""

    def __init__(self, context: ssl.SSLContext | None, server_name: str) -> None:
        self._context = context
        self._server_name = server_name
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """POST JSON; return status and body; see `scheduler.extender.ExtenderTransport`."""
        phase = "Client.Timeout exceeded while awaiting headers"
        try:
            async with self._open().post(
                url,
                data=body,
                timeout=aiohttp.ClientTimeout(total=timeout_seconds),
                server_hostname=self._server_name or None,
            ) as answer:
                phase = "Client.Timeout or context cancellation while reading body"
                return answer.status, await _body_of(answer)
        except TimeoutError as error:
            raise TimeoutError(f"context deadline exceeded ({phase})") from error
        except aiohttp.ClientError as error:
            raise _in_go_words(error) from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=True if self._context is None else self._context, limit=_CONNECTIONS_MAX
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=_HEADERS,
                skip_auto_headers=("Accept-Encoding",),
            )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _in_go_words(error: aiohttp.ClientError) -> OSError:
    """Return a failed request as an OSError, in Go's words."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return dial_error(error.certificate_error, error.host, error.port or 0)
        case aiohttp.ClientConnectorError():
            return dial_error(error.os_error, error.host, error.port or 0)
        case aiohttp.ServerDisconnectedError():
            return OSError("EOF")
        case aiohttp.ClientOSError(errno=int() as number):
            return OSError(os.strerror(number).lower())
    return OSError(str(error) or type(error).__name__)


async def _body_of(answer: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    total = 0
    async for chunk in answer.content.iter_any():
        chunks.append(chunk)
        total += len(chunk)
        if total > _ANSWER_BYTES_MAX:
            raise OSError(f"the answer is longer than {_ANSWER_BYTES_MAX} bytes")
    return b"".join(chunks)


def _context_of(configuration: ExtenderConfiguration) -> ssl.SSLContext | None:
    if not configuration.enable_https and configuration.tls_config is None:
        return None
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
