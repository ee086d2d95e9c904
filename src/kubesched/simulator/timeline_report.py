"""The report of a simulation over time as data, and the comparison of several.

Invariants: the size does not grow with the duration; lists are sorted or in order of time; times
            are virtual seconds; shares are between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kubesched.explain.document import Document, DocumentPart
from kubesched.simulator.series import SeriesValues


class Totals(DocumentPart, frozen=True):
    """Counts of the whole simulation.

    Attributes:
        arrived: Pods created without a node, for this scheduler.
        bound: Pods bound.
        finished: Pods that ran to their end.
        gave_up: Pods that were deleted before they got a node.
        disrupted: Pods that were preempted.
        drained: Pods that left their node because it was drained.
        evicted: Pods deleted from a failed node when their toleration ended.
        removed: Pods deleted because their node was gone.
        restarted: Pods that started over when their failed node came back.
        lost: Pods without a controller that were stopped early, so nothing replaces them.
        pending: Pods without a node at the end.
        running: Pods with a node at the end.
        attempts: Scheduling cycles.
        rejected: Attempts that found no node.
        failed: Attempts that ended in an error.
        binding_failures: Bindings that were undone.
        nodes: Nodes at the end.
    """

    arrived: int = 0
    bound: int = 0
    finished: int = 0
    gave_up: int = 0
    disrupted: int = 0
    drained: int = 0
    evicted: int = 0
    removed: int = 0
    restarted: int = 0
    lost: int = 0
    pending: int = 0
    running: int = 0
    attempts: int = 0
    rejected: int = 0
    failed: int = 0
    binding_failures: int = 0
    nodes: int = 0


class WaitReport(DocumentPart, frozen=True):
    """How long pods waited from their creation to their binding.

    Attributes:
        priority: The pods' priority, or `all`, or `other`.
        arrived: Number of pods created.
        bound: Number of pods bound.
        pending: Number of pods without a node at the end.
        disrupted: Number of preempted pods.
        mean_seconds: Mean waiting time; like the next four, None if no pod was bound.
        p50_seconds: Median.
        p90_seconds: 90th percentile.
        p99_seconds: 99th percentile.
        max_seconds: Maximum.
        pending_pod_hours: Total waiting time in hours, including pods that still wait.
    """

    priority: str
    arrived: int
    bound: int
    pending: int
    disrupted: int
    mean_seconds: float | None
    p50_seconds: float | None
    p90_seconds: float | None
    p99_seconds: float | None
    max_seconds: float | None
    pending_pod_hours: float


class ResourceReport(DocumentPart, frozen=True):
    """Utilisation of a resource, as a share of the nodes' allocatable.

    Attributes:
        resource: The resource name.
        mean_share: Time-weighted mean; None if nothing was allocatable.
        peak_share: Maximum.
        final_share: The share at the end.
        mean_fragmentation: Mean share of free amounts that an average pod could not use; None if
            it was never sampled.
    """

    resource: str
    mean_share: float | None
    peak_share: float
    final_share: float
    mean_fragmentation: float | None


class MoveCount(DocumentPart, frozen=True):
    """How often pods moved from one part of the queue to another because of an event.

    Attributes:
        origin: The part of the queue that they left; empty for new pods.
        destination: The part of the queue that they came to; empty for pods that left it.
        event: The event.
        count: Number of moves.
    """

    origin: str
    destination: str
    event: str
    count: int


class RequestCount(DocumentPart, frozen=True):
    """Number of requests to the API server.

    Attributes:
        kind: The kind of request, or an extender's URL.
        sent: Number of requests.
        failed: Number of failed ones among them.
    """

    kind: str
    sent: int
    failed: int


class Series(DocumentPart, frozen=True):
    """Numbers over time.

    Attributes:
        name: Name of the series.
        chart: Name of the chart, which may have several series.
        unit: Such as `pods`, `share`, `per hour`.
        values: The numbers.
    """

    name: str
    chart: str
    unit: str
    values: SeriesValues


class Histogram(DocumentPart, frozen=True):
    """A histogram of waiting times.

    Attributes:
        bounds_seconds: Upper bounds of all bars but the last.
        counts: Number of pods per bar; one more than bounds.
    """

    bounds_seconds: tuple[float, ...]
    counts: tuple[int, ...]


class TimelineReport(Document, frozen=True):
    """What happened in a scenario, over time.

    Attributes:
        scenario: The scenario's name.
        seed: The seed of all random sources.
        partial: Whether the simulation was interrupted.
        duration_seconds: The duration in virtual seconds.
        totals: Counts of the whole simulation.
        waits: All pods first, then by falling priority.
        wait_histogram: Over all bound pods.
        resources: cpu, memory and pods first, then the others by name.
        moves: By falling count.
        requests: To the API server.
        relists: Number of relists of the scheduler's watches.
        checks: Number of full invariant checks.
        decisions: Number of lines of the decision log.
        decision_digest: SHA-256 of the decision log.
        series: The time series, in display order.
    """

    scenario: str
    seed: int
    partial: bool
    duration_seconds: float
    totals: Totals
    waits: tuple[WaitReport, ...]
    wait_histogram: Histogram
    resources: tuple[ResourceReport, ...]
    moves: tuple[MoveCount, ...]
    requests: tuple[RequestCount, ...]
    relists: int
    checks: int
    decisions: int
    decision_digest: str
    series: tuple[Series, ...]


# Numbers, shares and durations as people read them.


def number(value: float) -> str:
    """Return a number formatted with three significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{number(value * 100)} %"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit of which it has at least one."""
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds * 1000)} ms" if seconds else "0 s"


# Comparisons.

_ABSENT: Final = "-"
_SHOWN: Final[dict[str, Callable[[float], str]]] = {
    "share": percent,
    "seconds": duration,
    "pods": number,
    "podHours": number,
}


class Measure(DocumentPart, frozen=True):
    """One figure of every run.

    Attributes:
        name: Name of the figure.
        unit: `share`, `seconds`, `pods` or `podHours`.
        values: One per run; None if the run has no value.
    """

    name: str
    unit: str
    values: tuple[float | None, ...]

    def texts(self) -> tuple[str, ...]:
        """Return the values as formatted text."""
        show = _SHOWN[self.unit]
        return tuple(_ABSENT if value is None else show(value) for value in self.values)


class TimelineComparison(Document, frozen=True):
    """Runs with the same seed and duration, compared.

    Attributes:
        seed: The common seed.
        duration_seconds: The common duration, in virtual seconds.
        runs: Names of the runs.
        scenarios: Names of their scenarios.
        decision_digests: SHA-256 of the decision logs; equal digests mean equal decisions.
        measures: The figures, in display order.
    """

    seed: int
    duration_seconds: float
    runs: tuple[str, ...]
    scenarios: tuple[str, ...]
    decision_digests: tuple[str, ...]
    measures: tuple[Measure, ...]


def compared(names: Sequence[str], reports: Sequence[TimelineReport]) -> TimelineComparison:
    """Compare reports that have the same seed and duration."""
    return TimelineComparison(
        reports[0].seed,
        reports[0].duration_seconds,
        tuple(names),
        tuple(report.scenario for report in reports),
        tuple(report.decision_digest for report in reports),
        tuple(_measures(reports)),
    )


def _measures(reports: Sequence[TimelineReport]) -> Iterator[Measure]:
    def resource(name: str, of: Callable[[ResourceReport], float | None]) -> list[float | None]:
        rows = ({row.resource: row for row in report.resources}.get(name) for report in reports)
        return [None if row is None else of(row) for row in rows]

    def waits(name: str, unit: str, of: Callable[[WaitReport], float | None]) -> Measure:
        return Measure(name, unit, tuple(of(report.waits[0]) for report in reports))

    def pods(name: str, of: Callable[[Totals], float]) -> Measure:
        return Measure(name, "pods", tuple(of(report.totals) for report in reports))

    resources = dict.fromkeys(row.resource for report in reports for row in report.resources)
    for name in resources:
        values = resource(name, lambda row: row.mean_share)
        yield Measure(f"{name} allocated, mean", "share", tuple(values))
    for name in resources:
        values = resource(name, lambda row: row.mean_fragmentation)
        if any(value is not None for value in values):
            yield Measure(f"{name} fragmented, mean", "share", tuple(values))
    yield pods("pods bound", lambda totals: totals.bound)
    yield pods("pods finished", lambda totals: totals.finished)
    yield pods("pods pending at the end", lambda totals: totals.pending)
    yield waits("pod hours pending", "podHours", lambda row: row.pending_pod_hours)
    yield waits("wait, mean", "seconds", lambda row: row.mean_seconds)
    yield waits("wait, median", "seconds", lambda row: row.p50_seconds)
    yield waits("wait, 90 %", "seconds", lambda row: row.p90_seconds)
    yield waits("wait, 99 %", "seconds", lambda row: row.p99_seconds)
    yield waits("wait, longest", "seconds", lambda row: row.max_seconds)
    yield pods("pods preempted", lambda totals: totals.disrupted)
    yield pods("pods drained", lambda totals: totals.drained)
    yield pods("pods evicted or removed", lambda totals: totals.evicted + totals.removed)
    yield pods("pods lost", lambda totals: totals.lost)
