"""Metrics of the process: requests to the API server, health checks, build, features, election.

Upstream: component-base/metrics/prometheus (v1.36)
Differs:  the build is kubesched's, and names Python where upstream names Go.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from kubesched import __version__
from kubesched.app.metrics import process_families as families
from kubesched.app.metrics.accumulators import CounterVec, HistogramVec
from kubesched.app.metrics.family import Family
from kubesched.client.leader_fence import ElectionStatistics
from kubesched.config.feature_gates import FeatureGates

_MAJOR: Final = "1"
_MINOR: Final = "36"


class RequestMetrics:
    """A `RequestObserver`.

    Locked, because the election's thread sends requests too.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._limited = HistogramVec(families.RATE_LIMITER_DURATION.bounds)
        self._seconds = HistogramVec(families.REQUEST_DURATION.bounds)
        self._sent = HistogramVec(families.REQUEST_SIZE.bounds)
        self._received = HistogramVec(families.RESPONSE_SIZE.bounds)
        self._requests = CounterVec()
        self._retries = CounterVec()
        self._held: dict[Family, CounterVec | HistogramVec] = {
            families.RATE_LIMITER_DURATION: self._limited,
            families.REQUEST_DURATION: self._seconds,
            families.REQUEST_SIZE: self._sent,
            families.RESPONSE_SIZE: self._received,
            families.REQUESTS: self._requests,
            families.REQUEST_RETRIES: self._retries,
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
        yield families.HEALTHCHECK.of(self._last)
        yield families.HEALTHCHECKS.of(self._all)


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
        yield families.BUILD_INFO.metric([(_build(), 1)])
        states = ((gate.name, str(gate.stage), is_on) for gate, is_on in self._gates.states())
        yield families.FEATURE_ENABLED.metric(
            sorted(((name, stage), float(is_on)) for name, stage, is_on in states)
        )
        yield families.FOLDED.metric([((), self._folded())])
        yield families.DISABLED.metric([((), self._disabled)])
        yield families.HIDDEN.metric([((), 0)])
        election = self._election()
        if election is not None:
            name = (election.name,)
            yield families.MASTER_STATUS.metric([(name, election.master_status)])
            yield families.SLOWPATH.metric(
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
