"""Integers that overflow and divide as Go's int64 does, for the rare row where that shows.

Upstream: the Go language; every sum and product of pkg/scheduler/framework/plugins/noderesources
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

INT64_MAX: Final = (1 << 63) - 1
PERCENT: Final = 100
PERCENT_EXACT_MAX: Final = INT64_MAX // PERCENT
"""The largest amount whose hundredfold is an int64."""


def wrap(number: int) -> int:
    """Return what is left of `number` in 64 bits, two's complement."""
    if -INT64_MAX - 1 <= number <= INT64_MAX:
        return number
    return ((number + INT64_MAX + 1) & ((1 << 64) - 1)) - INT64_MAX - 1


def quotient(dividend: int, divisor: int) -> int:
    """Divide, rounding toward zero."""
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else wrap(-whole)


def percent(part: int, whole: int) -> int:
    """Return how many hundredths of `whole` the amount `part` is."""
    if 0 <= part <= PERCENT_EXACT_MAX and whole > 0:
        return part * PERCENT // whole
    return quotient(wrap(part * PERCENT), whole)


def truncate(number: float) -> int:
    """Convert to an integer, rounding toward zero; what does not fit becomes the smallest one."""
    return int(number) if -(2.0**63) <= number < 2.0**63 else -INT64_MAX - 1
