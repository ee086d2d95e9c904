"""WorkQueue reconciles objects that have changed, once for many changes.

Upstream: staging/src/k8s.io/client-go/util/workqueue (v1.36)
Invariants: an object that is added while it is reconciled is reconciled again.
Differs:  failures are retried after a second, without backoff.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from kubesched.api.errors import ApiError
from kubesched.cluster.server import Watching
from kubesched.cluster.store import Key

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
# The number of objects that are reconciled before other tasks run.
_BATCH: Final = 50
_PAUSE_SECONDS: Final = 0.05

Pause = Callable[[], float]


def short_pause() -> float:
    """Return the seconds between a change and its reconciliation."""
    return _PAUSE_SECONDS


class WorkQueue:
    """Keys in the order in which they were added."""

    def __init__(self, reconcile: Callable[[Key], None], pause: Pause = short_pause) -> None:
        """Start empty.

        `reconcile` is called with each key; if it raises an ApiError, it is called again. `pause`
        draws the seconds from a change to the controller's reaction.
        """
        self._reconcile = reconcile
        self._pause = pause
        self._keys: dict[Key, None] = {}
        self._soon: dict[Key, asyncio.TimerHandle] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._is_due = False
        self._is_stopped = False

    def add(self, key: Key) -> None:
        """Reconcile an object as soon as the loop is free."""
        self._keys[key] = None
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._work)

    def add_soon(self, key: Key) -> None:
        """Reconcile an object after the pause; calls in between have no effect."""
        if key not in self._soon:
            loop = asyncio.get_running_loop()
            self._soon[key] = loop.call_later(self._pause(), self._fall_due, self._soon, key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Reconcile an object after some seconds, or at an earlier time that is set already."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._fall_due, self._timers, key)

    def stop(self) -> None:
        """Cancel what is due; nothing is reconciled any more."""
        self._is_stopped = True
        for timer in (*self._timers.values(), *self._soon.values()):
            timer.cancel()

    def _fall_due(self, timers: dict[Key, asyncio.TimerHandle], key: Key) -> None:
        del timers[key]
        self.add(key)

    def _work(self) -> None:
        self._is_due = False
        if self._is_stopped:
            return
        for key in tuple(self._keys)[:_BATCH]:
            del self._keys[key]
            try:
                self._reconcile(key)
            except ApiError as error:
                log.info("%s %s/%s: %s", *key, error)
                self.add_after(key, _RETRY_SECONDS)
        if self._keys and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._work)


# Controllers around a queue.


class Controller(Watching, ABC):
    """Reconciles objects from `start` to `stop`; subclasses set what is watched, and add keys."""

    def __init__(self, pause: Pause = short_pause) -> None:
        """Start with an empty queue; see `WorkQueue`."""
        self._queue = WorkQueue(self._reconcile, pause)

    @abstractmethod
    def _reconcile(self, key: Key) -> None:
        """Bring an object closer to the state it should have; called again after an ApiError."""

    def stop(self) -> None:
        """Stop watching and reconciling."""
        super().stop()
        self._queue.stop()
