"""Pages of metrics: /metrics, /metrics/slis and /metrics/resources.

Plugins may register metrics of prometheus_client in the registry; /metrics shows them too.

Numbers are written as Go writes them. The bounds of buckets are label values, so Prometheus would
take `le="1"` and `le="1.0"` for two series.

Upstream: component-base/metrics/http.go, component-base/metrics/prometheus;
          cmd/kube-scheduler/app/server.go; github.com/prometheus/common/expfmt;
          pkg/scheduler/metrics/resources/resources.go (v1.36)
Differs:  metrics are not offered in protobuf. workqueue_*, apiserver_*, authentication_*, go_* and
          transport caches are missing: what they measure does not exist here. The build is
          kubesched's, and names Python where upstream names Go.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Final

from kubesched import __version__
from kubesched.api.core import FINISHED, Pod
from kubesched.api.go_text import go_float
from kubesched.api.names import is_huge_page_resource_name
from kubesched.api.pod_requests import Amounts, pod_limit_amounts, pod_request_amounts
from kubesched.api.quantity import Amount
from kubesched.app.metrics.exposure import EVERYTHING, Exposure
from kubesched.app.metrics.family import FAMILIES, Accumulators, Labels
from kubesched.app.metrics.scheduler_metrics import SchedulerMetrics
from kubesched.client.leader_election import ElectionStatistics
from kubesched.client.requests import RequestObserver
from kubesched.config.feature_gates import FeatureGates

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import CollectorRegistry

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_BOUND: Final = "le"

Source = Callable[[], Iterable["Metric"]]
"""Returns metrics with their current values."""


class MetricsPage:
    """A page of metrics of several sources, such as /metrics; DELETE calls `reset`.

    A large page may take seconds to write. Its sources are called at once; the metrics that they
    return can be read in another thread.
    """

    def __init__(
        self,
        *sources: Source,
        reset: Callable[[], None] = lambda: None,
        exposure: Exposure = EVERYTHING,
        is_large: bool = False,
    ) -> None:
        self._sources = sources
        self.reset = reset
        self._exposure = exposure
        self.is_large = is_large

    def page(self) -> bytes:
        """Return the text, of `CONTENT_TYPE` whatever the client accepts."""
        return self.writer()()

    def writer(self) -> Callable[[], bytes]:
        """Return a function that returns what `page` returns now."""
        metrics = chain.from_iterable([source() for source in self._sources])
        return lambda: write_page(self._exposure.shown(metrics))


class Pages:
    """All metrics of a scheduler process, and the pages that show them.

    Attributes:
        scheduler: The instruments for `assemble`.
        requests: The observer for connections.
        health: Its `observe` gets the results of health checks.
        election: The elector's statistics; None without one.
        metrics, slis: The pages of these names.
    """

    def __init__(
        self,
        gates: FeatureGates,
        clock: Callable[[], float],
        draw: Callable[[], float],
        exposure: Exposure = EVERYTHING,
    ) -> None:
        """Set up; `clock` and `draw` as of `SchedulerMetrics`."""
        self._gates = gates
        self._exposure = exposure
        self.scheduler = SchedulerMetrics(clock, draw)
        self.requests = RequestMetrics()
        self.health = HealthMetrics()
        self.election: ElectionStatistics | None = None
        self.metrics = MetricsPage(
            self._all, operating_system_metrics, reset=self._reset, exposure=exposure
        )
        self.slis = MetricsPage(
            self.health.collect, start_time, reset=self.health.reset, exposure=exposure
        )

    @cached_property
    def registry(self) -> CollectorRegistry:
        """For plugins' own metrics."""
        from prometheus_client.registry import CollectorRegistry  # noqa: PLC0415

        return CollectorRegistry()

    def resources(self, pods: Callable[[], Iterable[Pod]]) -> MetricsPage:
        """Return the page of requests and limits of the pods that a function returns."""
        return MetricsPage(
            lambda: pod_resources(list(pods())), exposure=self._exposure, is_large=True
        )

    def _all(self) -> Iterator[Metric]:
        counted = [*self.scheduler.collect(), *self.requests.collect()]
        yield from counted
        yield from component_metrics(self._gates)
        yield from self._exposure.metrics(counted)
        if self.election is not None:
            yield from election_metrics(self.election)
        yield from self.registry.collect()

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


# Metrics of any component: requests, health, build, features, election.

_MAJOR: Final = "1"
_MINOR: Final = "36"


class RequestMetrics(RequestObserver):
    """Metrics of requests; locked, because the election's thread sends some too."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._all = Accumulators("rest_client_")
        self._limited = self._all.histogram("rate_limiter_duration_seconds")
        self._seconds = self._all.histogram("request_duration_seconds")
        self._sent = self._all.histogram("request_size_bytes")
        self._received = self._all.histogram("response_size_bytes")
        self._requests = self._all.counter("requests_total")
        self._retries = self._all.counter("request_retries_total")

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """Observe the wait in the rate limiter."""
        with self._lock:
            self._limited[verb, host].observe(seconds)

    def attempted(self, code: str, method: str, host: str, *, is_retry: bool) -> None:
        """Count an attempt."""
        with self._lock:
            self._requests[code, method, host] += 1
            if is_retry:
                self._retries[code, method, host] += 1

    def finished(
        self, verb: str, host: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Observe time and size of a request."""
        labels = (verb, host)
        with self._lock:
            self._seconds[labels].observe(seconds)
            self._sent[labels].observe(request_bytes)
            self._received[labels].observe(response_bytes)

    def reset(self) -> None:
        """Reset the counts."""
        with self._lock:
            self._all.reset()

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        with self._lock:
            metrics = self._all.collect()
        yield from metrics


class HealthMetrics:
    """Metrics of health checks."""

    def __init__(self) -> None:
        self._last: dict[Labels, int] = {}
        self._all: Counter[Labels] = Counter()

    def observe(self, name: str, endpoint: str, passed: bool) -> None:
        """Count the result of a check, such as `ping` of `healthz`."""
        self._last[name, endpoint] = int(passed)
        self._all[name, endpoint, "success" if passed else "error"] += 1

    def reset(self) -> None:
        """Reset the metrics."""
        self._last.clear()
        self._all.clear()

    def collect(self) -> Iterator[Metric]:
        """Yield both families."""
        yield FAMILIES["kubernetes_healthcheck"].metric(sorted(self._last.items()))
        yield FAMILIES["kubernetes_healthchecks_total"].of(self._all)


def component_metrics(gates: FeatureGates) -> Iterator[Metric]:
    """Yield the build and the feature gates of a process."""
    yield FAMILIES["kubernetes_build_info"].metric([(_build(), 1)])
    states = ((gate.name, str(gate.stage), is_on) for gate, is_on in gates.states())
    yield FAMILIES["kubernetes_feature_enabled"].metric(
        sorted(((name, stage), float(is_on)) for name, stage, is_on in states)
    )


def election_metrics(election: ElectionStatistics) -> Iterator[Metric]:
    """Yield the state of the election."""
    name = (election.name,)
    yield FAMILIES["leader_election_master_status"].metric([(name, election.master_status)])
    yield FAMILIES["leader_election_slowpath_total"].metric(
        [(name, election.slowpath_total)] if election.slowpath_total else []
    )


def _build() -> tuple[str, ...]:
    system = f"{platform.system().lower()}/{platform.machine()}"
    python = f"python{platform.python_version()}"
    implementation = platform.python_implementation().lower()
    return (_MAJOR, _MINOR, f"v{__version__}", "", "", "", python, implementation, system)


def operating_system_metrics() -> Iterable[Metric]:
    """Return what the operating system counts of the process."""
    from prometheus_client.process_collector import ProcessCollector  # noqa: PLC0415

    return ProcessCollector(registry=None).collect()


def start_time() -> Iterator[Metric]:
    """Yield the start time of the process, which several pages show."""
    for metric in operating_system_metrics():
        if metric.name == "process_start_time_seconds":
            yield metric


# Requests and limits of pods.

_UNITS: Final = {
    "cpu": "cores",
    "memory": "bytes",
    "storage": "bytes",
    "ephemeral-storage": "bytes",
}
_ATTACHABLE_VOLUMES: Final = "attachable-volumes-"


def pod_resources(pods: Iterable[Pod]) -> Iterator[Metric]:
    """Yield the requests and the limits of unfinished pods."""
    running = [pod for pod in pods if not (pod.spec.node_name and pod.status.phase in FINISHED)]
    requests = (each for pod in running for each in _series(pod, pod_request_amounts(pod)))
    yield FAMILIES["kube_pod_resource_request"].metric(sorted(requests))
    limits = (each for pod in running for each in _series(pod, pod_limit_amounts(pod)))
    yield FAMILIES["kube_pod_resource_limit"].metric(sorted(limits))


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
