"""Series and QuantileSketch summarise any number of values over virtual time in bounded memory.

A series has a fixed number of bins: when they are used up, neighbours are merged and the width of a
bin doubles. A sketch has a fixed number of counters: each covers the values between two powers of a
base close to 1, which bounds the relative error of any quantile.

Invariants: a series holds at most BINS_MAX bins; merging changes neither the sum of all bins nor
            the largest peak; series of equal width that were advanced to the same time have equal
            bins. `quantile` is within ACCURACY of the exact one, for values between MIN and MAX;
            the number of powers between them bounds the memory.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import msgspec

ACCURACY: Final = 0.01
"""The maximum relative error of a quantile."""
MIN: Final = 1e-3
"""Smaller values count as 0."""
MAX: Final = 1e10
"""Larger values count as this."""

_BASE: Final = (1 + ACCURACY) / (1 - ACCURACY)
_LOG_BASE: Final = math.log(_BASE)


class QuantileSketch:
    """Counts non-negative values; also their number, their sum and the largest."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        self._zeros = 0
        self._counts: Counter[int] = Counter()

    def add(self, value: float) -> None:
        """Count a value; raises ValueError if it is negative or NaN."""
        if not value >= 0:
            raise ValueError(f"{value} cannot be counted")
        self.count += 1
        self.total += value
        self.largest = max(self.largest, value)
        if value < MIN:
            self._zeros += 1
        else:
            self._counts[math.ceil(math.log(min(value, MAX)) / _LOG_BASE)] += 1

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
        seen = 0
        for value, count in self._values():
            seen += count
            if rank <= seen:
                return min(value, self.largest)
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
        """Return the middle of each counter's range in terms of relative error, and its count."""
        middles = [
            (2 * _BASE**power / (_BASE + 1), count) for power, count in sorted(self._counts.items())
        ]
        return [(0.0, self._zeros), *middles]


# Series.

BINS_MAX: Final = 512
_SHORTEST_BIN: Final = 0.1
"""A last bin of a smaller share of the width is part of the one before."""


class SeriesValues(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A series as data.

    Attributes:
        width_seconds: The width of a bin; the first begins at second 0, the last lasts to the end,
            between 0.1 and 1.1 times as long.
        means: Per bin, the time-weighted mean; for counts, the number per hour.
        peaks: Per bin, the largest value; for counts, the count.
    """

    width_seconds: float
    means: tuple[float, ...]
    peaks: tuple[float, ...]


class _Bins:
    """The bins of a series."""

    def __init__(self, width_seconds: float) -> None:
        if width_seconds <= 0:
            raise ValueError("a bin must have a width")
        self.width_seconds = width_seconds
        self.areas: list[float] = []
        self.peaks: list[float] = []

    def at(self, now: float) -> int:
        """Return the bin of a time, adding bins as needed."""
        at = int(now / self.width_seconds)
        while at >= BINS_MAX:
            self._merge()
            at = int(now / self.width_seconds)
        missing = at + 1 - len(self.areas)
        if missing > 0:
            self.areas += [0.0] * missing
            self.peaks += [0.0] * missing
        return at

    def _merge(self) -> None:
        areas, peaks = self.areas, self.peaks
        if len(areas) % 2:
            areas.append(0.0)
            peaks.append(0.0)
        self.areas = [areas[i] + areas[i + 1] for i in range(0, len(areas), 2)]
        self.peaks = [max(peaks[i], peaks[i + 1]) for i in range(0, len(peaks), 2)]
        self.width_seconds *= 2

    def until(self, end: float) -> list[tuple[float, float, float]]:
        """Return area, peak and length in seconds of each bin; the last one lasts to `end`.

        The rest after whole bins is a bin of its own if it is long enough for a meaningful mean.
        """
        self.at(end)
        width = self.width_seconds
        count = max(math.ceil(end / width - _SHORTEST_BIN), 1)
        areas, peaks = self.areas[:count], self.peaks[:count]
        for area, peak in zip(self.areas[count:], self.peaks[count:], strict=True):
            areas[-1] += area
            peaks[-1] = max(peaks[-1], peak)
        lengths = [width] * (count - 1) + [end - (count - 1) * width]
        return list(zip(areas, peaks, lengths, strict=True))


class Gauge:
    """A value that holds until the next one is set; means are weighted by time."""

    def __init__(self, width_seconds: float = 1.0) -> None:
        self.value = 0.0
        self.peak = 0.0
        self._since = 0.0
        self._bins = _Bins(width_seconds)
        self._area = 0.0

    def set(self, now: float, value: float) -> None:
        """Set the value from `now` on; `now` must not decrease."""
        if now != self._since or not self._bins.peaks:
            self.advance(now)
        self.value = value
        # `now` is in the last bin.
        peaks = self._bins.peaks
        if value > peaks[-1]:
            peaks[-1] = value
            self.peak = max(self.peak, value)

    def add(self, now: float, change: float) -> None:
        """Add to the value."""
        self.set(now, self.value + change)

    def advance(self, now: float) -> None:
        """Extend the current value to `now`."""
        bins = self._bins
        last = bins.at(now)
        at = int(self._since / bins.width_seconds)
        while self._since < now:
            end = now if at >= last else min((at + 1) * bins.width_seconds, now)
            area = self.value * (end - self._since)
            bins.areas[at] += area
            bins.peaks[at] = max(bins.peaks[at], self.value)
            self._area += area
            self._since = end
            at += 1

    def mean(self) -> float:
        """Return the time-weighted mean from second 0 to the last change or advance."""
        return self._area / self._since if self._since > 0 else self.value

    def values(self) -> SeriesValues:
        """Return the series up to the last change or advance."""
        bins = self._bins.until(self._since)
        return SeriesValues(
            self._bins.width_seconds,
            tuple(area / lasted if lasted > 0 else self.value for area, _, lasted in bins),
            tuple(peak for _, peak, _ in bins),
        )


class CountSeries:
    """Counts occurrences per bin, and in total."""

    def __init__(self, width_seconds: float = 1.0) -> None:
        self.total = 0
        self._bins = _Bins(width_seconds)
        self._since = 0.0

    def add(self, now: float, count: int = 1) -> None:
        """Count `count` occurrences at `now`."""
        self.total += count
        self.advance(now)
        at = self._bins.at(now)
        self._bins.areas[at] += count

    def advance(self, now: float) -> None:
        """Extend the series to `now`."""
        self._since = max(self._since, now)

    def values(self) -> SeriesValues:
        """Return rate per hour and count per bin, up to the last count or advance."""
        bins = self._bins.until(self._since)
        width = self._bins.width_seconds
        shortest = width * _SHORTEST_BIN  # if there is no whole bin
        rates = tuple(count * 3600 / max(lasted, shortest) for count, _, lasted in bins)
        return SeriesValues(width, rates, tuple(count for count, _, _ in bins))
