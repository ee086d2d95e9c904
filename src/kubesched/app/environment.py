"""Environment holds what a process gets from outside: connections, clocks, random, the host name.

With an environment for tests, a whole process runs on virtual time against a server in the same
process, and does the same each time.

Connections opens those to the API server. Events have a connection of their own, so that they never
delay bindings. Each extender has its own connection pool.

Upstream: cmd/kube-scheduler/app/options/options.go, createClients; pkg/scheduler/extender.go,
          makeTransport (v1.36)
Differs:  redirects of extenders are not followed, but reported as failures.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from functools import partial
from random import Random
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

import msgspec

from kubesched.api.errors import SetupError
from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.app.collector import tune_collector
from kubesched.app.signals import handled_signals
from kubesched.cache.cache import PodLister
from kubesched.client.claim_client import ClaimClient, VolumeClient
from kubesched.client.connect import connect
from kubesched.client.connection_settings import ConnectionSettings, TlsSettings
from kubesched.client.credentials import basic
from kubesched.client.dial import Dialer, DialError
from kubesched.client.event_recorder import EventRecorder, check_event_group
from kubesched.client.http_connection import ConnectionPool
from kubesched.client.pod_client import PodClient
from kubesched.client.requests import RequestObserver, Rest
from kubesched.client.rest import PATH_SAFE
from kubesched.client.tls import tls_context
from kubesched.config.types import ClientConnection, ExtenderConfiguration, ExtenderTLSConfig
from kubesched.scheduler.assembly import Writers
from kubesched.scheduler.extenders import Connect as ConnectExtender
from kubesched.scheduler.extenders import ExtenderTransport

# Extenders.


@asynccontextmanager
async def http_extenders() -> AsyncIterator[ConnectExtender]:
    """Yield a function that returns the transport of an extender; at the end, close all of them.

    The function raises ConfigError if the extender's TLS configuration is invalid.
    """
    async with AsyncExitStack() as opened:

        def connect_extender(configuration: ExtenderConfiguration) -> ExtenderTransport:
            tls = configuration.tls_config
            transport = _HttpTransport(
                configuration.url_prefix,
                tls_of_extender(configuration),
                tls.server_name if tls else "",
            )
            opened.push_async_callback(transport.close)
            return transport

        yield connect_extender


class _HttpTransport:
    """The HTTP connections to one extender."""

    def __init__(self, url: str, tls: ssl.SSLContext, server_name: str) -> None:
        parts = urlsplit(url)
        self._dialer = Dialer(url, tls if parts.scheme == "https" else None, server_name)
        self._fields = f"Host: {self._dialer.authority}\r\nContent-Type: application/json\r\n"
        if parts.username:
            user, password = unquote(parts.username), unquote(parts.password or "")
            self._fields += f"Authorization: {basic(user, password).header}\r\n"
        self._pool = ConnectionPool(self._dialer.dial)

    async def post(self, url: str, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """POST JSON; return status and body; see `scheduler.extenders.ExtenderTransport`."""
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
        await self._pool.aclose()


def tls_of_extender(configuration: ExtenderConfiguration) -> ssl.SSLContext:
    """Return the TLS context for an extender; raises ConfigError if its files cannot be used."""
    tls = configuration.tls_config or ExtenderTLSConfig()
    settings = TlsSettings(
        ca_file=tls.ca_file,
        ca_pem=tls.ca_data,
        server_name=tls.server_name,
        is_insecure=tls.insecure,
        certificate_file=tls.cert_file,
        certificate_pem=tls.cert_data,
        key_file=tls.key_file,
        key_pem=tls.key_data,
    )
    if configuration.enable_https and not settings.has_authority:
        settings = settings.without_authority()
    try:
        return tls_context(settings)
    except SetupError as error:
        place = f"extenders (urlPrefix {configuration.url_prefix}).tlsConfig"
        raise ConfigError([FieldError(place, str(error))]) from error


# The environment.


class Connection(Rest, Protocol):
    """A `Rest` that must be closed."""

    async def aclose(self) -> None:
        """Close it; requests under way fail."""


Connect = Callable[..., Connection]
"""Opens a connection, with the arguments of `client.connect.connect`; nothing is sent yet."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What a process uses of the world outside: connections, clocks, random sources, signals.

    `now_ns` returns the time of day in nanoseconds since the epoch, `monotonic` seconds.
    `host_name` is a part of identities. Without threads, elections run on the main loop.
    `settle_memory` is called once the caches are synced.
    """

    connect: Connect = connect
    extenders: Callable[[], AbstractAsyncContextManager[ConnectExtender]] = http_extenders
    now_ns: Callable[[], int] = time.time_ns
    monotonic: Callable[[], float] = time.monotonic
    new_random: Callable[[], Random] = Random
    host_name: str = msgspec.field(default_factory=socket.gethostname)
    has_threads: bool = True
    settle_memory: Callable[[], None] = tune_collector
    signals: Callable[[Callable[[], None], Callable[[], None]], AbstractContextManager[None]] = (
        handled_signals
    )


REAL_ENVIRONMENT: Final = Environment()
"""Real clocks, connections and random sources."""


# Connections to the API server.

_LAST_EVENTS_SECONDS = 2.0


class Connections:
    """Open connections, that of events apart, and the writers on top of them."""

    def __init__(
        self,
        settings: ConnectionSettings,
        connection: ClientConnection,
        permit: Callable[[], None],
        observer: RequestObserver | None,
        environment: Environment,
    ) -> None:
        """Set up while a loop runs; nothing is sent yet.

        `permit` is called immediately before each write that only the leader may do, `observer` for
        every request.
        """
        open_one = partial(
            environment.connect,
            settings,
            qps=connection.qps,
            burst=connection.burst,
            user_agent_suffix="scheduler",
            observer=observer,
        )
        self.rest = open_one(permit=permit)
        self.events_rest = open_one()
        now_ns, random = environment.now_ns, environment.new_random()
        self.recorder = EventRecorder(self.events_rest, now_ns, random, environment.host_name)
        self.api = PodClient(self.rest, now_ns, self.recorder.record_event)
        self._claims = ClaimClient(self.rest, self.api, random)
        self._recording: asyncio.Task[None] | None = None

    async def open(self, opened: AsyncExitStack) -> None:
        """Start writing events; the stack closes all."""
        opened.push_async_callback(self._close)
        await check_event_group(self.events_rest)
        self._recording = asyncio.create_task(self.recorder.run())

    def writers(self, pods: PodLister) -> Writers:
        """Return how plugins write claims and volumes."""

        def has_pod(namespace: str, name: str) -> bool:
            return pods.get(namespace, name) is not None

        return Writers(self._claims, VolumeClient(self.rest, has_pod))

    async def drain(self) -> None:
        """Wait for background writes."""
        await self._claims.drain()

    async def _close(self) -> None:
        if self._recording is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_EVENTS_SECONDS):
                    await self.recorder.drain()
            self._recording.cancel()
            await asyncio.gather(self._recording, return_exceptions=True)
        await self.events_rest.aclose()
        await self.rest.aclose()
