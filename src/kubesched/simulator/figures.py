"""Numbers, shares and durations as people read them."""

from __future__ import annotations


def number(value: float) -> str:
    """Return a number formatted with three significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{value * 100:.3g} %"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit of which it has at least one."""
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1000:.3g} ms" if seconds else "0 s"
