"""Metrics of any Kubernetes component: requests, election, health, build, features.

Upstream: component-base/metrics/prometheus (v1.36)
Differs:  workqueue_*, apiserver_*, authentication_*, go_* and transport caches are missing: what
          they measure does not exist here. The build is kubesched's, and names Python where
          upstream names Go.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Final

from kubesched import __version__
from kubesched.app.metrics.family import FAMILIES, Accumulators, Labels
from kubesched.client.leader_election import ElectionStatistics
from kubesched.client.requests import RequestObserver
from kubesched.config.feature_gates import FeatureGates

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

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
