"""Metrics of any Kubernetes component: requests, election, health, build, features.

Upstream: component-base/metrics/prometheus (v1.36)
Differs:  workqueue_*, apiserver_*, authentication_*, go_* and transport caches are missing: what
          they measure does not exist here. The build is kubesched's, and names Python where
          upstream names Go.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Final

from kubesched import __version__
from kubesched.app.metrics.family import FAMILIES, Accumulators, CounterVec
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
        return self._all.folded

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
        yield FAMILIES["kubernetes_healthcheck"].of(self._last)
        yield FAMILIES["kubernetes_healthchecks_total"].of(self._all)


class ComponentMetrics:
    """Build, feature gates, limits and election of a process."""

    def __init__(
        self,
        gates: FeatureGates,
        folded: Callable[[], float],
        disabled: int,
        election: Callable[[], ElectionStatistics | None],
    ) -> None:
        """Set up.

        Args:
            gates: The feature gates.
            folded: Returns the number of observations counted under "unexpected".
            disabled: The number of disabled metrics.
            election: Returns the state of the election; None without one.
        """
        self._gates = gates
        self._folded = folded
        self._disabled = disabled
        self._election = election

    def collect(self) -> Iterator[Metric]:
        """Yield build, features, and the election if there is one."""
        yield FAMILIES["kubernetes_build_info"].metric([(_build(), 1)])
        states = ((gate.name, str(gate.stage), is_on) for gate, is_on in self._gates.states())
        yield FAMILIES["kubernetes_feature_enabled"].metric(
            sorted(((name, stage), float(is_on)) for name, stage, is_on in states)
        )
        yield FAMILIES["cardinality_enforcement_unexpected_categorizations_total"].metric(
            [((), self._folded())]
        )
        yield FAMILIES["disabled_metrics_total"].metric([((), self._disabled)])
        yield FAMILIES["hidden_metrics_total"].metric([((), 0)])
        election = self._election()
        if election is not None:
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


class OperatingSystemMetrics:
    """What the operating system counts of the process."""

    def collect(self) -> Iterable[Metric]:
        """Return every family."""
        from prometheus_client.process_collector import ProcessCollector  # noqa: PLC0415

        return ProcessCollector(registry=None).collect()


class StartTime:
    """The start time of the process, which several pages show."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metric `process_start_time_seconds`."""
        for metric in OperatingSystemMetrics().collect():
            if metric.name == "process_start_time_seconds":
                yield metric
