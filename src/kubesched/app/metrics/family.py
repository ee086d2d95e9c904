"""Family describes a metric: name, type, labels, help and buckets."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from kubesched.api.go_text import go_float
from kubesched.app.metrics.accumulators import CounterVec, Distribution, HistogramVec, Labels


class MetricType(StrEnum):
    """The type of a metric."""

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
        made = (
            CounterMetricFamily(self.name, self.help)
            if self.kind is MetricType.COUNTER
            else GaugeMetricFamily(self.name, self.help)
        )
        for labels, value in series:
            made.add_sample(self.name, self._named(labels), value)
        return made

    def histogram(self, series: Iterable[tuple[Labels, Distribution]]) -> Metric:
        """Return a histogram with these series."""
        made = HistogramMetricFamily(self.name, self.help)
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

    def _named(self, values: Labels) -> dict[str, str]:
        return dict(zip(self.labels, values, strict=True))


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return exponential bounds, multiplied one after the other as upstream does."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)
