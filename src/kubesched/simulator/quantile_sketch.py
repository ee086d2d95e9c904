"""QuantileSketch tells quantiles of any number of values from a fixed number of counters.

A counter stands for the values between two powers of a base close to 1, so that any quantile is
right up to a fixed share of itself.

Invariants: `quantile` is within ACCURACY of the exact one, for values between MIN and MAX; memory
            is bounded by the number of powers between them.
"""

from __future__ import annotations

import math
from typing import Final

ACCURACY: Final = 0.01
"""How far off a quantile may be, as a share of it."""
MIN: Final = 1e-3
"""Smaller values count as 0."""
MAX: Final = 1e10
"""Larger values count as this."""

_BASE: Final = (1 + ACCURACY) / (1 - ACCURACY)
_LOG_BASE: Final = math.log(_BASE)


class QuantileSketch:
    """Counts values, which are not negative.

    Attributes:
        count: How many there were.
        total: Their sum.
        largest: The largest of them.
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
            ValueError: It is negative, or no number.
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
        """The mean, None without values."""
        return self.total / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """Return the value that a share (0 to 1) of all values do not exceed, None without values.

        It is the smallest value with that property, as far as the counters tell.
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
                # The middle, in the sense of relative error, of what the counter stands for.
                return min(2 * _BASE**power / (_BASE + 1), self.largest)
        raise AssertionError("every value is counted somewhere")

    def histogram(self, bounds: tuple[float, ...]) -> tuple[int, ...]:
        """Return how many values are below each bound and not below the one before, then the rest.

        Values close to a bound, up to the accuracy, may count on its other side.
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
