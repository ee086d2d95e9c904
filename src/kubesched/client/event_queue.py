"""EventQueue sends events in the background: tries again for a while, and never holds anybody up.

Upstream: staging/src/k8s.io/client-go/tools/events/event_broadcaster.go, attemptRecording;
          staging/src/k8s.io/client-go/tools/record/event.go, recordToSink (v1.36)
Differs:  when a thousand events wait the oldest is dropped, as the newest says more of how things
          are; upstream drops the newest. Those that wait for another try are among the thousand.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from kubesched.api.errors import ApiError

_WAITING_MAX: Final = 1000
_TRIES_MAX: Final = 12
_SENDERS_MAX: Final = 16
_DROPS_PER_WARNING: Final = 1000

log = logging.getLogger(__name__)


class EventStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What became of events.

    Attributes:
        sent: Written, a series' count among them.
        refused: The server did not want them.
        retried: How often one was tried again.
        given_up: Not written after all tries.
        dropped: Not written for want of room.
        waiting: Still to be written.
    """

    sent: int = 0
    refused: int = 0
    retried: int = 0
    given_up: int = 0
    dropped: int = 0
    waiting: int = 0


class _Write:
    def __init__(self, send: Callable[[], Awaitable[None]], words: str) -> None:
        self.send = send
        self.words = words
        self.tries = 0


class RetryError(Exception):
    """The server refused, but will perhaps not the next time."""


class EventQueue:
    """Writes that wait, are under way, or wait for another try."""

    def __init__(self, delay_seconds: Callable[[int], float]) -> None:
        """Set up; `run` begins.

        Args:
            delay_seconds: Returns how long to wait after so many tries.
        """
        self._delay_seconds = delay_seconds
        self._pending: deque[_Write] = deque()
        self._resting: dict[_Write, asyncio.TimerHandle] = {}
        # Senders are there as long as there is something to send.
        self._group: asyncio.TaskGroup | None = None
        self._senders = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._sent = self._refused = self._retried = self._given_up = self._dropped = 0

    def statistics(self) -> EventStatistics:
        """Return what has become of events so far."""
        return EventStatistics(
            sent=self._sent,
            refused=self._refused,
            retried=self._retried,
            given_up=self._given_up,
            dropped=self._dropped,
            waiting=len(self._pending) + len(self._resting) + self._senders,
        )

    def put(self, send: Callable[[], Awaitable[None]], words: str) -> None:
        """Have something sent some time soon; never waits.

        Args:
            send: Sends it; raises `ApiError` if the server refuses, code 0 if it does not answer.
            words: What it is, for the log.
        """
        if len(self._pending) + len(self._resting) >= _WAITING_MAX:
            self._drop_oldest()
        self._append(_Write(send, words))

    def _append(self, write: _Write) -> None:
        self._idle.clear()
        self._pending.append(write)
        self._start_sender()

    def _start_sender(self) -> None:
        if self._group is not None and self._senders < _SENDERS_MAX:
            self._senders += 1
            self._group.create_task(self._send_all(), name="sender of events")

    def _drop_oldest(self) -> None:
        self._dropped += 1
        if self._resting:
            # Whoever waits for another try has waited longest.
            oldest = next(iter(self._resting))
            self._resting.pop(oldest).cancel()
        else:
            oldest = self._pending.popleft()
        if self._dropped % _DROPS_PER_WARNING == 1:
            log.warning("Dropped %s events, as too many wait: %s", self._dropped, oldest.words)

    async def run(self) -> None:
        """Send for ever; what waits for another try is forgotten when this is cancelled."""
        try:
            async with asyncio.TaskGroup() as self._group:
                for _ in range(len(self._pending)):
                    self._start_sender()
                await asyncio.Event().wait()
        finally:
            self._group = None
            for timer in self._resting.values():
                timer.cancel()
            self._resting.clear()

    async def drain(self) -> None:
        """Wait until everything has been sent once."""
        await self._idle.wait()

    async def _send_all(self) -> None:
        try:
            while self._pending:
                await self._send(self._pending.popleft())
        finally:
            self._senders -= 1
            if not (self._pending or self._senders):
                self._idle.set()

    async def _send(self, write: _Write) -> None:
        try:
            await write.send()
        except RetryError as error:
            self._try_again(write, error)
        except ApiError as error:
            if error.code:
                # The event itself is at fault, or unwanted: it would be so again.
                self._refused += 1
                level = logging.DEBUG if error.reason == "AlreadyExists" else logging.ERROR
                log.log(level, "Server rejected event, not tried again: %s: %s", write.words, error)
            else:
                self._try_again(write, error)
        else:
            self._sent += 1

    def _try_again(self, write: _Write, error: Exception) -> None:
        write.tries += 1
        if write.tries >= _TRIES_MAX:
            self._given_up += 1
            log.error("Unable to write event, given up: %s: %s", write.words, error)
            return
        self._retried += 1
        log.info("Unable to write event, to be tried again: %s: %s", write.words, error)
        delay = self._delay_seconds(write.tries)
        timer = asyncio.get_running_loop().call_later(delay, self._rested, write)
        self._resting[write] = timer

    def _rested(self, write: _Write) -> None:
        del self._resting[write]
        self._append(write)
