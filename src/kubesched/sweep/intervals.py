"""Means with confidence intervals, by Student's t distribution.

For whole degrees of freedom the distribution is a finite sum of powers of a cosine (Abramowitz and
Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4), which is inverted by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, stdev
from typing import Final

import msgspec

CONFIDENCE: Final = 0.95
_BISECTIONS: Final = 60


class SweepMean(msgspec.Struct, frozen=True):
    """The mean of the values of several seeds.

    Attributes:
        n: The number of values.
        mean: Their mean; like the others, None if there are too few values.
        stdev: Their standard deviation, of a sample.
        half_width: Half of the width of the 95 % confidence interval around the mean.
    """

    n: int
    mean: float | None
    stdev: float | None
    half_width: float | None


def mean_of(values: Sequence[float]) -> SweepMean:
    """Return the mean of independent values, with the interval that a normal distribution gives."""
    n = len(values)
    if n < 2:
        return SweepMean(n, fmean(values) if values else None, None, None)
    deviation = stdev(values)
    return SweepMean(n, fmean(values), deviation, t_quantile(n - 1) * deviation / math.sqrt(n))


@lru_cache(maxsize=64)
def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the t that the absolute value exceeds with probability 1 - confidence.

    Args:
        freedom: Degrees of freedom, at least 1.
        confidence: Between 0 and 1.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return math.tan(high) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """Return the probability that |t| is at most tan(angle) * sqrt(freedom)."""
    squared = math.cos(angle) ** 2
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + is_odd, freedom - 1, 2):
        term *= squared * (k - 1) / k
        total += term
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if is_odd else total
