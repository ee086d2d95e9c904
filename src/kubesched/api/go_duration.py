"""Durations as Go prints them: `1s`, `1m30s`, `500ms`.

Upstream: time.Duration.String of Go
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

_NANOSECONDS: Final = 10**9
_SMALL_UNITS: Final = ((10**6, "ms"), (10**3, "µs"), (1, "ns"))


def go_duration(seconds: float) -> str:
    """Return the text for a duration."""
    nanoseconds = round(seconds * _NANOSECONDS)
    if nanoseconds < 0:
        return f"-{go_duration(-seconds)}"
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < _NANOSECONDS:
        size, unit = next(entry for entry in _SMALL_UNITS if nanoseconds >= entry[0])
        return _decimal(nanoseconds, size) + unit
    minutes, rest = divmod(nanoseconds, 60 * _NANOSECONDS)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{text}{_decimal(rest, _NANOSECONDS)}s"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}"
