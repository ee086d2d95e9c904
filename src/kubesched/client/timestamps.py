"""Times in Kubernetes' formats: RFC 3339 in seconds or microseconds.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go, micro_time.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def second_time(nanoseconds: int) -> str:
    """Return the time in whole seconds.

    Args:
        nanoseconds: Since the epoch.
    """
    return f"{_second(nanoseconds // 1_000_000_000)}Z"


def micro_time(nanoseconds: int) -> str:
    """Return the time in microseconds.

    Args:
        nanoseconds: Since the epoch.
    """
    seconds, microseconds = divmod(nanoseconds // 1000, 1_000_000)
    return f"{_second(seconds)}.{microseconds:06d}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    """Return the formatted second; cached, as many events share one."""
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"
