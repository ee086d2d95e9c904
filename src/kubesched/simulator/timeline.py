"""Timeline accumulates the figures of a report; its memory does not grow with the duration.

It receives pods from the ledger, decisions from the loop and moves from the queue, and takes
samples periodically.

Invariants: memory is bounded by the numbers of bins, priorities and resources reported, and of pods
            that exist at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.meta import controller_of
from kubesched.framework.status import Status
from kubesched.queue.moves import POP_FROM_BACKOFF, QueueMove, QueuePlace
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, Failed, Rejected, RejectedAgain
from kubesched.scheduler.observer import Observer
from kubesched.simulator.node_life import Disruption
from kubesched.simulator.pod_ledger import Booking, LedgerReader, Waiting
from kubesched.simulator.series import CountSeries, Gauge, QuantileSketch
from kubesched.simulator.timeline_report import (
    Histogram,
    MoveCount,
    ResourceReport,
    Series,
    Totals,
    WaitReport,
)
from kubesched.simulator.utilisation import FIRST_RESOURCES, AveragePod, fragmentation
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

WAIT_BOUNDS_SECONDS: Final = (0.1, 1.0, 10.0, 60.0, 300.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0)

_PRIORITIES_MAX: Final = 20
_RESOURCES_MAX: Final = 12
_MOVES_MAX: Final = 200
_DIGITS: Final = 4
# Names of series.
_RATES: Final = ("arrivals", "bindings", "attempts", "rejections")
_DISRUPTIONS: Final = (*(each.value for each in Disruption), "lost", "binding failures")
_QUEUE_PLACES: Final = (QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE)


class _PriorityFigures:
    """Pods of one priority."""

    def __init__(self) -> None:
        self.arrived = 0
        self.disrupted = 0
        self.pending = 0
        self.waits = QuantileSketch()
        # The sum of the times when pods began to wait minus the sum of the times when they stopped.
        self._balance_seconds = 0.0

    def begin(self, now: float) -> None:
        self.pending += 1
        self._balance_seconds -= now

    def end(self, now: float) -> None:
        self.pending -= 1
        self._balance_seconds += now

    def pending_pod_hours(self, now: float) -> float:
        return (self._balance_seconds + self.pending * now) / 3600

    def report(self, name: str, now: float) -> WaitReport:
        waits = self.waits
        return WaitReport(
            name,
            self.arrived,
            waits.count,
            self.pending,
            self.disrupted,
            _rounded(waits.mean),
            _rounded(waits.quantile(0.5)),
            _rounded(waits.quantile(0.9)),
            _rounded(waits.quantile(0.99)),
            _rounded(waits.largest if waits.count else None),
            round(self.pending_pod_hours(now), _DIGITS),
        )


class _Resource:
    """A resource, summed over all nodes."""

    def __init__(self, width_seconds: float) -> None:
        self.allocatable = 0
        self.requested = 0
        self.share = Gauge(width_seconds)
        self.fragmentation = Gauge(width_seconds)
        self.was_sampled = False

    def renew(self, now: float) -> None:
        share = self.requested / self.allocatable if self.allocatable > 0 else 0.0
        self.share.set(now, share)

    def report(self, name: str) -> ResourceReport:
        return ResourceReport(
            name,
            _rounded(self.share.mean()),
            round(self.share.peak, _DIGITS),
            round(self.share.value, _DIGITS),
            _rounded(self.fragmentation.mean()) if self.was_sampled else None,
        )


class Timeline(LedgerReader, Observer):
    """Accumulates the figures of one simulation."""

    def __init__(self, width_seconds: float) -> None:
        """Start at second 0, with bins of `width_seconds` for the series."""
        self._width_seconds = width_seconds
        self._all = _PriorityFigures()
        self._classes: defaultdict[int, _PriorityFigures] = defaultdict(_PriorityFigures)
        self._other = _PriorityFigures()
        self._resources: dict[str, _Resource] = {}
        self._moves: Counter[tuple[QueuePlace, QueuePlace, str]] = Counter()
        self._was_early = False
        self._average = AveragePod()
        self._nodes = 0
        self._failed = 0
        self._gave_up = 0
        self._finished = 0
        self._pods = {name: Gauge(width_seconds) for name in ("pending", "running")}
        self._queued = {place: Gauge(width_seconds) for place in _QUEUE_PLACES}
        self._rates = {name: CountSeries(width_seconds) for name in _RATES}
        self._disruptions = {name: CountSeries(width_seconds) for name in _DISRUPTIONS}

    @property
    def attempts(self) -> int:
        """Number of finished scheduling cycles."""
        return self._rates["attempts"].total

    @property
    def pods_bound(self) -> int:
        """Number of bound pods."""
        return self._rates["bindings"].total

    # From the ledger.

    def _classes_of(self, pod: Pod) -> tuple[_PriorityFigures, _PriorityFigures]:
        """Return the class of all pods, and the one of the pod's priority."""
        priority = pod.spec.priority or 0
        if priority in self._classes or len(self._classes) < _PRIORITIES_MAX:
            return self._all, self._classes[priority]
        return self._all, self._other

    def pod_arrived(self, pod: Pod, now: float) -> None:
        """Count a new pending pod."""
        self._rates["arrivals"].add(now)
        self._pods["pending"].add(now, 1)
        self._average.add(PodInfo(pod).template.requests)
        for each in self._classes_of(pod):
            each.arrived += 1
            each.begin(now)

    def pod_bound(self, pod: Pod, booking: Booking, waiting: Waiting | None, now: float) -> None:
        """Count a binding and its waiting time."""
        self._pods["running"].add(now, 1)
        self._book(booking.amounts, 1, now)
        if waiting is None:
            return
        self._rates["bindings"].add(now)
        self._pods["pending"].add(now, -1)
        for each in self._classes_of(pod):
            each.end(now)
            each.waits.add(max(now - waiting.since, 0.0))

    def pending_pod_deleted(self, pod: Pod, waiting: Waiting, now: float) -> None:
        """Count a pending pod that was deleted."""
        self._gave_up += 1
        self._pods["pending"].add(now, -1)
        for each in self._classes_of(pod):
            each.end(now)

    def pod_released(self, pod: Pod, booking: Booking, now: float) -> None:
        """Count a pod that released its node."""
        if pod.status.phase == "Succeeded":
            self._finished += 1
        elif controller_of(pod.metadata) is None:
            self._disruptions["lost"].add(now)
        self._pods["running"].add(now, -1)
        self._book(booking.amounts, -1, now)

    def pod_disrupted(self, pod: Pod, disruption: Disruption, now: float) -> None:
        """Count a pod that is stopped before its end."""
        self._disruptions[disruption.value].add(now)
        if disruption is Disruption.PREEMPTED:
            for each in self._classes_of(pod):
                each.disrupted += 1

    def capacity_changed(self, allocatable: Mapping[str, int], now: float) -> None:
        """Record the allocatable of all nodes."""
        for name, amount in allocatable.items():
            resource = self._resource(name)
            if resource is not None and resource.allocatable != amount:
                resource.allocatable = amount
                resource.renew(now)

    def _resource(self, name: str) -> _Resource | None:
        found = self._resources.get(name)
        if found is None and len(self._resources) < _RESOURCES_MAX:
            found = self._resources[name] = _Resource(self._width_seconds)
        return found

    def _book(self, amounts: Mapping[str, int], sign: int, now: float) -> None:
        for name, amount in amounts.items():
            resource = self._resource(name) if amount else None
            if resource is not None:
                resource.requested += sign * amount
                resource.renew(now)

    # From the loop.

    def decided(self, decision: Decision, started: float) -> None:
        """Count a decision."""
        self._rates["attempts"].add(started)
        if isinstance(decision, Rejected):
            self._rates["rejections"].add(started)
        elif isinstance(decision, Failed):
            self._failed += 1

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Count the rejections of equal pods."""
        self._rates["attempts"].add(again.started, again.pods)
        self._rates["rejections"].add(again.started, again.pods)

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """Count a binding that was undone."""
        self._disruptions["binding failures"].add(now)

    # From the queue.

    def moved(self, move: QueueMove) -> None:
        """Count a move in the queue."""
        origin, destination, pods = move.origin, move.destination, move.pods
        key = (origin, destination, move.event)
        if key not in self._moves and len(self._moves) >= _MOVES_MAX:
            key = (origin, destination, "other")
        self._moves[key] += pods
        if origin is destination:
            return
        # Of pods that are popped early, each leaves activeQ before the next one enters it.
        is_early = move.event == POP_FROM_BACKOFF
        left, entered = self._queued.get(origin), self._queued.get(destination)
        if left is not None:
            left.add(move.now, -1 if self._was_early else -pods)
        if entered is not None:
            entered.add(move.now, 1 if is_early else pods)
        self._was_early = is_early

    # Samples.

    def sample(self, nodes: NodeTable, now: float) -> None:
        """Sample the fragmentation of free resources."""
        self._nodes = len(nodes)
        for name, share in fragmentation(nodes, self._average.amounts()).items():
            resource = self._resource(name)
            if resource is not None:
                resource.was_sampled = True
                resource.fragmentation.set(now, share)

    # The report.

    def end(self, now: float) -> None:
        """Extend all series to `now`."""
        for gauge in (*self._pods.values(), *self._queued.values()):
            gauge.advance(now)
        for counter in (*self._rates.values(), *self._disruptions.values()):
            counter.advance(now)
        for resource in self._resources.values():
            resource.share.advance(now)
            resource.fragmentation.advance(now)

    def totals(self) -> Totals:
        """Return the totals."""
        return Totals(
            arrived=self._rates["arrivals"].total,
            bound=self._rates["bindings"].total,
            finished=self._finished,
            gave_up=self._gave_up,
            disrupted=self._disruptions["preempted"].total,
            drained=self._disruptions["drained"].total,
            evicted=self._disruptions["evicted"].total,
            removed=self._disruptions["removed"].total,
            restarted=self._disruptions["restarted"].total,
            lost=self._disruptions["lost"].total,
            pending=int(self._pods["pending"].value),
            running=int(self._pods["running"].value),
            attempts=self._rates["attempts"].total,
            rejected=self._rates["rejections"].total,
            failed=self._failed,
            binding_failures=self._disruptions["binding failures"].total,
            nodes=self._nodes,
        )

    def waits(self, now: float) -> tuple[WaitReport, ...]:
        """Return the waiting times of all pods, then by falling priority."""
        classes = [
            self._classes[priority].report(str(priority), now)
            for priority in sorted(self._classes, reverse=True)
        ]
        if self._other.arrived:
            classes.append(self._other.report("other", now))
        return (self._all.report("all", now), *classes)

    def wait_histogram(self) -> Histogram:
        """Return the histogram of waiting times."""
        return Histogram(WAIT_BOUNDS_SECONDS, self._all.waits.histogram(WAIT_BOUNDS_SECONDS))

    def _shown_resources(self) -> list[str]:
        """Return the resources that exist, the usual ones first."""
        there = [name for name, resource in self._resources.items() if resource.allocatable]
        return [name for name in FIRST_RESOURCES if name in there] + sorted(
            name for name in there if name not in FIRST_RESOURCES
        )

    def resources(self) -> tuple[ResourceReport, ...]:
        """Return the utilisation of each resource."""
        return tuple(self._resources[name].report(name) for name in self._shown_resources())

    def moves(self) -> tuple[MoveCount, ...]:
        """Return the numbers of moves in the queue, by falling count."""
        moves = [
            MoveCount(origin.value, destination.value, event, count)
            for (origin, destination, event), count in self._moves.items()
        ]
        moves.sort(key=lambda move: (-move.count, move.origin, move.destination, move.event))
        return tuple(moves)

    def series(self) -> tuple[Series, ...]:
        """Return the time series."""
        resources = {name: self._resources[name] for name in self._shown_resources()}
        sampled = {name: one for name, one in resources.items() if one.was_sampled}
        charts: tuple[tuple[str, str, Mapping[str, Gauge | CountSeries]], ...] = (
            ("Pods", "pods", self._pods),
            ("Queue", "pods", {place.value: gauge for place, gauge in self._queued.items()}),
            ("Utilisation", "share", {name: one.share for name, one in resources.items()}),
            ("Fragmentation", "share", {name: one.fragmentation for name, one in sampled.items()}),
            ("Rates", "per hour", self._rates),
            ("Disruptions", "per hour", self._disruptions),
        )
        return tuple(
            Series(name, chart, unit, series.values())
            for chart, unit, found in charts
            for name, series in found.items()
        )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
