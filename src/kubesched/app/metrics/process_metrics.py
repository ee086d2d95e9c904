"""Metrics of any Kubernetes component: requests, election, health, build, features.

Upstream: component-base/metrics/prometheus (v1.36)
Differs:  workqueue_*, apiserver_*, authentication_*, go_* and transport caches are missing: what
          they measure does not exist here. The build is kubesched's, and names Python where
          upstream names Go.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from kubesched import __version__
from kubesched.app.metrics.family import CounterVec, Family, HistogramVec, MetricType
from kubesched.client.leader_election import ElectionStatistics
from kubesched.config.feature_gates import FeatureGates

_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES: Final = (
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262144.0,
    1048576.0,
    4194304.0,
    16777216.0,
)

REQUEST_DURATION: Final = Family(
    "rest_client_request_duration_seconds",
    MetricType.HISTOGRAM,
    ("verb", "host"),
    "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
    _SECONDS,
)
RATE_LIMITER_DURATION: Final = Family(
    "rest_client_rate_limiter_duration_seconds",
    MetricType.HISTOGRAM,
    ("verb", "host"),
    "[ALPHA] Client side rate limiter latency in seconds. Broken down by verb, and host.",
    _SECONDS,
)
REQUEST_SIZE: Final = Family(
    "rest_client_request_size_bytes",
    MetricType.HISTOGRAM,
    ("verb", "host"),
    "[ALPHA] Request size in bytes. Broken down by verb and host.",
    _BYTES,
)
RESPONSE_SIZE: Final = Family(
    "rest_client_response_size_bytes",
    MetricType.HISTOGRAM,
    ("verb", "host"),
    "[ALPHA] Response size in bytes. Broken down by verb and host.",
    _BYTES,
)
REQUESTS: Final = Family(
    "rest_client_requests_total",
    MetricType.COUNTER,
    ("code", "method", "host"),
    "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
)
REQUEST_RETRIES: Final = Family(
    "rest_client_request_retries_total",
    MetricType.COUNTER,
    ("code", "verb", "host"),
    "[ALPHA] Number of request retries, partitioned by status code, verb, and host.",
)
MASTER_STATUS: Final = Family(
    "leader_election_master_status",
    MetricType.GAUGE,
    ("name",),
    "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates "
    "backup, 1 indicates master. 'name' is the string used to identify the lease. Please make "
    "sure to group by name.",
)
SLOWPATH: Final = Family(
    "leader_election_slowpath_total",
    MetricType.COUNTER,
    ("name",),
    "[ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the string "
    "used to identify the lease. Please make sure to group by name.",
)
HEALTHCHECK: Final = Family(
    "kubernetes_healthcheck",
    MetricType.GAUGE,
    ("name", "type"),
    "[STABLE] This metric records the result of a single healthcheck.",
)
HEALTHCHECKS: Final = Family(
    "kubernetes_healthchecks_total",
    MetricType.COUNTER,
    ("name", "type", "status"),
    "[STABLE] This metric records the results of all healthcheck.",
)
BUILD_INFO: Final = Family(
    "kubernetes_build_info",
    MetricType.GAUGE,
    (
        "major",
        "minor",
        "git_version",
        "git_commit",
        "git_tree_state",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    ),
    "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, "
    "git tree state, build date, Go version, and compiler from which Kubernetes was built, and "
    "platform on which it is running.",
)
FEATURE_ENABLED: Final = Family(
    "kubernetes_feature_enabled",
    MetricType.GAUGE,
    ("name", "stage"),
    "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
)
FOLDED: Final = Family(
    "cardinality_enforcement_unexpected_categorizations_total",
    MetricType.COUNTER,
    (),
    "[ALPHA] The count of unexpected categorizations during cardinality enforcement.",
)
DISABLED: Final = Family(
    "disabled_metrics_total",
    MetricType.COUNTER,
    (),
    "[BETA] The count of disabled metrics.",
)
HIDDEN: Final = Family(
    "hidden_metrics_total",
    MetricType.COUNTER,
    (),
    "[BETA] The count of hidden metrics.",
)
POD_REQUEST: Final = Family(
    "kube_pod_resource_request",
    MetricType.GAUGE,
    ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit"),
    "[STABLE] Resources requested by workloads on the cluster, broken down by pod. This shows the "
    "resource usage the scheduler and kubelet expect per pod for resources along with the unit "
    "for the resource if any.",
)
POD_LIMIT: Final = Family(
    "kube_pod_resource_limit",
    MetricType.GAUGE,
    POD_REQUEST.labels,
    "[STABLE] Resources limit for workloads on the cluster, broken down by pod. This shows the "
    "resource usage the scheduler and kubelet expect per pod for resources along with the unit "
    "for the resource if any.",
)


# Their values.

_MAJOR: Final = "1"
_MINOR: Final = "36"


class RequestMetrics:
    """A `RequestObserver`.

    Locked, because the election's thread sends requests too.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._limited = HistogramVec(RATE_LIMITER_DURATION.bounds)
        self._seconds = HistogramVec(REQUEST_DURATION.bounds)
        self._sent = HistogramVec(REQUEST_SIZE.bounds)
        self._received = HistogramVec(RESPONSE_SIZE.bounds)
        self._requests = CounterVec()
        self._retries = CounterVec()
        self._held: dict[Family, CounterVec | HistogramVec] = {
            RATE_LIMITER_DURATION: self._limited,
            REQUEST_DURATION: self._seconds,
            REQUEST_SIZE: self._sent,
            RESPONSE_SIZE: self._received,
            REQUESTS: self._requests,
            REQUEST_RETRIES: self._retries,
        }

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """Observe the wait in the rate limiter."""
        with self._lock:
            self._limited.observe(seconds, (verb, host))

    def attempted(self, code: str, method: str, host: str, *, is_retry: bool) -> None:
        """Count an attempt."""
        with self._lock:
            self._requests.add((code, method, host))
            if is_retry:
                self._retries.add((code, method, host))

    def finished(
        self, verb: str, host: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Observe time and size of a request."""
        labels = (verb, host)
        with self._lock:
            self._seconds.observe(seconds, labels)
            self._sent.observe(request_bytes, labels)
            self._received.observe(response_bytes, labels)

    @property
    def folded(self) -> int:
        """The number of observations counted under "unexpected" because of the bound."""
        return sum(held.folded for held in self._held.values())

    def reset(self) -> None:
        """Reset the counts."""
        with self._lock:
            for held in self._held.values():
                held.reset()

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        with self._lock:
            metrics = [family.of(held) for family, held in self._held.items()]
        yield from metrics


class HealthMetrics:
    """Metrics of health checks."""

    def __init__(self) -> None:
        self._last = CounterVec()
        self._all = CounterVec()

    def observe(self, name: str, endpoint: str, passed: bool) -> None:
        """Count the result of a check, such as `ping` of `healthz`."""
        self._last.set((name, endpoint), float(passed))
        self._all.add((name, endpoint, "success" if passed else "error"))

    def reset(self) -> None:
        """Reset the metrics."""
        self._last.reset()
        self._all.reset()

    def collect(self) -> Iterator[Metric]:
        """Yield both families."""
        yield HEALTHCHECK.of(self._last)
        yield HEALTHCHECKS.of(self._all)


class ComponentMetrics:
    """Build, feature gates, limits and election of a process."""

    def __init__(
        self,
        gates: FeatureGates,
        folded: Callable[[], float],
        disabled: int,
        election: Callable[[], ElectionStatistics | None],
    ) -> None:
        self._gates = gates
        self._folded = folded
        self._disabled = disabled
        self._election = election

    def collect(self) -> Iterator[Metric]:
        """Yield build, features, and the election if there is one."""
        yield BUILD_INFO.metric([(_build(), 1)])
        states = ((gate.name, str(gate.stage), is_on) for gate, is_on in self._gates.states())
        yield FEATURE_ENABLED.metric(
            sorted(((name, stage), float(is_on)) for name, stage, is_on in states)
        )
        yield FOLDED.metric([((), self._folded())])
        yield DISABLED.metric([((), self._disabled)])
        yield HIDDEN.metric([((), 0)])
        election = self._election()
        if election is not None:
            name = (election.name,)
            yield MASTER_STATUS.metric([(name, election.master_status)])
            yield SLOWPATH.metric(
                [(name, election.slowpath_total)] if election.slowpath_total else []
            )


def _build() -> tuple[str, ...]:
    system = f"{platform.system().lower()}/{platform.machine()}"
    python = f"python{platform.python_version()}"
    implementation = platform.python_implementation().lower()
    return (_MAJOR, _MINOR, f"v{__version__}", "", "", "", python, implementation, system)


class StartTime:
    """The start time of the process, which several pages show."""

    def __init__(self, process: ProcessCollector) -> None:
        self._process = process

    def collect(self) -> Iterator[Metric]:
        """Yield it."""
        for metric in self._process.collect():
            if metric.name == "process_start_time_seconds":
                yield metric
