"""QuantileSketch estimates quantiles of any number of values with a fixed number of counters.

Each counter covers the values between two powers of a base close to 1, which bounds the relative
error of any quantile.

Invariants: `quantile` is within ACCURACY of the exact one, for values between MIN and MAX; memory
            is bounded by the number of powers between them.
"""

from __future__ import annotations

import math
from typing import Final

ACCURACY: Final = 0.01
"""The maximum relative error of a quantile."""
MIN: Final = 1e-3
"""Smaller values count as 0."""
MAX: Final = 1e10
"""Larger values count as this."""

_BASE: Final = (1 + ACCURACY) / (1 - ACCURACY)
_LOG_BASE: Final = math.log(_BASE)


class QuantileSketch:
    """Counts non-negative values.

    Attributes:
        count: Number of values.
        total: Their sum.
        largest: The largest value.
    """

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        self._zeros = 0
        self._counts: dict[int, int] = {}

    def add(self, value: float) -> None:
        """Count a value.

        Raises:
            ValueError: if it is negative or NaN.
        """
        if not value >= 0:
            raise ValueError(f"{value} cannot be counted")
        self.count += 1
        self.total += value
        self.largest = max(self.largest, value)
        if value < MIN:
            self._zeros += 1
        else:
            power = math.ceil(math.log(min(value, MAX)) / _LOG_BASE)
            self._counts[power] = self._counts.get(power, 0) + 1

    @property
    def mean(self) -> float | None:
        """The mean; None without values."""
        return self.total / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """Return the smallest value that a share (0 to 1) of all values do not exceed.

        It is an estimate within the accuracy, and None without values.
        """
        if not self.count:
            return None
        rank = max(math.ceil(share * self.count), 1)
        seen = self._zeros
        if rank <= seen:
            return 0.0
        for power in sorted(self._counts):
            seen += self._counts[power]
            if rank <= seen:
                # The middle of the counter's range in terms of relative error.
                return min(2 * _BASE**power / (_BASE + 1), self.largest)
        raise AssertionError("every value is counted somewhere")

    def histogram(self, bounds: tuple[float, ...]) -> tuple[int, ...]:
        """Return the number of values between successive bounds, then those above the last.

        Values within the accuracy of a bound may be counted on its other side.
        """
        found = [0] * (len(bounds) + 1)
        for value, count in self._values():
            at = next((i for i, bound in enumerate(bounds) if value < bound), len(bounds))
            found[at] += count
        return tuple(found)

    def _values(self) -> list[tuple[float, int]]:
        middles = [
            (2 * _BASE**power / (_BASE + 1), count) for power, count in sorted(self._counts.items())
        ]
        return [(0.0, self._zeros), *middles]
