"""Metric families, and the counters and histograms that accumulate their values.

An observation is a dict look-up, a bisection and two additions; pages are formatted on request. The
families are in `families.txt`.

Upstream: pkg/scheduler/metrics/metrics.go,
          pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go (v1.36)
Differs:  the families in `ABSENT` are missing, for the reasons given in the table.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING

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
        return list(accumulate(self.counts))


class HistogramVec(dict[Labels, Distribution]):
    """A histogram's series by label values; a missing one is created when it is looked up."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """Take the upper bounds of the buckets, ascending, without infinity."""
        super().__init__()
        self._bounds = bounds

    def __missing__(self, labels: Labels) -> Distribution:
        made = self[labels] = Distribution(self._bounds)
        return made


# Families.


class MetricType(StrEnum):
    """A type of metrics, as the text format names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(msgspec.Struct, frozen=True):
    """The description of a metric; the name of a counter ends in `_total`.

    `labels` are names, in the order in which label values are given. `help` has the stability
    first, `bounds` are the upper bounds of a histogram's buckets, without infinity.
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

    def of(self, held: Counter[Labels] | HistogramVec) -> Metric:
        """Return the metric of an accumulator, its series sorted by label values."""
        if isinstance(held, HistogramVec):
            return self.histogram(sorted(held.items()))
        return self.metric(sorted(held.items()))

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
        self._held: dict[Family, Counter[Labels] | HistogramVec] = {}

    def family(self, name: str) -> Family:
        """Return a family by the rest of its name."""
        return FAMILIES[self._prefix + name]

    def counter(self, name: str) -> Counter[Labels]:
        """Return the counter of a family, created if missing."""
        held = self._held.setdefault(self.family(name), Counter())
        assert isinstance(held, Counter), f"{name} is a histogram"
        _start(self.family(name), held)
        return held

    def histogram(self, name: str) -> HistogramVec:
        """Return the histogram of a family, created if missing."""
        family = self.family(name)
        held = self._held.setdefault(family, HistogramVec(family.bounds))
        assert isinstance(held, HistogramVec), f"{name} is a counter"
        _start(family, held)
        return held

    def reset(self) -> None:
        """Reset the counts."""
        for family, held in self._held.items():
            held.clear()
            _start(family, held)

    def collect(self) -> list[Metric]:
        """Return every family."""
        return [family.of(held) for family, held in self._held.items()]


def _start(family: Family, held: Counter[Labels] | HistogramVec) -> None:
    """Create the series of a family without labels, which exists from the start."""
    if family.labels:
        return
    if isinstance(held, HistogramVec):
        held.setdefault((), Distribution(family.bounds))
    else:
        held.setdefault((), 0)


# Counts of plugin evaluations.


class PluginCounts(PluginObserver):
    """The `PluginObserver` of one profile.

    `unsettled` counts failures in filtering, which do not count if the cycle starts over.
    """

    def __init__(self, scheduler_name: str, own: Accumulators) -> None:
        """Set up; `own` has the metrics of the scheduler."""
        self.unsettled = 0
        self._name = scheduler_name
        self._claim_creates = own.counter("resourceclaim_creates_total")
        self._binding_conditions = own.counter("dra_bindingconditions_allocations_total")
        self._binding_waits = own.histogram("dra_bindingconditions_wait_duration_seconds")
        self._volume_errors = own.counter("volume_scheduling_stage_error_total")

    def settle(self) -> None:
        """Count the unsettled failures."""
        if self.unsettled:
            self._volume_errors[VolumeSchedulingStage.PREDICATE.value,] += self.unsettled
            self.unsettled = 0

    def resource_claim_create_requested(self, *, is_success: bool) -> None:
        """Count a claim."""
        self._claim_creates["success" if is_success else "failure",] += 1

    def binding_conditions_awaited(
        self, driver: str, status: BindingConditionsStatus, seconds: float
    ) -> None:
        """Observe how long the pod waited for a device."""
        self._binding_waits[self._name, driver, status.value].observe(seconds)

    def binding_conditions_used(self, driver: str, status: BindingConditionsStatus) -> None:
        """Count a device."""
        self._binding_conditions[self._name, driver, status.value] += 1

    def volume_scheduling_failed(self, stage: VolumeSchedulingStage) -> None:
        """Count a failure; in filtering only once the cycle continues."""
        if stage is VolumeSchedulingStage.PREDICATE:
            self.unsettled += 1
        else:
            self._volume_errors[stage.value,] += 1
