"""Pages of metrics: /metrics, /metrics/slis and /metrics/resources.

Plugins may register metrics of prometheus_client in the registry: they stand on /metrics with the
others.

Numbers are written as Go writes them. The bounds of buckets are label values, so Prometheus would
take `le="1"` and `le="1.0"` for two series.

Upstream: component-base/metrics/http.go, cmd/kube-scheduler/app/server.go (v1.36);
          github.com/prometheus/common/expfmt
Differs:  the build is kubesched's, and names Python where upstream names Go; metrics are not
          offered in protobuf.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from kubesched import __version__
from kubesched.api.go_text import go_float
from kubesched.app.metrics import process_families as families
from kubesched.app.metrics.accumulators import Counter
from kubesched.app.metrics.exposure import EVERYTHING, Exposure
from kubesched.app.metrics.pod_resources import PodResources
from kubesched.app.metrics.request_metrics import RequestMetrics
from kubesched.app.metrics.scheduler_metrics import SchedulerMetrics
from kubesched.client.leader_fence import ElectionStatistics
from kubesched.config.feature_gates import FeatureGates

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_BOUND: Final = "le"
_MAJOR: Final = "1"
_MINOR: Final = "36"


class Source(Protocol):
    """Yields families."""

    def collect(self) -> Iterable[Metric]:
        """Return them as they are now."""
        ...


class Page:
    """What a path of the secure port answers."""

    def __init__(
        self,
        sources: Iterable[Source],
        reset: Callable[[], None] = lambda: None,
        exposure: Exposure = EVERYTHING,
    ) -> None:
        """Take what is on it, what a DELETE does, and what is left out."""
        self._sources = tuple(sources)
        self._reset = reset
        self._exposure = exposure

    def page(self, accept: str = "") -> tuple[str, bytes]:
        """Return content type and text; there is one form, whatever the client accepts."""
        return CONTENT_TYPE, write_page(self._exposure.shown(self.collect()))

    def collect(self) -> list[Metric]:
        """Return what is on it before anything is left out."""
        return [metric for source in self._sources for metric in source.collect()]

    def reset(self) -> None:
        """Forget all that was counted."""
        self._reset()


class HealthMetrics:
    """The results of health checks."""

    def __init__(self) -> None:
        self._last = Counter()
        self._all = Counter()

    def observe(self, name: str, endpoint: str, passed: bool) -> None:
        """Take in the result of a check, such as `ping` of `healthz`."""
        self._last.set((name, endpoint), float(passed))
        self._all.add((name, endpoint, "success" if passed else "error"))

    def reset(self) -> None:
        """Forget them."""
        self._last.reset()
        self._all.reset()

    def collect(self) -> Iterator[Metric]:
        """Yield both families."""
        yield families.HEALTHCHECK.of(self._last)
        yield families.HEALTHCHECKS.of(self._all)


class _Component:
    """What is fixed of a process, and what others count for it."""

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


class Pages:
    """Everything that a scheduler process measures, and the pages that show it.

    Attributes:
        scheduler: To be handed to `assemble` as its instruments.
        requests: To be handed to connections as their observer.
        health: Its `observe` is told of health checks.
        registry: Where plugins register metrics of their own.
        election: Returns what the elector says; None where there is none.
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
        self.registry = CollectorRegistry()
        self.election: Callable[[], ElectionStatistics | None] = lambda: None
        self._process = ProcessCollector(registry=None)
        self._counted = Page((self.scheduler, self.requests))
        component = _Component(gates, self._folded, len(exposure.disabled), self._ask_election)
        own = (self._counted, component, self._process)
        self.metrics = Page((*own, self.registry), self._reset, exposure)
        slis = (self.health, _StartTime(self._process))
        self.slis = Page(slis, self.health.reset, exposure)

    def resources(self, pods: PodResources) -> Page:
        """Return the page of what pods ask for."""
        return Page((pods,), exposure=self._exposure)

    def _ask_election(self) -> ElectionStatistics | None:
        # Whoever elects says so after the pages are made.
        return self.election()

    def _folded(self) -> float:
        folded = self.scheduler.folded + self.requests.folded
        if not self._exposure.allowed:
            return folded
        return folded + self._exposure.unexpected(self._counted.collect())

    def _reset(self) -> None:
        self.scheduler.reset()
        self.requests.reset()


class _StartTime:
    """The one family of the process that stands on every page of a component."""

    def __init__(self, process: ProcessCollector) -> None:
        self._process = process

    def collect(self) -> Iterator[Metric]:
        """Yield it."""
        for metric in self._process.collect():
            if metric.name == "process_start_time_seconds":
                yield metric


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
    # The bound stands last, whatever its name sorts as.
    names = sorted(labels, key=lambda name: (name == _BOUND, name))
    written = ",".join(f'{name}="{_escaped(labels[name], quoted=True)}"' for name in names)
    return f"{{{written}}}"


def _escaped(text: str, *, quoted: bool = False) -> str:
    if "\\" in text or "\n" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace("\n", "\\n")
        if quoted:
            text = text.replace('"', '\\"')
    return text
