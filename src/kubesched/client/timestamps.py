"""Times as Kubernetes writes them.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go, micro_time.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def second_time(nanoseconds: int) -> str:
    """Return the time in whole seconds.

    Args:
        nanoseconds: Since the epoch.
    """
    time = _EPOCH + timedelta(seconds=nanoseconds // 1_000_000_000)
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def micro_time(nanoseconds: int) -> str:
    """Return the time with six digits of a fraction.

    Args:
        nanoseconds: Since the epoch.
    """
    time = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    return f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
