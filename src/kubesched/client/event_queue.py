"""EventQueue sends events in the background, with retries; callers never wait.

Upstream: staging/src/k8s.io/client-go/tools/events/event_broadcaster.go, attemptRecording;
          staging/src/k8s.io/client-go/tools/record/event.go, recordToSink (v1.36)
Differs:  sixteen senders write the events in the order in which they were recorded, where upstream
          starts a goroutine for each; a sender retries its event before it takes the next, so that
          few events use up their twelve tries in an outage. When more than
          262,144 events wait (some 150 MB), the oldest is dropped; upstream has no limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from kubesched.api.errors import ApiError

# More than a burst of the largest supported cluster, with 150,000 pods.
_WAITING_MAX: Final = 262_144
_TRIES_MAX: Final = 12
_RETRY_SECONDS: Final = 10.0
_RETRY_JITTER: Final = 0.25
_SENDERS_MAX: Final = 16
_DROPS_PER_WARNING: Final = 1000

log = logging.getLogger(__name__)

Send = Callable[[], Awaitable[object]]


class EventQueue:
    """Events that wait or are being sent."""

    def __init__(self, random: Random) -> None:
        """Set up; `run` begins. `random` spreads retries."""
        self._random = random
        self._pending: deque[tuple[str, Send]] = deque()
        # Senders run while events are pending; resting ones wait for a retry.
        self._group: asyncio.TaskGroup | None = None
        self._senders = 0
        self._resting = 0
        self._drained = asyncio.Event()
        self._drained.set()
        self._dropped = 0

    def put(self, name: str, send: Send) -> None:
        """Queue the event of a name; never waits.

        `send` sends it. It raises `ApiError` if that fails, with code 0 if a retry may succeed.
        """
        if len(self._pending) >= _WAITING_MAX:
            self._drop_oldest()
        self._pending.append((name, send))
        self._start_sender()
        self._update_drained()

    def _start_sender(self) -> None:
        if self._group is not None and self._senders < _SENDERS_MAX:
            self._senders += 1
            self._group.create_task(self._send_all(), name="sender of events")

    def _drop_oldest(self) -> None:
        # The newest events are more useful.
        name, _ = self._pending.popleft()
        self._dropped += 1
        if self._dropped % _DROPS_PER_WARNING == 1:
            log.warning("Dropped %s events, as too many wait: %s", self._dropped, name)

    async def run(self) -> None:
        """Send until cancelled; what is queued later is kept."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for _ in range(len(self._pending)):
                    self._start_sender()
                await asyncio.Event().wait()
            finally:
                # Before the group ends: it takes no more tasks then.
                self._group = None

    async def drain(self) -> None:
        """Wait until the queue is empty, or the server stops answering."""
        await self._drained.wait()

    def _update_drained(self) -> None:
        is_running = self._senders > self._resting
        is_stuck = self._resting == _SENDERS_MAX
        if is_running or (self._pending and not is_stuck):
            self._drained.clear()
        else:
            self._drained.set()

    async def _send_all(self) -> None:
        try:
            while self._pending:
                await self._send_one(*self._pending.popleft())
        finally:
            self._senders -= 1
            self._update_drained()

    async def _send_one(self, name: str, send: Send) -> None:
        for tries in range(1, _TRIES_MAX + 1):
            try:
                await send()
            except ApiError as error:
                if error.code:
                    # The event itself is invalid or unwanted: a retry would not help.
                    level = logging.DEBUG if error.reason == "AlreadyExists" else logging.ERROR
                    log.log(level, "Server rejected event, not tried again: %s: %s", name, error)
                    return
                if tries == _TRIES_MAX:
                    log.error("Unable to write event, given up: %s: %s", name, error)
                    return
                log.info("Unable to write event, to be tried again: %s: %s", name, error)
            else:
                return
            await self._rest(_RETRY_SECONDS * (1 + _RETRY_JITTER * self._random.random()))

    async def _rest(self, seconds: float) -> None:
        self._resting += 1
        self._update_drained()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._resting -= 1
            self._update_drained()
