"""Pages of metrics: /metrics, /metrics/slis and /metrics/resources.

Plugins may register metrics of prometheus_client in the registry; /metrics shows them too.

Numbers are written as Go writes them. The bounds of buckets are label values, so Prometheus would
take `le="1"` and `le="1.0"` for two series.

Upstream: component-base/metrics/http.go, cmd/kube-scheduler/app/server.go;
          github.com/prometheus/common/expfmt, pkg/scheduler/metrics/resources/resources.go (v1.36)
Differs:  metrics are not offered in protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from kubesched.api.core import FINISHED, Pod
from kubesched.api.go_text import go_float
from kubesched.api.pod_requests import Amounts, pod_limit_amounts, pod_request_amounts
from kubesched.api.quantity import Amount
from kubesched.api.resource_names import is_huge_page_resource_name
from kubesched.app.metrics.exposure import EVERYTHING, Exposure
from kubesched.app.metrics.family import FAMILIES, Labels
from kubesched.app.metrics.process_metrics import (
    ComponentMetrics,
    HealthMetrics,
    OperatingSystemMetrics,
    RequestMetrics,
    StartTime,
)
from kubesched.app.metrics.scheduler_metrics import SchedulerMetrics
from kubesched.client.leader_election import ElectionStatistics
from kubesched.config.feature_gates import FeatureGates

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import CollectorRegistry

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_BOUND: Final = "le"


class MetricsCollector(Protocol):
    """A source of metrics."""

    def collect(self) -> Iterable[Metric]:
        """Return the current values."""


class MetricsPage:
    """The page of a path such as /metrics: metrics of several sources."""

    def __init__(
        self,
        sources: Iterable[MetricsCollector],
        reset: Callable[[], None] = lambda: None,
        exposure: Exposure = EVERYTHING,
    ) -> None:
        """Set up; DELETE calls `reset`, and `exposure` says what to hide."""
        self._sources = tuple(sources)
        self._reset = reset
        self._exposure = exposure

    def page(self) -> tuple[str, bytes]:
        """Return content type and text, whatever the client accepts."""
        return CONTENT_TYPE, write_page(self._exposure.shown(self.collect()))

    def collect(self) -> list[Metric]:
        """Return all metrics, hidden ones included."""
        return [metric for source in self._sources for metric in source.collect()]

    def reset(self) -> None:
        """Reset the metrics."""
        self._reset()


class Pages:
    """All metrics of a scheduler process, and the pages that show them.

    Attributes:
        scheduler: The instruments for `assemble`.
        requests: The observer for connections.
        health: Its `observe` gets the results of health checks.
        election: Returns the elector's statistics; None without one.
    """

    def __init__(
        self,
        gates: FeatureGates,
        clock: Callable[[], float],
        draw: Callable[[], float],
        exposure: Exposure = EVERYTHING,
    ) -> None:
        """Set up; `clock` and `draw` as of `SchedulerMetrics`."""
        self._exposure = exposure
        self.scheduler = SchedulerMetrics(clock, draw)
        self.requests = RequestMetrics()
        self.health = HealthMetrics()
        self.election: Callable[[], ElectionStatistics | None] = lambda: None
        self._counted = MetricsPage((self.scheduler, self.requests))
        component = ComponentMetrics(
            gates,
            self._folded,
            len(exposure.disabled),
            lambda: self.election(),  # noqa: PLW0108 - set later
        )
        own = (self._counted, component, OperatingSystemMetrics())
        self.metrics = MetricsPage((*own, self), self._reset, exposure)
        self.slis = MetricsPage((self.health, StartTime()), self.health.reset, exposure)

    @cached_property
    def registry(self) -> CollectorRegistry:
        """For plugins' own metrics."""
        from prometheus_client.registry import CollectorRegistry  # noqa: PLC0415

        return CollectorRegistry()

    def collect(self) -> Iterable[Metric]:
        """Return the plugins' own metrics."""
        return self.registry.collect()

    def resources(self, pods: PodResources) -> MetricsPage:
        """Return the page of requests and limits of pods."""
        return MetricsPage((pods,), exposure=self._exposure)

    def _folded(self) -> float:
        folded = self.scheduler.folded + self.requests.folded
        if not self._exposure.allowed:
            return folded
        return folded + self._exposure.unexpected(self._counted.collect())

    def _reset(self) -> None:
        self.scheduler.reset()
        self.requests.reset()


def write_page(metrics: Iterable[Metric]) -> bytes:
    """Return the page: families by name, those without a series left out."""
    lines: list[str] = []
    for metric in sorted(metrics, key=lambda each: each.name):
        if metric.samples:
            lines += _family(metric)
    return ("\n".join(lines) + "\n" if lines else "").encode()


def _family(metric: Metric) -> list[str]:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    kind = "untyped" if metric.type == "unknown" else metric.type
    lines = [f"# HELP {name} {_escaped(metric.documentation)}", f"# TYPE {name} {kind}"]
    for sample in metric.samples:
        if sample.name.endswith("_created") and sample.name != name:
            continue
        # Go writes a negative zero without a sign here.
        value = go_float(float(sample.value) + 0.0)
        lines.append(f"{sample.name}{_labels(sample.labels)} {value}")
    return lines


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    # The bound comes last, regardless of the order of names.
    names = sorted(labels, key=lambda name: (name == _BOUND, name))
    written = ",".join(f'{name}="{_escaped(labels[name], quoted=True)}"' for name in names)
    return f"{{{written}}}"


def _escaped(text: str, *, quoted: bool = False) -> str:
    if "\\" in text or "\n" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace("\n", "\\n")
        if quoted:
            text = text.replace('"', '\\"')
    return text


# Requests and limits of pods.

_UNITS: Final = {
    "cpu": "cores",
    "memory": "bytes",
    "storage": "bytes",
    "ephemeral-storage": "bytes",
}
_ATTACHABLE_VOLUMES: Final = "attachable-volumes-"


class PodResources:
    """Requests and limits of unfinished pods."""

    def __init__(self, pods: Callable[[], Iterable[Pod]]) -> None:
        """Take a function that returns the observed pods."""
        self._pods = pods

    def collect(self) -> Iterator[Metric]:
        """Yield both families."""
        pods = [pod for pod in self._pods() if not _is_finished(pod)]
        requests = (each for pod in pods for each in _series(pod, pod_request_amounts(pod)))
        yield FAMILIES["kube_pod_resource_request"].metric(sorted(requests))
        limits = (each for pod in pods for each in _series(pod, pod_limit_amounts(pod)))
        yield FAMILIES["kube_pod_resource_limit"].metric(sorted(limits))


def _is_finished(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase in FINISHED


def _series(pod: Pod, amounts: Amounts) -> Iterator[tuple[Labels, float]]:
    spec, metadata = pod.spec, pod.metadata
    priority = "" if spec.priority is None else str(spec.priority)
    for resource, amount in amounts.items():
        if amount.sign:
            labels = (
                metadata.namespace,
                metadata.name,
                spec.node_name or "",
                spec.scheduler_name or "",
                priority,
                resource,
                _unit(resource),
            )
            yield labels, _approximate(amount)


def _unit(resource: str) -> str:
    if is_huge_page_resource_name(resource):
        return "bytes"
    if resource.startswith(_ATTACHABLE_VOLUMES):
        return "integer"
    return _UNITS.get(resource, "")


def _approximate(amount: Amount) -> float:
    scale: int = 10 ** abs(amount.exponent)
    if amount.exponent >= 0:
        return float(amount.unscaled * scale)
    return amount.unscaled / scale
