"""Compares the reports of several simulations over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kubesched.explain.document import Document, DocumentPart
from kubesched.simulator.figures import duration, number, percent
from kubesched.simulator.timeline_report import ResourceReport, TimelineReport

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
    def measure(name: str, unit: str, of: Callable[[TimelineReport], float | None]) -> Measure:
        return Measure(name, unit, tuple(map(of, reports)))

    resources = dict.fromkeys(row.resource for report in reports for row in report.resources)
    for name in resources:
        values = _shares(reports, name, lambda row: row.mean_share)
        yield Measure(f"{name} allocated, mean", "share", values)
    for name in resources:
        values = _shares(reports, name, lambda row: row.mean_fragmentation)
        if any(value is not None for value in values):
            yield Measure(f"{name} fragmented, mean", "share", values)
    yield measure("pods bound", "pods", lambda report: report.totals.bound)
    yield measure("pods finished", "pods", lambda report: report.totals.finished)
    yield measure("pods pending at the end", "pods", lambda report: report.totals.pending)
    yield measure("pod hours pending", "podHours", lambda report: report.waits[0].pending_pod_hours)
    yield measure("wait, mean", "seconds", lambda report: report.waits[0].mean_seconds)
    yield measure("wait, median", "seconds", lambda report: report.waits[0].p50_seconds)
    yield measure("wait, 90 %", "seconds", lambda report: report.waits[0].p90_seconds)
    yield measure("wait, 99 %", "seconds", lambda report: report.waits[0].p99_seconds)
    yield measure("wait, longest", "seconds", lambda report: report.waits[0].max_seconds)
    yield measure("pods preempted", "pods", lambda report: report.totals.disrupted)
    yield measure("pods drained", "pods", lambda report: report.totals.drained)
    yield measure("pods evicted or removed", "pods", _evicted_or_removed)
    yield measure("pods lost", "pods", lambda report: report.totals.lost)


def _evicted_or_removed(report: TimelineReport) -> float:
    return report.totals.evicted + report.totals.removed


def _shares(
    reports: Sequence[TimelineReport], name: str, of: Callable[[ResourceReport], float | None]
) -> tuple[float | None, ...]:
    found = ({row.resource: row for row in report.resources}.get(name) for report in reports)
    return tuple(None if row is None else of(row) for row in found)
