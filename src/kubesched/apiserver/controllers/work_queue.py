"""WorkQueue has objects looked at that may need something done, each once for many calls.

Upstream: staging/src/k8s.io/client-go/util/workqueue (v1.36)
Invariants: an object that is named while it is looked at is looked at again.
Differs:  what fails is tried again after a second, without backing off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kubesched.api.errors import ApiError
from kubesched.cluster.store import Key

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
# So many are looked at before others have their turn.
_BATCH: Final = 50


class WorkQueue:
    """Keys in the order in which they were named."""

    def __init__(self, reconcile: Callable[[Key], None]) -> None:
        """Take who looks at objects; it may raise an ApiError, to be asked again later."""
        self._reconcile = reconcile
        self._keys: dict[Key, None] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._is_due = False
        self._is_stopped = False

    def add(self, key: Key) -> None:
        """Have an object looked at soon."""
        self._keys[key] = None
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._work)

    def add_after(self, key: Key, seconds: float) -> None:
        """Have an object looked at after a while; an earlier moment that was named stays."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._fall_due, key)

    def stop(self) -> None:
        """Do nothing more."""
        self._is_stopped = True
        for timer in self._timers.values():
            timer.cancel()

    def _fall_due(self, key: Key) -> None:
        del self._timers[key]
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
