"""Metric families, and the counters and histograms that accumulate their values.

An observation is a dict look-up, a bisection and two additions; pages are formatted on request. The
number of label sets is bounded: further ones are counted under "unexpected", so that memory is
bounded. The families are in `families.txt`.

Upstream: pkg/scheduler/metrics/metrics.go,
          pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go (v1.36)
Differs:  upstream bounds only the labels that an allow-list names; here every family is bounded.
          The families in `ABSENT` are missing, for the reasons given in the table.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from enum import StrEnum
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from kubesched.api.go_text import go_float
from kubesched.framework.services import (
    BindingConditionsStatus,
    PluginObserver,
    VolumeSchedulingStage,
)

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

Labels = tuple[str, ...]
"""Label values, in the order of the family's label names."""

SERIES_MAX: Final = 2048
UNEXPECTED: Final = "unexpected"


class CounterVec:
    """Counters by label values; also used for gauges that are set.

    `folded` is the number of additions counted under "unexpected".
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

    def observe(self, value: float, times: int = 1) -> None:
        """Observe one value, or the same several times."""
        self.counts[bisect_left(self._bounds, value)] += times
        self.total += value * times

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

    def observe(self, value: float, labels: Labels = (), times: int = 1) -> None:
        """Observe one value, or the same several times."""
        known = self._series.get(labels)
        (known or self.of(labels)).observe(value, times)

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


# Families.


class MetricType(StrEnum):
    """A type of metrics, as the text format names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(msgspec.Struct, frozen=True):
    """The description of a metric.

    Attributes:
        name: With the suffix `_total` if it is a counter.
        kind: Its type.
        labels: Label names, in the order in which label values are given.
        help: The HELP text, stability first.
        bounds: Upper bounds of a histogram's buckets, without infinity.
    """

    name: str
    kind: MetricType
    labels: tuple[str, ...]
    help: str
    bounds: tuple[float, ...] = ()

    def metric(self, series: Iterable[tuple[Labels, float]]) -> Metric:
        """Return a counter or gauge with these series."""
        made = self._empty()
        for labels, value in series:
            made.add_sample(self.name, self._named(labels), value)
        return made

    def histogram(self, series: Iterable[tuple[Labels, Distribution]]) -> Metric:
        """Return a histogram with these series."""
        made = self._empty()
        bounds = [*map(go_float, self.bounds), "+Inf"]
        for values, distribution in series:
            labels = self._named(values)
            sums = distribution.cumulative()
            for bound, count in zip(bounds, sums, strict=True):
                made.add_sample(f"{self.name}_bucket", {**labels, "le": bound}, count)
            made.add_sample(f"{self.name}_sum", labels, distribution.total)
            made.add_sample(f"{self.name}_count", labels, sums[-1])
        return made

    def of(self, held: CounterVec | HistogramVec) -> Metric:
        """Return the metric of an accumulator."""
        if isinstance(held, HistogramVec):
            return self.histogram(held.series())
        return self.metric(held.series())

    def _empty(self) -> Metric:
        # Only pages need it, and with its HTTP server it takes a twentieth of a start's imports.
        from prometheus_client.metrics_core import Metric  # noqa: PLC0415

        return Metric(self.name.removesuffix("_total"), self.help, self.kind)

    def _named(self, values: Labels) -> dict[str, str]:
        return dict(zip(self.labels, values, strict=True))


def _bounds(text: str) -> tuple[float, ...]:
    """Return bounds: as listed, or multiplied one after the other as upstream does."""
    words = text.split()
    if words[:1] != ["exponential"]:
        return tuple(map(float, words))
    start, factor, count = words[1:]
    bounds = [float(start)]
    while len(bounds) < int(count):
        bounds.append(bounds[-1] * float(factor))
    return tuple(bounds)


def _read_table() -> tuple[dict[str, Family], dict[str, str]]:
    """Return the families by name, and the reasons of those that are missing."""
    families: dict[str, Family] = {}
    absent: dict[str, str] = {}
    table = files(__package__).joinpath("families.txt").read_text(encoding="utf-8")
    for entry in re.findall(r"^\w.*\n(?:  .*\n)+", table, re.MULTILINE):
        line, *texts = entry.splitlines()
        text = " ".join(part.strip() for part in texts)
        declared, _, bounds = line.partition(":")
        kind, name, *labels = declared.split()
        if kind == "absent":
            absent |= dict.fromkeys((name, *labels), text)
        else:
            kind_ = MetricType(kind)
            families[name] = Family(name, kind_, tuple(labels), text, _bounds(bounds))
    return families, absent


FAMILIES, ABSENT = _read_table()
"""The families by name; and those of kube-scheduler that are missing, with the reasons."""


class Accumulators:
    """The counters and histograms of families that share the beginning of their names."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._held: dict[Family, CounterVec | HistogramVec] = {}

    def family(self, name: str) -> Family:
        """Return a family by the rest of its name."""
        return FAMILIES[self._prefix + name]

    def counter(self, name: str) -> CounterVec:
        """Create the counter of a family; one without labels exists from the start."""
        held = self._held[self.family(name)] = CounterVec()
        _start(self.family(name), held)
        return held

    def histogram(self, name: str) -> HistogramVec:
        """Create the histogram of a family; one without labels exists from the start."""
        family = self.family(name)
        held = self._held[family] = HistogramVec(family.bounds)
        _start(family, held)
        return held

    @property
    def folded(self) -> int:
        """The number of observations counted under "unexpected" because of the bound."""
        return sum(held.folded for held in self._held.values())

    def reset(self) -> None:
        """Reset the counts."""
        for family, held in self._held.items():
            held.reset()
            _start(family, held)

    def collect(self) -> list[Metric]:
        """Return every family."""
        return [family.of(held) for family, held in self._held.items()]


def _start(family: Family, held: CounterVec | HistogramVec) -> None:
    if not family.labels:
        held.of(()) if isinstance(held, HistogramVec) else held.add((), 0)


# Counts of plugin evaluations.


class PluginTallies:
    """The accumulators of plugins of all profiles."""

    def __init__(self, own: Accumulators) -> None:
        self.claim_creates = own.counter("resourceclaim_creates_total")
        self.binding_conditions = own.counter("dra_bindingconditions_allocations_total")
        self.binding_waits = own.histogram("dra_bindingconditions_wait_duration_seconds")
        self.volume_errors = own.counter("volume_scheduling_stage_error_total")


class PluginCounts(PluginObserver):
    """The `PluginObserver` of one profile.

    `unsettled` counts failures in filtering, which do not count if the cycle starts over.
    """

    def __init__(self, scheduler_name: str, tallies: PluginTallies) -> None:
        self.unsettled = 0
        self._name = scheduler_name
        self._tallies = tallies

    def settle(self) -> None:
        """Count the unsettled failures."""
        if self.unsettled:
            self._tallies.volume_errors.add(
                (VolumeSchedulingStage.PREDICATE.value,), self.unsettled
            )
            self.unsettled = 0

    def resource_claim_create_requested(self, *, is_success: bool) -> None:
        """Count a claim."""
        self._tallies.claim_creates.add(("success" if is_success else "failure",))

    def binding_conditions_awaited(
        self, driver: str, status: BindingConditionsStatus, seconds: float
    ) -> None:
        """Observe how long the pod waited for a device."""
        self._tallies.binding_waits.observe(seconds, (self._name, driver, status.value))

    def binding_conditions_used(self, driver: str, status: BindingConditionsStatus) -> None:
        """Count a device."""
        self._tallies.binding_conditions.add((self._name, driver, status.value))

    def volume_scheduling_failed(self, stage: VolumeSchedulingStage) -> None:
        """Count a failure; in filtering only once the cycle continues."""
        if stage is VolumeSchedulingStage.PREDICATE:
            self.unsettled += 1
        else:
            self._tallies.volume_errors.add((stage.value,))
