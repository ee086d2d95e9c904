"""Backoff says how long to wait before the next try, longer each time, and forgets after a while.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/wait/backoff.go, DelayWithReset (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

_FIRST_SECONDS: Final = 0.8
_MAX_SECONDS: Final = 30.0
_FACTOR: Final = 2.0
_RESET_SECONDS: Final = 120.0


class Backoff:
    """A reflector's pauses: 0.8 s, doubled up to 30 s, and up to as much again by chance."""

    def __init__(self, now: Callable[[], float], random: Random) -> None:
        """Set up.

        Args:
            now: Returns the time in seconds, from any start.
            random: Spreads the clients of a server that comes back.
        """
        self._now = now
        self._random = random
        self._began = now()
        self._next_seconds = _FIRST_SECONDS

    def step(self) -> float:
        """Return the next pause in seconds.

        The pauses begin anew every two minutes, counted from the last beginning, whether there
        were failures meanwhile or not.
        """
        now = self._now()
        if now - self._began > _RESET_SECONDS:
            self._began = now
            self._next_seconds = _FIRST_SECONDS
        seconds = self._next_seconds
        self._next_seconds = min(seconds * _FACTOR, _MAX_SECONDS)
        return seconds * (1 + self._random.random())
