"""Durations as people say them.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, Final, NamedTuple

UNKNOWN: Final = "<unknown>"
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


class _Step(NamedTuple):
    """How durations below a limit are said: in a unit, and perhaps the rest in a smaller one."""

    limit_seconds: float
    unit_seconds: int
    unit: str
    rest_seconds: int = 1
    rest_unit: str = ""


_STEPS: Final = (
    _Step(2 * _MINUTE, 1, "s"),
    _Step(10 * _MINUTE, _MINUTE, "m", 1, "s"),
    _Step(3 * _HOUR, _MINUTE, "m"),
    _Step(8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    _Step(2 * _DAY, _HOUR, "h"),
    _Step(8 * _DAY, _DAY, "d", _HOUR, "h"),
    _Step(2 * _YEAR, _DAY, "d"),
    _Step(8 * _YEAR, _YEAR, "y", _DAY, "d"),
    _Step(math.inf, _YEAR, "y"),
)


def since(text: Any, now: datetime) -> str:
    """Return how long a time is ago."""
    if not text:
        return UNKNOWN
    return human_duration((now - datetime.fromisoformat(text)).total_seconds())


def human_duration(duration_seconds: float) -> str:
    """Return a duration with two or three digits."""
    seconds = int(duration_seconds)
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    step = next(step for step in _STEPS if seconds < step.limit_seconds)
    rest = seconds % step.unit_seconds // step.rest_seconds if step.rest_unit else 0
    return f"{seconds // step.unit_seconds}{step.unit}" + (
        f"{rest}{step.rest_unit}" if rest else ""
    )
