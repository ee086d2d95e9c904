"""CounterVec and HistogramVec accumulate metrics cheaply; pages are formatted on request.

An observation is a dict look-up, a bisection and two additions. The number of label sets is
bounded: further ones are counted under "unexpected", so that memory is bounded.

Differs:  upstream bounds only the labels that an allow-list names; here every family is bounded.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

Labels = tuple[str, ...]
"""Label values, in the order of the family's label names."""

SERIES_MAX: Final = 2048
UNEXPECTED: Final = "unexpected"


class CounterVec:
    """Counters by label values; also used for gauges that are set.

    Attributes:
        folded: The number of additions counted under "unexpected".
    """

    __slots__ = ("_values", "folded")

    def __init__(self) -> None:
        self._values: dict[Labels, float] = {}
        self.folded = 0

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        """Add to the series of these label values."""
        known = self._values.get(labels)
        if known is None:
            labels, known = self._start(labels)
        self._values[labels] = known + amount

    def set(self, labels: Labels, value: float) -> None:
        """Replace the value of a series."""
        if labels not in self._values:
            labels, _ = self._start(labels)
        self._values[labels] = value

    def _start(self, labels: Labels) -> tuple[Labels, float]:
        if len(self._values) < SERIES_MAX:
            return labels, 0
        self.folded += 1
        labels = (UNEXPECTED,) * len(labels)
        return labels, self._values.get(labels, 0)

    def series(self) -> list[tuple[Labels, float]]:
        """Return all series, sorted by label values."""
        return sorted(self._values.items())

    def reset(self) -> None:
        """Remove all series."""
        self._values.clear()


class Distribution:
    """One series of a histogram."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """Take the inclusive upper bounds in ascending order."""
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Observe one value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[int]:
        """Return the cumulative counts for each bound, and for infinity."""
        sums, so_far = [], 0
        for count in self.counts:
            so_far += count
            sums.append(so_far)
        return sums


class HistogramVec:
    """Histograms by label values.

    Attributes:
        bounds: Upper bounds, ascending, without infinity.
        folded: The number of label sets counted under "unexpected".
    """

    __slots__ = ("_series", "bounds", "folded")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._series: dict[Labels, Distribution] = {}
        self.folded = 0

    def observe(self, value: float, labels: Labels = ()) -> None:
        """Observe one value."""
        known = self._series.get(labels)
        (known or self.of(labels)).observe(value)

    def of(self, labels: Labels) -> Distribution:
        """Return the series of these label values, created if missing; valid until `reset`."""
        known = self._series.get(labels)
        if known is not None:
            return known
        if len(self._series) >= SERIES_MAX:
            self.folded += 1
            labels = (UNEXPECTED,) * len(labels)
        return self._series.setdefault(labels, Distribution(self.bounds))

    def series(self) -> list[tuple[Labels, Distribution]]:
        """Return all series, sorted by label values."""
        return sorted(self._series.items(), key=lambda item: item[0])

    def reset(self) -> None:
        """Remove all series."""
        self._series.clear()
