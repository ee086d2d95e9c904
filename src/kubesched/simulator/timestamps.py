"""Timestamps of virtual time, as Kubernetes writes them.

Invariants: second 0 is the start of a fixed year, so that the same seed gives the same timestamps.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from kubesched.api.times import parse_time, second_time

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_NANOSECONDS: Final = 1_000_000_000
SECONDS_MAX: Final = 86_400.0 * 365 * 100


def timestamp(seconds: float) -> str:
    """Return the RFC 3339 time of a virtual second, in whole seconds as metav1.Time."""
    return _timestamp(int(seconds))


# The fields of one object mostly get the same time.
@lru_cache(maxsize=16)
def _timestamp(seconds: int) -> str:
    return second_time(EPOCH + timedelta(seconds=seconds))


def seconds_of(text: str) -> float:
    """Return the virtual second of an RFC 3339 time.

    Raises:
        ValueError: if the text is not an RFC 3339 time.
    """
    return parse_time(text) / _NANOSECONDS - EPOCH.timestamp()
