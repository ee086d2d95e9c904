"""Integers as Go has them: limits, overflow, and division.

Upstream: the Go language, of which upstream's sums and products are made
"""

from typing import Annotated, Final

import msgspec

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]


def is_int64(number: int) -> bool:
    """Whether a number fits into 64 bits."""
    return INT64_MIN <= number <= INT64_MAX


def wrap(number: int) -> int:
    """Return `number` reduced to 64 bits, in two's complement."""
    if INT64_MIN <= number <= INT64_MAX:
        return number
    return ((number - INT64_MIN) & ((1 << 64) - 1)) + INT64_MIN


def quotient(dividend: int, divisor: int) -> int:
    """Divide, rounding toward zero."""
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else wrap(-whole)


def truncate(number: float) -> int:
    """Convert to int64, rounding toward zero; numbers out of range become the smallest int64."""
    return int(number) if INT64_MIN <= number < -INT64_MIN else INT64_MIN
