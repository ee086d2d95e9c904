"""Flushing moves pods whose waiting time is over out of backoffQ and unschedulablePods.

Upstream checks every second and every thirty seconds. Here a timer fires at the first of these
moments at which there is a pod to move, so an idle queue costs nothing.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, Run (v1.36)
Invariants: pods move in the same second as upstream.
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import floor
from typing import Final

from kubesched.queue.scheduling_queue import SchedulingQueue

_UNSCHEDULABLE_SECONDS: Final = 30.0
"""The interval at which upstream requeues pods that have waited too long."""


class Flushing:
    """The two timers of one queue, on the running event loop."""

    def __init__(self, queue: SchedulingQueue, wake: Callable[[], None]) -> None:
        """Set up without a timer; `wake` is called after every flush."""
        self._queue = queue
        self._wake = wake
        self._began = 0.0
        self._backoff: asyncio.TimerHandle | None = None
        self._unschedulable: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timers."""
        self._began = asyncio.get_running_loop().time()
        self._queue.on_backoff = self._plan_backoff
        self._queue.on_unschedulable = self._plan_unschedulable
        self._plan_backoff()
        self._plan_unschedulable(self._queue.late_after())

    def stop(self) -> None:
        """Cancel the timers."""
        self._queue.on_backoff = lambda: None
        self._queue.on_unschedulable = lambda _late_after: None
        for timer in (self._backoff, self._unschedulable):
            if timer is not None:
                timer.cancel()
        self._backoff = self._unschedulable = None

    # Backoff: at whole seconds.

    def _plan_backoff(self) -> None:
        loop, planned = asyncio.get_running_loop(), self._backoff
        now = loop.time()
        if planned is not None and planned.when() <= floor(now) + 1.0:
            # The next second is the earliest possible.
            return
        at = self._queue.next_backoff_flush(now)
        if at is None or (planned is not None and planned.when() <= at):
            return
        if planned is not None:
            planned.cancel()
        self._backoff = loop.call_at(at, self._flush_backoff)

    def _flush_backoff(self) -> None:
        self._backoff = None
        self._queue.flush_backoff(asyncio.get_running_loop().time())
        self._wake()
        self._plan_backoff()

    # Unschedulable pods: every thirty seconds since the start.

    def _plan_unschedulable(self, late_after: float | None) -> None:
        planned = self._unschedulable
        if late_after is None or (planned is not None and planned.when() <= late_after):
            return
        loop = asyncio.get_running_loop()
        rounds = floor((max(late_after, loop.time()) - self._began) / _UNSCHEDULABLE_SECONDS) + 1
        at = self._began + rounds * _UNSCHEDULABLE_SECONDS
        if planned is not None and planned.when() <= at:
            return
        if planned is not None:
            planned.cancel()
        self._unschedulable = loop.call_at(at, self._flush_unschedulable)

    def _flush_unschedulable(self) -> None:
        self._unschedulable = None
        self._queue.flush_unschedulable(asyncio.get_running_loop().time())
        self._wake()
        self._plan_unschedulable(self._queue.late_after())
