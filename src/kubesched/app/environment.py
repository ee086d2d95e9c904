"""Environment holds what a process gets from outside: connections, clocks, random, the host name.

With an environment for tests, a whole process runs on virtual time against a server in the same
process, and does the same each time.

Upstream: none; the code that needs a clock or a connection makes it.
"""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from random import Random
from typing import Final, Protocol

import msgspec

from kubesched.app.http_extenders import HttpExtenderTransports
from kubesched.app.signals import handled_signals
from kubesched.client.connect import connect
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.requests import RequestObserver, Rest
from kubesched.client.rest import Permit
from kubesched.config.types import ExtenderConfiguration
from kubesched.scheduler.extender import ExtenderTransport

_COLLECTOR_THRESHOLDS: Final = (10_000, 10, 1000)
"""The second generation has at most 100,000 objects, so collecting it takes some 20 ms."""


class Connection(Rest, Protocol):
    """A `Rest` that must be closed."""

    async def aclose(self) -> None:
        """Close it; requests under way fail."""
        ...


class Connect(Protocol):
    """Opens connections; see `client.connect.connect`."""

    def __call__(
        self,
        settings: ConnectionSettings,
        *,
        qps: float = 0.0,
        burst: int = 0,
        user_agent_suffix: str = "",
        timeout_seconds: float | None = None,
        observer: RequestObserver | None = None,
        permit: Permit | None = None,
    ) -> Connection:
        """Return a connection; nothing is sent yet."""
        ...


class ExtenderTransports(Protocol):
    """Creates the transports of extenders, while it is open."""

    def connect(self, configuration: ExtenderConfiguration, /) -> ExtenderTransport:
        """Return the transport of an extender."""
        ...


def tune_collector() -> None:
    """Tune the garbage collector after start-up, when most objects are permanent."""
    # Objects from the start are permanent; exclude them from collections.
    gc.collect()
    gc.freeze()
    # Most later objects live long too, and few of them are in cycles.
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The outside of a process.

    Attributes:
        connect: Opens connections to the API server.
        extenders: Creates the transports of extenders.
        now_ns: Returns the time of day in nanoseconds since the epoch.
        monotonic: Returns the seconds of a monotonic clock.
        random: Returns new random.
        host_name: A part of identities.
        has_threads: Whether elections run in a thread of their own, or on the main loop.
        settle_memory: Called once the caches are synced.
        signals: Handles signals while it is open; see `app.signals.handled_signals`.
    """

    connect: Connect = connect
    extenders: Callable[[], AbstractAsyncContextManager[ExtenderTransports]] = (
        HttpExtenderTransports
    )
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
