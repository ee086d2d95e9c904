"""Clock: the current time and the random names of a server.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/names/generate.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Final
from uuid import UUID

from kubesched.api.integers import wrap
from kubesched.api.times import second_time

# Without letters that make words, and digits that look like letters.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_GENERATED_MAX: Final = 63


class Clock:
    """The current time, and random names and identities."""

    def __init__(self, now: Callable[[], datetime], random: Random) -> None:
        """Set up; `now` returns the time in UTC, and identities and names come from `random`."""
        self.now = now
        self._random = random

    def timestamp(self, after_seconds: int = 0) -> str:
        """Return the current time, or a later one, in whole seconds."""
        return second_time(after(self.now(), after_seconds))

    def uid(self) -> str:
        """Return a new identity, a random UUID."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def secret(self) -> str:
        """Return a random text of 256 bits; it is secret if the random source is the system's."""
        return f"{self._random.getrandbits(256):064x}"

    def name_after(self, prefix: str) -> str:
        """Return a name with a prefix and a random suffix."""
        suffix = "".join(self._random.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
        return prefix[: _GENERATED_MAX - _SUFFIX_LENGTH] + suffix

    def between(self, low: float, high: float) -> float:
        """Return a random number between two."""
        return self._random.uniform(low, high)


def after(moment: datetime, seconds: int) -> datetime:
    """Return a moment some seconds later; overflows as Go's 64-bit nanoseconds do."""
    nanoseconds = wrap(seconds * 1_000_000_000)
    return moment + timedelta(microseconds=nanoseconds // 1000)
