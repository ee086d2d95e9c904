"""Integer arithmetic with the overflow and division of Go's int64.

Upstream: the Go language; the sums and products of pkg/scheduler/framework/plugins/noderesources
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

INT64_MAX: Final = (1 << 63) - 1
PERCENT: Final = 100
_PERCENT_EXACT_MAX: Final = INT64_MAX // PERCENT


def wrap(number: int) -> int:
    """Return `number` reduced to 64 bits, in two's complement."""
    if -INT64_MAX - 1 <= number <= INT64_MAX:
        return number
    return ((number + INT64_MAX + 1) & ((1 << 64) - 1)) - INT64_MAX - 1


def quotient(dividend: int, divisor: int) -> int:
    """Divide, rounding toward zero."""
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else wrap(-whole)


def percent(part: int, whole: int) -> int:
    """Return `part` in percent of `whole`, rounded toward zero."""
    if 0 <= part <= _PERCENT_EXACT_MAX and whole > 0:
        return part * PERCENT // whole
    return quotient(wrap(part * PERCENT), whole)


def divide(dividends: NDArray[np.float64], divisors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return whole quotients, rounded down. Overwrites the dividends.

    Floats divide much faster than integers. The result is exact for whole numbers, dividends up to
    100 times a plain amount and plain divisors: such a dividend is below 2**53, and a quotient that
    is not whole differs from the next whole number by far more than the rounding error.
    """
    dividends /= divisors
    return np.floor(dividends, out=dividends)


def weighted_mean(columns: NDArray[np.float64], weights: Sequence[int]) -> NDArray[np.int64]:
    """Return the weighted mean per row of columns x rows, rounded down. Overwrites the first."""
    total: NDArray[np.float64] = columns[0]
    if weights[0] != 1:
        total *= weights[0]
    for column, weight in zip(columns[1:], weights[1:], strict=True):
        total += column if weight == 1 else column * weight
    weight_sum = sum(weights)
    if weight_sum & weight_sum - 1:
        total /= weight_sum
    else:
        # Multiplying is faster, and exact for a power of two.
        total *= 1 / weight_sum
    return total.astype(np.int64)


def truncate(number: float) -> int:
    """Convert to int64, rounding toward zero; numbers out of range become the smallest int64."""
    return int(number) if -(2.0**63) <= number < 2.0**63 else -INT64_MAX - 1
