"""SchedulingQueue holds every pod that waits for a node, and says which one is next.

    add ─▶ activeQ ──────────────────────────── pop ─▶ in flight ── done ─▶ (bound or gone)
     │       ▲  ▲ ▲                              ▲         │
     │       │  │ └─ flush_backoff ─ backoffQ ───┘         │ add_unschedulable_if_not_present:
     │       │  │                     ▲  ▲    (idle)       │ to backoffQ after an error or if
     │       │  └── activate ─────────┤  └─────────────────┤ something happened meanwhile, to
     ▼       │                        │                    │ activeQ if a pending plugin waited
    (gated) unschedulablePods ── move_all, update ◀────────┘ for it, else to unschedulablePods

A PreEnqueue plugin that says no on any way to activeQ or backoffQ sends the pod to
unschedulablePods. The queue has no clock: every operation takes `now`. Nothing here waits: an
operation returns True if a `pop` that found nothing may find a pod now, and then whoever waits
wakes up.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go (v1.36)
Invariants: every pod is in one of activeQ, backoffQ, unschedulablePods and in flight (`check()`).
Differs:  pods are moved in the order of their arrival, where upstream walks maps; pods have no
          signature here; an update that moves a pod to backoffQ while pods are not popped from
          there does not also leave it in unschedulablePods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kubesched.framework.cluster_event import ClusterEvent
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue import queue_events
from kubesched.queue.active_queue import ActiveQueue
from kubesched.queue.apart import check_apart, holder_of
from kubesched.queue.backoff_queue import BackoffQueue, note_failure
from kubesched.queue.cross_topology import PreCheck
from kubesched.queue.gates import Gates
from kubesched.queue.hinting import AskHint, QueueingHints, Strategy, ask_hint
from kubesched.queue.in_flight import InFlight
from kubesched.queue.keyed_heap import SortKey
from kubesched.queue.moves import MoveObserver, Place, QueueMove
from kubesched.queue.nominator import FindPod, Nominator
from kubesched.queue.pod_events import is_pod_updated, pod_events
from kubesched.queue.queue_events import Change
from kubesched.queue.queue_options import ProfileRules, QueueOptions
from kubesched.queue.queue_statistics import QueueStatistics
from kubesched.queue.rejection_counts import RejectionCounts
from kubesched.queue.unschedulable_pods import UnschedulablePods
from kubesched.snapshot.pod_info import PodInfo

_ADD_LABEL: Final = queue_events.UNSCHEDULED_POD_ADD.label
_UPDATE_LABEL: Final = queue_events.UNSCHEDULED_POD_UPDATE.label
_DELETE_LABEL: Final = queue_events.UNSCHEDULED_POD_DELETE.label
_FAILURE_LABEL: Final = queue_events.SCHEDULE_ATTEMPT_FAILURE
_NOMINATING_LABELS: Final = frozenset({_ADD_LABEL, _UPDATE_LABEL})


class QueueError(ValueError):
    """A pod is not in the state that the operation needs."""


class SchedulingQueue:
    """Pods that wait, by `namespace/name`.

    Attributes:
        nominator: Pods that were promised a node.
        gates: The PreEnqueue plugins.
        hints: What plugins registered.
        observers: Told of every move.
        on_backoff: Called when a pod begins to back off: `next_backoff_flush` may be sooner now.
        on_unschedulable: Is told after which second a pod that nothing helps has waited too long.
        scheduling_cycle: How many pods have been popped.
        is_closed: Whether `close` was called; whoever waits for a pod then stops once `pop` finds
            none.
    """

    def __init__(
        self,
        sort_key: SortKey,
        profiles: Mapping[str, ProfileRules],
        options: QueueOptions | None = None,
        *,
        find_pod: FindPod | None = None,
        ask: AskHint = ask_hint,
        observers: Iterable[MoveObserver] = (),
    ) -> None:
        """Set up an empty queue.

        Args:
            sort_key: Of the first profile's QueueSort plugin; it orders the pods of all profiles.
            profiles: By scheduler name.
            options: How to behave.
            find_pod: Looks up pods as observed, for nominations.
            ask: What asks a hint.
            observers: Told of every move.
        """
        self._options = options = options or QueueOptions()
        self.nominator = Nominator(find_pod)
        self.observers = list(observers)
        self.on_backoff: Callable[[], None] = lambda: None
        self.on_unschedulable: Callable[[float], None] = lambda _late_after: None
        self.scheduling_cycle = 0
        self.is_closed = False
        self._active = ActiveQueue(sort_key)
        self._backoff = BackoffQueue(
            sort_key,
            initial_seconds=options.initial_backoff_seconds,
            max_seconds=options.max_backoff_seconds,
            pops_from_backoff=options.pops_from_backoff,
            has_pod_groups=options.generic_workload,
        )
        self._unschedulable = UnschedulablePods()
        self._in_flight = InFlight()
        self._rejections = RejectionCounts()
        self.hints = QueueingHints(
            {name: rules.registrations for name, rules in profiles.items()}, ask
        )
        self.gates = Gates(
            {name: rules.pre_enqueue for name, rules in profiles.items()},
            self.hints,
            self._rejections,
        )
        self._move_request_cycle = -1

    # Questions.

    def has_ready(self) -> bool:
        """Whether `pop` finds a pod."""
        if self._active:
            return True
        return self._options.pops_from_backoff and self._backoff.has_rejected

    def get_pod(self, key: str) -> QueuedPodInfo | None:
        """Return the waiting pod of that `namespace/name`; pods in flight do not wait."""
        return self._backoff.get(key) or self._unschedulable.get(key) or self._active.get(key)

    def __contains__(self, key: str) -> bool:
        return key in self._unschedulable or key in self._backoff or key in self._active

    def is_in_flight(self, uid: str) -> bool:
        """Whether the pod was popped and nobody said yet what became of it."""
        return uid in self._in_flight

    def pods(self, place: Place) -> list[QueuedPodInfo]:
        """Return the pods of one place; those of the heaps as they would leave."""
        holders: dict[Place, ActiveQueue | BackoffQueue | UnschedulablePods | InFlight] = {
            Place.ACTIVE: self._active,
            Place.BACKOFF: self._backoff,
            Place.UNSCHEDULABLE: self._unschedulable,
            Place.IN_FLIGHT: self._in_flight,
        }
        holder = holders.get(place)
        return [] if holder is None else holder.pods()

    def statistics(self) -> QueueStatistics:
        """Count what is here."""
        return QueueStatistics(
            active=len(self._active),
            backoff=len(self._backoff),
            unschedulable=len(self._unschedulable) - self._unschedulable.gated,
            gated=self._unschedulable.gated,
            in_flight=len(self._in_flight),
            in_flight_events=tuple(sorted(self._in_flight.counts().items())),
            unschedulable_plugins=self._rejections.series(),
            scheduling_cycle=self.scheduling_cycle,
        )

    def check(self) -> None:
        """Assert that every pod is in one place, and that each place is sound."""
        for part in (self._active, self._backoff, self._unschedulable, self._in_flight):
            part.check()
        self.nominator.check()
        check_apart(self._active, self._backoff, self._unschedulable, self._in_flight)

    # Pods come, change and go.

    def add(self, info: PodInfo, now: float) -> bool:
        """Take in a new pod, to activeQ or behind its gate; return whether `pop` may find it."""
        queued = QueuedPodInfo(info, timestamp=now)
        return self._to_active(queued, Place.NOWHERE, _ADD_LABEL, now)

    def update(self, old: PodInfo, new: PodInfo, now: float) -> bool:
        """Take in a changed pod that has no node; return whether `pop` may find it now."""
        events: Sequence[ClusterEvent] = ()
        if self._options.queueing_hints:
            events = pod_events(old, new)
            if new.uid in self._in_flight:
                # If it comes back, it comes back in its latest version.
                for event in events:
                    self._in_flight.record(Change(event, old.pod, new.pod))
                return False
        if self._update_in_heap(old, new):
            return False
        queued = self._unschedulable.get(new.key)
        if queued is None:
            queued = QueuedPodInfo(new, timestamp=now)
            return self._to_active(queued, Place.NOWHERE, _UPDATE_LABEL, now)
        queued.pod_info = new
        self._unschedulable.put(queued, self.hints.topics_of_pod(queued))
        self.nominator.update(old, new)
        if not self._options.queueing_hints:
            return is_pod_updated(old.pod, new.pod) and self._wakes(
                self._requeue(
                    queued, Place.UNSCHEDULABLE, Strategy.AFTER_BACKOFF, _UPDATE_LABEL, now
                )
            )
        return any(
            self._update_event(queued, Change(event, old.pod, new.pod), now) for event in events
        )

    def _update_in_heap(self, old: PodInfo, new: PodInfo) -> bool:
        queued = self._active.get(old.key)
        if queued is not None:
            queued.pod_info = new
            self._active.add(queued)
        else:
            queued = self._backoff.get(old.key)
            if queued is None:
                return False
            queued.pod_info = new
            self._backoff.reorder(queued)
        self.nominator.update(old, new)
        return True

    def _update_event(self, queued: QueuedPodInfo, change: Change, now: float) -> bool:
        strategy = self.hints.strategy(queued, change)
        in_backoff = queued.pod_info.key in self._backoff
        if strategy is Strategy.SKIP and in_backoff:
            return False
        origin = Place.BACKOFF if in_backoff else Place.UNSCHEDULABLE
        return self._wakes(self._requeue(queued, origin, strategy, change.event.label, now))

    def delete(self, info: PodInfo, now: float) -> None:
        """Drop a pod and what it was promised; one in flight is dropped when it is done."""
        key = info.key
        self.nominator.delete(info.uid)
        queued, origin = self._active.delete(key), Place.ACTIVE
        if queued is None:
            queued, origin = self._backoff.delete(key), Place.BACKOFF
        if queued is None:
            queued, origin = self._unschedulable.delete(key), Place.UNSCHEDULABLE
            if queued is not None:
                self._rejections.remove_all(queued)
        if queued is not None:
            self._report(queued, origin, Place.NOWHERE, _DELETE_LABEL, now)

    # Something happened.

    def activate(self, pods: Iterable[PodInfo], now: float) -> bool:
        """Move pods to activeQ now, unless a gate holds them; return whether any got there.

        A pod in flight comes back to backoffQ at least; one that is not known is ignored.
        """
        woke = False
        for info in pods:
            if self._activate(info, now):
                woke = True
                continue
            if info.uid in self._in_flight:
                self._in_flight.record(Change(queue_events.FORCE_ACTIVATE, None, info.pod))
            self._move_request_cycle = self.scheduling_cycle
        return woke

    def _activate(self, info: PodInfo, now: float) -> bool:
        queued, origin = self._unschedulable.get(info.key), Place.UNSCHEDULABLE
        if queued is None:
            queued, origin = self._backoff.delete(info.key), Place.BACKOFF
        if queued is None:
            return False
        return self._to_active(queued, origin, queue_events.FORCE_ACTIVATE.label, now)

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        now: float,
        pre_check: PreCheck | None = None,
    ) -> bool:
        """Move the pods that an event may have helped; return whether `pop` may find one.

        Args:
            event: What happened in the cluster.
            old: The API object before, None if there was none.
            new: The API object after, None if it is gone.
            now: Seconds.
            pre_check: Leaves out pods for which it is false.
        """
        if not self.hints.is_of_interest(event):
            return False
        candidates: Sequence[QueuedPodInfo]
        change = Change(event, old, new)
        if not self._unschedulable:
            candidates = ()
        elif (topics := self.hints.topics_of_change(change)) is None:
            candidates = self._unschedulable.pods()
        else:
            candidates = self._unschedulable.filed_under(topics)
        if pre_check is not None:
            candidates = [queued for queued in candidates if pre_check(queued)]
        return self._move(candidates, change, now)

    def _move(self, candidates: Sequence[QueuedPodInfo], change: Change, now: float) -> bool:
        event, woke = change.event, False
        strategy_of = self.hints.strategies(change)
        for queued in candidates:
            if queued.is_gated and not any(e.matches(event) for e in queued.gating_plugin_events):
                continue
            strategy = strategy_of(queued)
            if strategy is Strategy.SKIP:
                continue
            self._unschedulable.delete(queued.pod_info.key)
            place = self._requeue(queued, Place.UNSCHEDULABLE, strategy, event.label, now)
            woke = self._wakes(place) or woke
        self._move_request_cycle = self.scheduling_cycle
        self._in_flight.record(change)
        return woke

    def flush_backoff(self, now: float) -> bool:
        """Move the pods whose backoff has ended to activeQ; return whether any got there."""
        woke = False
        for queued in self._backoff.pop_completed(now):
            label = queue_events.BACKOFF_COMPLETE
            woke = self._to_active(queued, Place.BACKOFF, label, now) or woke
        return woke

    def next_backoff_flush(self, now: float) -> float | None:
        """Return the whole second when `flush_backoff` is due next; None if no pod backs off."""
        return self._backoff.next_completion(now)

    def late_after(self) -> float | None:
        """Return after which second `flush_unschedulable` moves a pod; None if no pod is there."""
        oldest = min((each.timestamp for each in self._unschedulable.pods()), default=None)
        return None if oldest is None else oldest + self._options.max_in_unschedulable_pods_seconds

    def flush_unschedulable(self, now: float) -> bool:
        """Move pods that nothing has helped for too long; return whether `pop` may find one."""
        longest = self._options.max_in_unschedulable_pods_seconds
        late = [each for each in self._unschedulable.pods() if now - each.timestamp > longest]
        for queued in late:
            queued.was_flushed = True
        if not late:
            return False
        return self._move(late, Change(queue_events.UNSCHEDULABLE_TIMEOUT), now)

    # A pod is tried.

    def pop(self, now: float) -> QueuedPodInfo | None:
        """Take out the next pod, now in flight; None if there is none.

        If activeQ is empty, that is the first of the rejected pods that back off.
        """
        while True:
            queued = self._active.pop()
            if queued is None and self._options.pops_from_backoff:
                queued = self._backoff.pop_rejected()
                if queued is not None:
                    label = queue_events.POP_FROM_BACKOFF
                    self._report(queued, Place.BACKOFF, Place.ACTIVE, label, now)
            if queued is None or self._take_off(queued, now):
                return queued

    def pop_specific_pod(self, info: PodInfo, now: float) -> QueuedPodInfo | None:
        """Take out one waiting pod, now in flight; None if it does not wait or is held back."""
        self._activate(info, now)
        queued = self._active.delete(info.key)
        return queued if queued is not None and self._take_off(queued, now) else None

    def _take_off(self, queued: QueuedPodInfo, now: float) -> bool:
        queued.attempts += 1
        if self._options.queueing_hints:
            if queued.pod_info.uid in self._in_flight:
                label = queue_events.POD_DISCARDED
                self._report(queued, Place.ACTIVE, Place.NOWHERE, label, now)
                return False
            self._in_flight.add(queued)
        self.scheduling_cycle += 1
        self._rejections.remove_all(queued)
        self._report(queued, Place.ACTIVE, Place.IN_FLIGHT, queue_events.POD_POPPED, now)
        return True

    def done(self, uid: str, now: float) -> None:
        """Let go of a pod in flight that will not come back; one that is not known is fine."""
        queued = self._in_flight.done(uid)
        if queued is not None:
            label = queue_events.POD_DONE
            self._report(queued, Place.IN_FLIGHT, Place.NOWHERE, label, now)

    def add_unschedulable_if_not_present(
        self, queued: QueuedPodInfo, now: float, cycle: int | None = None
    ) -> bool:
        """Take back a pod that was tried in vain; return whether `pop` may find one.

        Its plugin sets say why: both empty means an error. Whatever happens, the pod is not in
        flight afterwards.

        Args:
            queued: What `pop` returned, with the latest version of the pod.
            now: Seconds.
            cycle: `scheduling_cycle` when it was tried; the current one if not given. Only looked
                at without queueing hints.

        Raises:
            QueueError: The pod waits already.
        """
        uid = queued.pod_info.uid
        holder = holder_of(queued.pod_info.key, self._active, self._backoff, self._unschedulable)
        if holder:
            self.done(uid, now)
            raise QueueError(f"Pod {queued.pod_info.key} is already present in the {holder} queue")
        note_failure(queued, now)
        self._rejections.add_all(queued)
        strategy = self._strategy_of_failed(queued, cycle)
        if self._options.queueing_hints or strategy is Strategy.SKIP:
            place = self._requeue(queued, Place.IN_FLIGHT, strategy, _FAILURE_LABEL, now)
        else:
            # What decided before there were hints did not look whether the backoff had ended.
            place = self._to_backoff(queued, Place.IN_FLIGHT, _FAILURE_LABEL, now)
        self._in_flight.done(uid)
        return self._wakes(place)

    def _strategy_of_failed(self, queued: QueuedPodInfo, cycle: int | None) -> Strategy:
        if not queued.rejecting_plugins:
            return Strategy.AFTER_BACKOFF
        if not self._options.queueing_hints:
            tried = self.scheduling_cycle if cycle is None else cycle
            moved = self._move_request_cycle >= tried
            return Strategy.AFTER_BACKOFF if moved else Strategy.SKIP
        in_group = queued.pod_info.pod.spec.scheduling_group is not None
        changes = self._in_flight.since_popped(queued.pod_info.uid)
        if changes is None or (in_group and self._options.generic_workload):
            return Strategy.AFTER_BACKOFF
        return self.hints.strategy_of_all(queued, changes)

    def close(self) -> None:
        """Forget the pods in flight; whoever waits for a pod stops."""
        for queued in self._in_flight.pods():
            self._in_flight.done(queued.pod_info.uid)
        self.is_closed = True

    # From place to place.

    def _requeue(
        self, queued: QueuedPodInfo, origin: Place, strategy: Strategy, label: str, now: float
    ) -> Place:
        if strategy is Strategy.SKIP:
            return self._to_unschedulable(queued, origin, label, now)
        if strategy is Strategy.AFTER_BACKOFF and self._backoff.is_backing_off(queued, now):
            return self._to_backoff(queued, origin, label, now)
        added = self._to_active(queued, origin, label, now)
        return Place.ACTIVE if added else Place.UNSCHEDULABLE

    def _to_active(self, queued: QueuedPodInfo, origin: Place, label: str, now: float) -> bool:
        # The gates were asked when the pod entered backoffQ, if it may be popped from there.
        if not (self._options.pops_from_backoff and origin is Place.BACKOFF):
            self.gates.ask(queued)
        key = queued.pod_info.key
        if queued.is_gated:
            if key not in self._active and key not in self._backoff:
                self._to_unschedulable(queued, origin, label, now)
            return False
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = now
        self._unschedulable.delete(key)
        self._backoff.delete(key)
        self._active.add(queued)
        self._report(queued, origin, Place.ACTIVE, label, now)
        if label in _NOMINATING_LABELS:
            self.nominator.add(queued.pod_info)
        return True

    def _to_backoff(self, queued: QueuedPodInfo, origin: Place, label: str, now: float) -> Place:
        if self._options.pops_from_backoff:
            self.gates.ask(queued)
            if queued.is_gated:
                return self._to_unschedulable(queued, origin, label, now)
        self._unschedulable.delete(queued.pod_info.key)
        self._backoff.add(queued)
        self._report(queued, origin, Place.BACKOFF, label, now)
        self.on_backoff()
        return Place.BACKOFF

    def _to_unschedulable(
        self, queued: QueuedPodInfo, origin: Place, label: str, now: float
    ) -> Place:
        if self._unschedulable.put(queued, self.hints.topics_of_pod(queued)):
            self._report(queued, origin, Place.UNSCHEDULABLE, label, now)
            longest = self._options.max_in_unschedulable_pods_seconds
            self.on_unschedulable(queued.timestamp + longest)
        return Place.UNSCHEDULABLE

    def _wakes(self, place: Place) -> bool:
        return place is Place.ACTIVE or (place is Place.BACKOFF and self._options.pops_from_backoff)

    def _report(
        self, queued: QueuedPodInfo, origin: Place, destination: Place, event: str, now: float
    ) -> None:
        if self.observers:
            gating = queued.gating_plugin
            move = QueueMove(queued.pod_info.key, origin, destination, event, now, gating)
            for observer in self.observers:
                observer(move)
