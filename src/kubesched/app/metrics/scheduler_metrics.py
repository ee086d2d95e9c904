"""SchedulerMetrics instruments a scheduler, and provides its metric families.

Events are counted as they happen; sizes are read when a page is requested.

Upstream: pkg/scheduler/metrics (v1.36)
Differs:  gauges are read at the scrape, not up to a second earlier; durations are never dropped
          because a buffer is full; `pod_scheduled_after_flush_total` works, where upstream
          loses the mark; a preemption's duration and result are those at its
          end, where upstream takes both at its beginning; the workers of phases that need none are
          always 0; the algorithm's duration of a group's pod counts once in a cycle of the group,
          for any number of placements tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kubesched.api.core import Pod
from kubesched.app.metrics.family import Accumulators, Labels, PluginCounts
from kubesched.app.metrics.profile_timer import ProfileTimer
from kubesched.framework.cluster_event import ClusterEvent
from kubesched.framework.phase_timer import FILTER, PLACEMENT_SCORE, SCORE
from kubesched.queue.hinting import ask_hint
from kubesched.queue.moves import ClusterChange, QueueMove, QueuePlace
from kubesched.queue.registrations import Registration
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, FailedAttempt, RejectedAgain
from kubesched.scheduler.eviction import PLUGIN as PREEMPTING_PLUGIN
from kubesched.scheduler.eviction import Preemption
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Instruments
from kubesched.scheduler.pod_group_outcome import Outcome
from kubesched.scheduler.profile import Profile

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_ATTEMPTS_MAX: Final = 15
_BINDING: Final = "binding"
_WITH_WORKERS: Final = (FILTER, PLACEMENT_SCORE, SCORE)


class SchedulerMetrics(Instruments):
    """The `Instruments` of a scheduler process.

    Durations of attempts start on the event loop's clock, so `clock` must have the same origin. It
    may be finer: uvloop's clock advances only once per iteration.
    """

    def __init__(self, clock: Callable[[], float], draw: Callable[[], float]) -> None:
        """Set up; `clock` is in seconds, with the same origin as the event loop's time.

        `draw` returns random numbers in [0, 1), which are not those of decisions.
        """
        super().__init__(clock)
        self._draw = draw
        self._own = own = Accumulators("scheduler_")
        self._of_groups = groups = Accumulators("scheduler_podgroup_")
        self._has_groups = False
        self._attempts = own.counter("schedule_attempts_total")
        self._attempt_seconds = own.histogram("scheduling_attempt_duration_seconds")
        self._algorithm_seconds = own.histogram("scheduling_algorithm_duration_seconds")
        self._handling_seconds = own.histogram("event_handling_duration_seconds")
        self._hint_seconds = own.histogram("queueing_hint_execution_duration_seconds")
        self._sli_seconds = own.histogram("pod_scheduling_sli_duration_seconds")
        self._pod_attempts = own.histogram("pod_scheduling_attempts")
        self._after_flush = own.counter("pod_scheduled_after_flush_total")
        self._incoming = own.counter("queue_incoming_pods_total")
        self._victims = own.histogram("preemption_victims")
        self._preemption_seconds = own.histogram("preemption_goroutines_duration_seconds")
        self._preemptions = own.counter("preemption_goroutines_execution_total")
        self._preemption_attempts = own.counter("preemption_attempts_total")
        self._points = own.histogram("framework_extension_point_duration_seconds")
        self._group_attempts = groups.counter("schedule_attempts_total")
        self._group_attempt_seconds = groups.histogram("scheduling_attempt_duration_seconds")
        self._group_algorithm_seconds = groups.histogram("scheduling_algorithm_duration_seconds")
        self._timers: list[ProfileTimer] = []
        self._scheduler: Scheduler | None = None

    # The parts of the scheduler: `Instruments`.

    def plugin_observer(self, scheduler_name: str) -> PluginCounts:
        """Return what receives the counts of a profile's plugins."""
        return PluginCounts(scheduler_name, self._own)

    def phase_timer(self, profile: Profile) -> ProfileTimer:
        """Return the timer of a profile."""
        counts = profile.services.observer
        assert isinstance(counts, PluginCounts), "it comes from `plugin_observer`"
        timer = ProfileTimer(profile, self._own, self.now, self._draw, counts)
        self._timers.append(timer)
        return timer

    def attach(self, scheduler: Scheduler) -> None:
        """Read the sizes of a scheduler, and observe its queue."""
        self._scheduler = scheduler
        scheduler.queue.observers.append(self.moved)
        # Upstream registers the metrics of pod groups only with their feature.
        self._has_groups = scheduler.cache.pod_groups.is_enabled

    # The loop: `Observer`.

    def decided(self, decision: Decision, started: float) -> None:
        """Time the algorithm."""
        self._algorithm_seconds[()].observe(self.now() - started)

    def bound(self, assumed: Assumed, now: float) -> None:
        """Count a pod that got its node."""
        queued = assumed.queued
        self._attempt("scheduled", assumed.profile.scheduler_name, now - assumed.started)
        self._pod_attempts[()].observe(queued.attempts)
        if queued.initial_attempt_timestamp is not None:
            label = str(queued.attempts) if queued.attempts < _ATTEMPTS_MAX else "15+"
            self._sli_seconds[label,].observe(now - queued.initial_attempt_timestamp)
        if queued.was_flushed:
            self._after_flush[()] += 1

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """Count a failed attempt."""
        result = "unschedulable" if attempt.status.is_rejected else "error"
        self._attempt(result, attempt.scheduler_name, now - attempt.started)

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Count pods that were rejected as before."""
        self._algorithm_seconds[()].observe(self.now() - again.started, again.pods)
        profile = again.attempt.scheduler_name
        self._attempt("unschedulable", profile, now - again.started, again.pods)

    def _attempt(self, result: str, profile: str, seconds: float, times: int = 1) -> None:
        labels = (result, profile)
        self._attempts[labels] += times
        self._attempt_seconds[labels].observe(seconds, times)

    def pod_group_tried(self, scheduler_name: str, started: float, now: float) -> None:
        """Time the algorithm of a group."""
        self._group_algorithm_seconds[()].observe(self.now() - started)

    def pod_group_decided(
        self, scheduler_name: str, outcome: Outcome, started: float, now: float
    ) -> None:
        """Count an attempt to schedule a group."""
        labels = (_result_of(outcome), scheduler_name)
        self._group_attempts[labels] += 1
        self._group_attempt_seconds[labels].observe(self.now() - started)

    # Events and the queue.

    @contextmanager
    def handling(self, *events: ClusterEvent, prepared_seconds: float = 0.0) -> Iterator[None]:
        """Time the handling of events."""
        began = self.now() - prepared_seconds
        yield
        seconds = self.now() - began
        for event in events:
            self._handling_seconds[event.label,].observe(seconds)

    def moved(self, move: QueueMove) -> None:
        """Count a pod that enters a queue."""
        place = move.destination
        if place is not QueuePlace.IN_FLIGHT and place is not QueuePlace.NOWHERE:
            self._incoming[place.value, move.event] += move.pods

    def ask_hint(self, registration: Registration, change: ClusterChange, pod: Pod) -> bool:
        """Call a queueing hint, and time it."""
        began, label = self.now(), "Error"
        try:
            is_worth_it = ask_hint(registration, change, pod)
            label = "Queue" if is_worth_it else "QueueSkip"
            return is_worth_it
        finally:
            labels = (registration.plugin, change.event.label, label)
            self._hint_seconds[labels].observe(self.now() - began)

    # Preemption.

    def preempting(self, victims: int) -> None:
        """Count victims."""
        self._victims[()].observe(victims)

    def preempted(self, preemption: Preemption, started: float, *, is_success: bool) -> None:
        """Count a preemption in the background."""
        labels = ("success" if is_success else "error",)
        self._preemptions[labels] += 1
        self._preemption_seconds[labels].observe(self.now() - started)

    # The page.

    def reset(self) -> None:
        """Reset the counts; sizes are not affected."""
        self._own.reset()
        self._of_groups.reset()
        for timer in self._timers:
            timer.reset()

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        for timer in self._timers:
            timer.counts.settle()
        yield from self._own.collect()
        if self._has_groups:
            yield from self._of_groups.collect()
        if self._scheduler is None:
            return
        evaluations = [each for timer in self._timers for each in timer.evaluations()]
        yield self._own.family("plugin_evaluation_total").metric(
            sorted(evaluations, key=lambda each: each[0][1:])
        )
        batches = [each for timer in self._timers for each in timer.batch_attempts()]
        yield self._own.family("batch_attempts_total").metric(sorted(batches))
        yield from self._queue_sizes(self._scheduler)
        sizes = self._scheduler.cache.statistics()
        yield self._own.family("cache_size").metric(
            [
                (("assumed_pods",), sizes.assumed_pods),
                (("nodes",), sizes.nodes),
                (("pods",), sizes.pods),
            ]
        )
        yield self._own.family("goroutines").metric(self._running(self._scheduler))

    def _queue_sizes(self, scheduler: Scheduler) -> Iterator[Metric]:
        sizes = scheduler.queue.statistics()
        yield self._own.family("pending_pods").metric(
            [
                (("active",), sizes.active),
                (("backoff",), sizes.backoff),
                (("gated",), sizes.gated),
                (("unschedulable",), sizes.unschedulable),
            ]
        )
        yield self._own.family("unschedulable_pods").metric(
            [((plugin, profile), pods) for plugin, profile, pods in sizes.unschedulable_plugins]
        )
        if scheduler.queue.scheduling_cycle:
            yield self._own.family("inflight_events").metric(
                [((event,), count) for event, count in sizes.in_flight_events]
            )

    def _running(self, scheduler: Scheduler) -> list[tuple[Labels, float]]:
        points = {labels[0] for labels in self._points}
        divided = {name for timer in self._timers for name in timer.plugins_with_workers()}
        running: list[tuple[Labels, float]] = []
        if self._preemption_attempts[()] or len(scheduler.evictions):
            # Upstream counts the workers that search for victims and those that evict them.
            running.append(((PREEMPTING_PLUGIN,), len(scheduler.evictions)))
        # No page is requested while these run.
        at_rest = divided.union(point for point in _WITH_WORKERS if point in points)
        running += [((operation,), 0) for operation in sorted(at_rest)]
        if sum(self._pod_attempts[()].counts) or scheduler.bindings:
            running.append(((_BINDING,), len(scheduler.bindings)))
        return running


def _result_of(outcome: Outcome) -> str:
    if outcome.status.is_success:
        return "scheduled"
    if not outcome.status.is_rejected:
        return "error"
    return "waiting_on_preemption" if outcome.waits_for_preemption else "unschedulable"
