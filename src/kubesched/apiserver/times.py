"""Times of objects, and Clock: the current time and the random names of a server.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/names/generate.go,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go (v1.36)
Differs:  an error about a malformed time does not name the position.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Final

from kubesched.api.integers import wrap
from kubesched.api.times import micro_time, moment_at, parse_time, second_time

# Without letters that make words, and digits that look like letters.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_BILLION: Final = 1_000_000_000
_GENERATED_MAX: Final = 63
_MICROSECONDS: Final = re.compile(r":\d\d\.\d{6}(?:Z|[+-])")


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
        bits = self._random.getrandbits(128)
        text = f"{bits:032x}"
        variant = "89ab"[bits >> 62 & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

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
    nanoseconds = wrap(seconds * _BILLION)
    return moment + timedelta(microseconds=nanoseconds // 1000)


def moment_of(text: str) -> datetime:
    """Return the moment of an object's time."""
    return datetime.fromisoformat(text)


def canonical_time(text: str) -> str:
    """Return a time in UTC, to the second; raises ValueError, whose message has the text."""
    try:
        return second_time(moment_at(parse_time(text)))
    except (ValueError, OverflowError):
        raise _malformed(text, "2006-01-02T15:04:05Z") from None


def canonical_micro_time(text: str) -> str:
    """Return a time in UTC, to the microsecond.

    Raises:
        ValueError: It is malformed, or has no microseconds; the message has the text.
    """
    try:
        moment = moment_at(parse_time(text))
    except (ValueError, OverflowError):
        moment = None
    if moment is None or _MICROSECONDS.search(text) is None:
        raise _malformed(text, "2006-01-02T15:04:05.000000Z")
    return micro_time(moment)


def _malformed(text: str, example: str) -> ValueError:
    return ValueError(f'parsing time "{text}": it is none such as {example}')
