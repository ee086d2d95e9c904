"""Election runs an elector in a thread of its own, so that it renews while the main loop is busy.

On virtual time, without threads, it runs on the main loop.

Upstream: cmd/kube-scheduler/app/server.go, Run; component-base/config/v1alpha1 (v1.36)
Differs:  the locks that upstream has removed can be used, if a flag allows it.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.api.times import moment_at
from kubesched.app.environment import Environment
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.leader_election import ElectionTiming, LeaderElector
from kubesched.client.requests import RequestObserver
from kubesched.client.resource_locks import RecordEvent, new_lock
from kubesched.config.types import ClientConnection, LeaderElection

_JOIN_SECONDS_MAX: Final = 30.0


class Election:
    """This process's part in the election, under its identity; `elector` has its state."""

    def __init__(
        self,
        settings: ConnectionSettings,
        connection: ClientConnection,
        election: LeaderElection,
        *,
        environment: Environment,
        record_event: RecordEvent,
        observer: RequestObserver | None = None,
        allow_removed_locks: bool = False,
    ) -> None:
        """Set up; nothing is sent yet. Raises ConfigError for wrong durations or kinds of lock.

        `record_event` writes events about the lock, and is called in the election's thread;
        `observer` is called for the election's requests. Locks that upstream has removed may be
        allowed.
        """
        random = environment.new_random()
        uid = uuid.UUID(int=random.getrandbits(128), version=4)
        self.identity = f"{environment.host_name}_{uid}"
        self._monotonic = environment.monotonic
        self._has_thread = environment.has_threads
        timing = ElectionTiming(
            lease_duration_seconds=election.lease_duration_seconds,
            renew_deadline_seconds=election.renew_deadline_seconds,
            retry_period_seconds=election.retry_period_seconds,
        )
        self._rest = environment.connect(
            settings,
            qps=connection.qps,
            burst=connection.burst,
            user_agent_suffix="leader-election",
            timeout_seconds=timing.client_timeout_seconds,
            observer=observer,
        )
        try:
            lock = new_lock(
                election.resource_lock,
                self._rest,
                election.resource_namespace,
                election.resource_name,
                self.identity,
                record_event,
                allows_removed=allow_removed_locks,
            )
            self.elector = LeaderElector(
                lock,
                timing,
                clock=environment.monotonic,
                wall_clock=lambda: moment_at(environment.now_ns()),
                random=random.random,
                name=election.resource_name,
            )
        except ValueError as error:
            raise ConfigError(
                [FieldError("", f"couldn't create leader elector: {error}")]
            ) from error
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> None:
        """Start; the callbacks are called on the current loop.

        `on_started` is called once this process leads, `on_stopped` at the end in any case.
        """
        main = asyncio.get_running_loop()
        started, stopped = partial(_call_on, main, on_started), partial(_call_on, main, on_stopped)
        if not self._has_thread:
            self._task = asyncio.ensure_future(self._elect(started, stopped))
            return
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._elect(started, stopped)),
            name="leader-election",
            daemon=True,
        )
        self._thread.start()

    async def _elect(self, started: Callable[[], None], stopped: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        if self._is_stopped:
            # `stop` was called before the loop was there to receive it.
            self.elector.stop()
        try:
            await self.elector.run(started)
        finally:
            stopped()
            await self._rest.aclose()

    async def stop(self) -> None:
        """Release the lock, and wait for that."""
        # Set before reading `_loop`, because `_elect` sets `_loop` before it reads this.
        self._is_stopped = True
        if self._task is not None:
            self.elector.stop()
            await self._task
        if self._thread is None:
            return
        if self._loop is not None:
            with suppress(RuntimeError):  # its loop has ended already
                self._loop.call_soon_threadsafe(self.elector.stop)
        await asyncio.to_thread(self._thread.join, _JOIN_SECONDS_MAX)

    # Thread-safe.

    def may_act(self) -> bool:
        """Whether this process may write as the leader now."""
        return self.elector.fence.holds(self._monotonic())


def _call_on(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the main loop has ended already
        loop.call_soon_threadsafe(callback)
