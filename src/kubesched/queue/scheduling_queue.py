"""SchedulingQueue holds the pods that have no node yet and returns the next one to schedule.

    add ─▶ activeQ ──────────────────────────── pop ─▶ in flight ── done ─▶ (bound or gone)
     │       ▲  ▲ ▲                              ▲         │
     │       │  │ └─ flush_backoff ─ backoffQ ───┘         │ add_unschedulable_if_not_present:
     │       │  │                     ▲  ▲    (idle)       │ to backoffQ after an error or if
     │       │  └── activate ─────────┤  └─────────────────┤ something happened meanwhile, to
     ▼       │                        │                    │ activeQ if a pending plugin waited
    (gated) unschedulablePods ── move_all, update ◀────────┘ for it, else to unschedulablePods

Equal pods that were rejected together move together, as a cohort (`queue.cohorts`): the first of
them is in a part of the queue, the others follow it. `take_again` and `try_again` try a cohort in
one step. An operation on one pod first takes it out of its cohort.

PreEnqueue plugins run before a pod enters activeQ or backoffQ; a pod that one of them rejects goes
to unschedulablePods. The queue has no clock: every operation takes `now`, in seconds. Nothing here
blocks: an operation returns True if `pop` may find a pod that it did not find before, so that the
caller can wake its consumer.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go (v1.36)
Invariants: a pod is either in exactly one of activeQ, backoffQ and unschedulablePods, or in flight
          (`check()`).
Differs:  pods move in the order of their arrival, where upstream iterates over maps; pods have no
          signature here; without pop-from-backoff, an update that moves a pod to backoffQ also
          removes it from unschedulablePods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubesched.framework.cluster_event import ClusterEvent, pod_events
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue import moves
from kubesched.queue.backoff_queue import QueueOptions, note_failure
from kubesched.queue.gates import Gates, ProfileRules
from kubesched.queue.hinting import AskHint, QueueingHints, QueueingStrategy, ask_hint
from kubesched.queue.in_flight import InFlight
from kubesched.queue.keyed_heap import SortKey
from kubesched.queue.moves import ClusterChange, MoveObserver, QueueMove, QueuePlace
from kubesched.queue.parts import QueueParts
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo

PreCheck = Callable[[QueuedPodInfo], bool]
"""Whether an event may move this pod; called before the queueing hints."""

_ADD_LABEL: Final = moves.UNSCHEDULED_POD_ADD.label
_UPDATE_LABEL: Final = moves.UNSCHEDULED_POD_UPDATE.label
_DELETE_LABEL: Final = moves.UNSCHEDULED_POD_DELETE.label
_FAILURE_LABEL: Final = moves.SCHEDULE_ATTEMPT_FAILURE
_NOMINATING_LABELS: Final = frozenset({_ADD_LABEL, _UPDATE_LABEL})


class QueueError(ValueError):
    """The operation does not apply to the pod's state."""


class QueueStatistics(msgspec.Struct, frozen=True):
    """Numbers of pods and events in the queue, for metrics.

    Attributes:
        active, backoff: Pods in activeQ and backoffQ.
        unschedulable: Pods in unschedulablePods that no plugin gates.
        gated: Pods in unschedulablePods that a PreEnqueue plugin gates.
        in_flight_events: (event label, count), sorted; `PodPopped` counts the pods in flight.
        unschedulable_plugins: (plugin, profile, number of pods it rejected), sorted.
    """

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight_events: tuple[tuple[str, int], ...]
    unschedulable_plugins: tuple[tuple[str, str, int], ...]


class SchedulingQueue:
    """Pods without a node, by `namespace/name`.

    Attributes:
        nominator: The nominated pods.
        gates: The PreEnqueue plugins.
        hints: The plugins' registrations and queueing hints.
        cohorts: The equal pods that move as one.
        observers: Called with every move.
        on_backoff: Called when a pod enters backoffQ: `next_backoff_flush` may be earlier now.
        on_unschedulable: Called when a pod enters unschedulablePods, with the second after which
            `flush_unschedulable` moves it.
        scheduling_cycle: How many pods have been popped.
        is_closed: Whether `close` was called; consumers stop once `pop` returns None.
    """

    def __init__(
        self,
        sort_key: SortKey,
        profiles: Mapping[str, ProfileRules],
        options: QueueOptions | None = None,
        *,
        nominator: Nominator | None = None,
        ask: AskHint = ask_hint,
    ) -> None:
        """Set up an empty queue.

        `sort_key` is that of the first profile's QueueSort plugin; it orders the pods of all
        profiles, which are given by scheduler name. `ask` calls a queueing hint; callers wrap it to
        measure or log hints.
        """
        self._options = options = options or QueueOptions()
        self.nominator = Nominator() if nominator is None else nominator
        self.observers: list[MoveObserver] = []
        self.on_backoff: Callable[[], None] = lambda: None
        self.on_unschedulable: Callable[[float], None] = lambda _late_after: None
        self.scheduling_cycle = 0
        self._initial_attempts = 0
        self.is_closed = False
        self._in_flight = InFlight()
        # Pods by plugin and profile. As upstream, one that is deleted from activeQ or backoffQ
        # stays counted, and a count stays when it is 0.
        self._rejections: Counter[tuple[str, str]] = Counter()
        self.hints = QueueingHints(
            {name: rules.registrations for name, rules in profiles.items()}, ask
        )
        self._parts = QueueParts(sort_key, options, self.hints.topics_of_pod)
        self._active = self._parts.active
        self._backoff = self._parts.backoff
        self._unschedulable = self._parts.unschedulable
        self.cohorts = self._parts.cohorts
        self.gates = Gates(profiles, self._rejections)

    # Queries.

    def peek(self) -> QueuedPodInfo | None:
        """Return the pod that `pop` looks at first; None if there is none."""
        return self._parts.peek()

    def get_pod(self, key: str) -> QueuedPodInfo | None:
        """Return the pod of that `namespace/name`; None if it is unknown or in flight."""
        return self._parts.get(key)

    def __contains__(self, key: str) -> bool:
        return key in self._parts

    def is_in_flight(self, uid: str) -> bool:
        """Whether the pod was popped, and neither `done` nor put back since."""
        return uid in self._in_flight

    def place_of(self, key: str) -> QueuePlace:
        """Return where the pod of that `namespace/name` is; NOWHERE if `get_pod` returns None."""
        return self._parts.place_of(key)

    def backoff_end(self, queued: QueuedPodInfo) -> float:
        """Return the second at which `flush_backoff` moves a pod of backoffQ."""
        return self._backoff.completion(queued)

    def pods(self, place: QueuePlace) -> list[QueuedPodInfo]:
        """Return the pods of one place; those of activeQ and backoffQ in the order of popping."""
        if place is QueuePlace.IN_FLIGHT:
            return self._in_flight.pods()
        return [] if place is QueuePlace.NOWHERE else self._parts.pods(place)

    def statistics(self) -> QueueStatistics:
        """Return the current counts."""
        sizes = self._parts.sizes()
        return QueueStatistics(
            active=sizes[QueuePlace.ACTIVE],
            backoff=sizes[QueuePlace.BACKOFF],
            unschedulable=sizes[QueuePlace.UNSCHEDULABLE] - self._unschedulable.gated,
            gated=self._unschedulable.gated,
            in_flight_events=tuple(sorted(self._in_flight.counts().items())),
            unschedulable_plugins=tuple(sorted((*of, n) for of, n in self._rejections.items())),
        )

    def check(self) -> None:
        """Assert that every pod is in one place and not gated in activeQ; check each place."""
        self._parts.check()
        self._in_flight.check()
        self.nominator.check()
        gated = [queued.key for queued in self._active if queued.is_gated]
        assert not gated, f"gated pods are active: {gated}"
        for queued in self._in_flight.pods():
            key, uid = queued.key, queued.pod_info.uid
            waiting = self._parts.find(key)
            assert waiting is None or waiting.pod_info.uid != uid, f"{key} waits and is in flight"

    # Pods are added, updated and deleted.

    def add(self, info: PodInfo, now: float) -> bool:
        """Add a new pod; return whether it is in activeQ, and not in unschedulablePods as gated."""
        self._parts.single_out(info.key)
        return self._enter(info, _ADD_LABEL, now)

    def _enter(self, info: PodInfo, label: str, now: float) -> bool:
        queued = QueuedPodInfo(info, timestamp=now)
        self._parts.arrive(queued)
        return self._to_active(queued, QueuePlace.NOWHERE, label, now)

    def update(self, old: PodInfo, new: PodInfo, now: float) -> bool:
        """Update a pod that has no node; return whether `pop` may find it now."""
        events = pod_events(old, new)
        if new.uid in self._in_flight:
            # If it is put back, the caller does so with its latest version.
            for event in events:
                self._in_flight.record(ClusterChange(event, old.pod, new.pod))
            return False
        self._parts.single_out(old.key)
        if self._update_in_heap(old, new):
            return False
        queued = self._unschedulable.get(new.key)
        if queued is None:
            return self._enter(new, _UPDATE_LABEL, now)
        queued.pod_info, queued.standing_message = new, ""
        self.nominator.update(old, new)
        # There is at least one event, and each files the pod again.
        return any(
            self._update_event(queued, ClusterChange(event, old.pod, new.pod), now)
            for event in events
        )

    def _update_in_heap(self, old: PodInfo, new: PodInfo) -> bool:
        for part in (self._active, self._backoff):
            queued = part.get(old.key)
            if queued is not None:
                queued.pod_info, queued.standing_message = new, ""
                part.add(queued)
                self.nominator.update(old, new)
                return True
        return False

    def _update_event(self, queued: QueuedPodInfo, change: ClusterChange, now: float) -> bool:
        strategy = self.hints.strategy(queued, change)
        in_backoff = queued.key in self._backoff
        if strategy is QueueingStrategy.SKIP and in_backoff:
            return False
        origin = QueuePlace.BACKOFF if in_backoff else QueuePlace.UNSCHEDULABLE
        self._parts.arrive(queued)
        return self._wakes(self._requeue(queued, origin, strategy, change.event.label, now))

    def delete(self, info: PodInfo, now: float) -> None:
        """Delete a pod and its nomination; a pod in flight stays until it is done."""
        self.nominator.delete(info.uid)
        deleted = self._parts.delete(info.key)
        if deleted is not None:
            queued, origin = deleted
            if origin is QueuePlace.UNSCHEDULABLE:
                self._rejections.subtract(_rejections_of(queued))
            self._report(queued, origin, QueuePlace.NOWHERE, _DELETE_LABEL, now)

    # Events move pods.

    def activate(self, pods: Iterable[PodInfo], now: float) -> bool:
        """Move pods to activeQ unless they are gated; return whether any got there.

        The event is recorded for pods in flight. Unknown pods are ignored.
        """
        woke = False
        for info in pods:
            if info.uid not in self._in_flight:
                woke = self._activate(info, now) or woke
            elif not self._is_member(info):
                self._in_flight.record(ClusterChange(moves.FORCE_ACTIVATE, None, info.pod))
        return woke

    def _activate(self, info: PodInfo, now: float) -> bool:
        self._parts.single_out(info.key)
        queued, origin = self._unschedulable.get(info.key), QueuePlace.UNSCHEDULABLE
        if queued is None:
            queued, origin = self._backoff.delete(info.key), QueuePlace.BACKOFF
        if queued is None:
            return False
        self._parts.arrive(queued)
        return self._to_active(queued, origin, moves.FORCE_ACTIVATE.label, now)

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        now: float,
        pre_check: PreCheck | None = None,
    ) -> bool:
        """Move the pods that an event may make schedulable; return whether `pop` may find one.

        `old` and `new` are the API object before and after, None if it was added or deleted. `now`
        is in seconds. Pods for which `pre_check` returns False stay where they are.
        """
        if not self.hints.is_of_interest(event):
            return False
        change = ClusterChange(event, old, new)
        if not self._unschedulable:
            self._in_flight.record(change)
            return False
        waiting, topics = self._unschedulable, self.hints.topics_of_change(change)
        candidates: Sequence[QueuedPodInfo]
        candidates = waiting.pods() if topics is None else waiting.filed_under(topics)
        if pre_check is not None:
            candidates = self._parts.one_by_one(candidates, lambda _leader: True)
            candidates = [queued for queued in candidates if pre_check(queued)]
        return self._move(candidates, change, now)

    def _move(self, candidates: Sequence[QueuedPodInfo], change: ClusterChange, now: float) -> bool:
        event, label, woke = change.event, change.event.label, False
        strategy_of, concerned = self.hints.strategies(change), self.hints.plugins_of(event)
        candidates = self._parts.one_by_one(
            candidates, lambda leader: not self.hints.is_shared(leader, change)
        )
        self.cohorts.begin_step()
        place, staying = QueuePlace.UNSCHEDULABLE, set[str]()
        if self._options.pops_from_backoff:
            # Hundreds of preemptors may wait, and each victim's deletion concerns them all.
            gated = [queued for queued in candidates if queued.gating_plugin in concerned]
            for equal in self.gates.staying(gated, change, self.hints, strategy_of):
                keys = [queued.key for queued in equal]
                staying.update(keys)
                gating = equal[0].gating_plugin
                self._notify(QueueMove(keys[0], place, place, label, now, gating, keys[1:]))
        for queued in candidates:
            if queued.is_gated and (queued.key in staying or queued.gating_plugin not in concerned):
                continue
            strategy = strategy_of(queued)
            if strategy is QueueingStrategy.SKIP:
                continue
            if queued.is_gated and self._stays_gated(queued, strategy, now):
                self._report(queued, place, place, label, now)
                continue
            self._unschedulable.delete(queued.key)
            self.cohorts.arrive(queued)
            woke = self._wakes(self._requeue(queued, place, strategy, label, now)) or woke
        self._in_flight.record(change)
        return woke

    def _stays_gated(self, queued: QueuedPodInfo, strategy: QueueingStrategy, now: float) -> bool:
        goes_to_backoff = strategy is QueueingStrategy.AFTER_BACKOFF and (
            self._backoff.is_backing_off(queued, now)
        )
        if goes_to_backoff and not self._options.pops_from_backoff:
            return False
        return bool(self.gates.still_gated([queued]))

    def flush_backoff(self, now: float) -> bool:
        """Move the pods whose backoff has ended to activeQ; return whether any got there."""
        woke, before = False, None
        for queued in self._backoff.pop_completed(now):
            order = bool(queued.rejecting_plugins), self._backoff.order(queued)
            if order != before:
                self.cohorts.begin_step()
            before = order
            self.cohorts.arrive(queued)
            woke = self._to_active(queued, QueuePlace.BACKOFF, moves.BACKOFF_COMPLETE, now) or woke
        return woke

    def next_backoff_flush(self, now: float) -> float | None:
        """Return the whole second when `flush_backoff` is due next; None if backoffQ is empty."""
        return self._backoff.next_completion(now)

    def next_second(self, now: float) -> float:
        """Return when the next second begins, the earliest time of a flush of backoffQ."""
        return self._backoff.second_of(now) + 1.0

    def late_after(self) -> float | None:
        """Return the second after which `flush_unschedulable` moves a pod; None without pods."""
        oldest = min((each.timestamp for each in self._unschedulable.pods()), default=None)
        return None if oldest is None else oldest + self._options.max_in_unschedulable_pods_seconds

    def flush_unschedulable(self, now: float) -> bool:
        """Retry pods that were unschedulable for too long; return whether `pop` may find one."""
        longest = self._options.max_in_unschedulable_pods_seconds
        late = [each for each in self._unschedulable.pods() if now - each.timestamp > longest]
        for queued in late:
            queued.was_flushed = True
        if not late:
            return False
        return self._move(late, ClusterChange(moves.UNSCHEDULABLE_TIMEOUT), now)

    # Pods are scheduled.

    def pop(self, now: float) -> QueuedPodInfo | None:
        """Remove the next pod and return it, now in flight; None if there is none.

        If activeQ is empty, this is the first rejected pod of backoffQ.
        """
        while (queued := self._parts.peek()) is not None:
            self._parts.single_out(queued.key)
            origin = self._parts.take(queued)
            if origin is QueuePlace.BACKOFF:
                self._report(queued, origin, QueuePlace.ACTIVE, moves.POP_FROM_BACKOFF, now)
            if self._begin_attempt(queued, now):
                return queued
        return None

    # Pods are rejected again.

    def take_again(
        self, is_rejected: Callable[[QueuedPodInfo], bool]
    ) -> list[tuple[QueuedPodInfo, QueuePlace]]:
        """Remove the next pods as long as they are rejected again; return them for `try_again`.

        Those that follow a pod are taken with it, up to the first pod that is not rejected again.
        """
        taken: list[tuple[QueuedPodInfo, QueuePlace]] = []
        while (queued := self._parts.peek()) is not None:
            if queued.pod_info.uid in self._in_flight or not is_rejected(queued):
                break
            taken.append((queued, self._parts.take(queued)))
        if taken and queued is not None:
            order = self._parts.order(queued, self.place_of(queued.key))
            for earlier, origin in taken:
                if self._parts.order(earlier, origin) == order:
                    later = self.cohorts.split(earlier, queued.arrival)
                    if later is not None:
                        self._parts.put_beside(origin, later)
        return taken

    def try_again(
        self, taken: Sequence[tuple[QueuedPodInfo, QueuePlace]], now: float
    ) -> Iterator[QueuedPodInfo]:
        """Pop what `take_again` returned, yield each pod while it is tried, and put it back."""
        before: tuple[object, ...] = ()
        for queued, origin in taken:
            order = self._parts.order(queued, origin)
            if origin is QueuePlace.BACKOFF:
                self._report(queued, origin, QueuePlace.ACTIVE, moves.POP_FROM_BACKOFF, now)
            self.scheduling_cycle += self.cohorts.attempt(queued)
            self._report(queued, QueuePlace.ACTIVE, QueuePlace.IN_FLIGHT, moves.POD_POPPED, now)
            yield queued
            note_failure(queued, now)
            if order != before:
                self.cohorts.begin_step()
            before = order
            self.cohorts.arrive(queued)
            self._to_unschedulable(queued, QueuePlace.IN_FLIGHT, _FAILURE_LABEL, now)
            self._parts.follow_latest(queued)

    def pop_specific_pod(self, info: PodInfo, now: float) -> QueuedPodInfo | None:
        """Remove one pod and return it, now in flight; None if it is not queued or is gated."""
        self._activate(info, now)
        queued = self._active.delete(info.key)
        return queued if queued is not None and self._begin_attempt(queued, now) else None

    def _begin_attempt(self, queued: QueuedPodInfo, now: float) -> bool:
        """Put a popped pod in flight; return False if another pod of its uid is."""
        queued.attempts += 1
        if queued.pod_info.uid in self._in_flight:
            self._report(queued, QueuePlace.ACTIVE, QueuePlace.NOWHERE, moves.POD_DISCARDED, now)
            return False
        self._in_flight.add(queued)
        self.scheduling_cycle += 1
        self._rejections.subtract(_rejections_of(queued))
        self._report(queued, QueuePlace.ACTIVE, QueuePlace.IN_FLIGHT, moves.POD_POPPED, now)
        return True

    def done(self, uid: str, now: float) -> None:
        """End the flight of a pod that will not be put back; unknown pods are ignored."""
        queued = self._in_flight.done(uid)
        if queued is not None:
            self._report(queued, QueuePlace.IN_FLIGHT, QueuePlace.NOWHERE, moves.POD_DONE, now)

    def add_unschedulable_if_not_present(self, queued: QueuedPodInfo, now: float) -> bool:
        """Put back a pod that could not be scheduled; return whether `pop` may find one.

        `queued` is what `pop` returned, with the latest version of the pod; `now` is in seconds.
        Its plugin sets say why: both empty means an error. The pod is not in flight afterwards,
        even if this raises QueueError, because it is queued already.
        """
        key, uid = queued.key, queued.pod_info.uid
        place = self._parts.place_of(key)
        if place is not QueuePlace.NOWHERE:
            self.done(uid, now)
            raise QueueError(f"Pod {key} is already present in the {place.value} queue")
        note_failure(queued, now)
        self._rejections.update(_rejections_of(queued))
        strategy = self._strategy_of_failed(queued)
        self._parts.arrive(queued)
        place = self._requeue(queued, QueuePlace.IN_FLIGHT, strategy, _FAILURE_LABEL, now)
        self._in_flight.done(uid)
        if strategy is QueueingStrategy.SKIP:
            self._parts.follow_latest(queued)
        return self._wakes(place)

    def _strategy_of_failed(self, queued: QueuedPodInfo) -> QueueingStrategy:
        if not queued.rejecting_plugins:
            return QueueingStrategy.AFTER_BACKOFF
        changes = self._in_flight.since_popped(queued.pod_info.uid)
        if changes is None or self._is_member(queued.pod_info):
            return QueueingStrategy.AFTER_BACKOFF
        return self.hints.strategy_of_all(queued, changes)

    def _is_member(self, info: PodInfo) -> bool:
        """Whether the pod belongs to a group, so that it backs off after each failure."""
        return self._options.generic_workload and info.pod.spec.scheduling_group is not None

    def close(self) -> None:
        """Forget the pods in flight and set `is_closed`."""
        for queued in self._in_flight.pods():
            self._in_flight.done(queued.pod_info.uid)
        self.is_closed = True

    # Between the places.

    def _requeue(
        self,
        queued: QueuedPodInfo,
        origin: QueuePlace,
        strategy: QueueingStrategy,
        label: str,
        now: float,
    ) -> QueuePlace:
        if strategy is QueueingStrategy.SKIP:
            return self._to_unschedulable(queued, origin, label, now)
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._backoff.is_backing_off(queued, now):
            return self._to_backoff(queued, origin, label, now)
        added = self._to_active(queued, origin, label, now)
        return QueuePlace.ACTIVE if added else QueuePlace.UNSCHEDULABLE

    def _to_active(self, queued: QueuedPodInfo, origin: QueuePlace, label: str, now: float) -> bool:
        # With pop-from-backoff, PreEnqueue plugins ran when the pod entered backoffQ.
        if not (self._options.pops_from_backoff and origin is QueuePlace.BACKOFF):
            self.gates.ask(queued, self.cohorts.size(queued))
        key = queued.key
        if queued.is_gated:
            if key not in self._active and key not in self._backoff:
                self._to_unschedulable(queued, origin, label, now)
            return False
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = now
            self._initial_attempts += 1
            queued.initial_attempt = self._initial_attempts
        self._unschedulable.delete(key)
        self._backoff.delete(key)
        self._active.add(queued)
        self._report(queued, origin, QueuePlace.ACTIVE, label, now)
        if label in _NOMINATING_LABELS:
            self.nominator.add(queued.pod_info)
        return True

    def _to_backoff(
        self, queued: QueuedPodInfo, origin: QueuePlace, label: str, now: float
    ) -> QueuePlace:
        if self._options.pops_from_backoff:
            self.gates.ask(queued, self.cohorts.size(queued))
            if queued.is_gated:
                return self._to_unschedulable(queued, origin, label, now)
        self._unschedulable.delete(queued.key)
        self._backoff.add(queued, is_woken=origin is QueuePlace.UNSCHEDULABLE)
        self._report(queued, origin, QueuePlace.BACKOFF, label, now)
        self.on_backoff()
        return QueuePlace.BACKOFF

    def _to_unschedulable(
        self, queued: QueuedPodInfo, origin: QueuePlace, label: str, now: float
    ) -> QueuePlace:
        if self._unschedulable.put(queued, self.hints.topics_of_pod(queued)):
            self._report(queued, origin, QueuePlace.UNSCHEDULABLE, label, now)
            longest = self._options.max_in_unschedulable_pods_seconds
            self.on_unschedulable(queued.timestamp + longest)
        return QueuePlace.UNSCHEDULABLE

    def _wakes(self, place: QueuePlace) -> bool:
        return place is QueuePlace.ACTIVE or (
            place is QueuePlace.BACKOFF and self._options.pops_from_backoff
        )

    def _report(
        self,
        queued: QueuedPodInfo,
        origin: QueuePlace,
        destination: QueuePlace,
        event: str,
        now: float,
    ) -> None:
        if self.observers:
            gating = queued.gating_plugin
            followers = self.cohorts.followers(queued)
            self._notify(QueueMove(queued.key, origin, destination, event, now, gating, followers))

    def _notify(self, move: QueueMove) -> None:
        for observer in self.observers:
            observer(move)


def _rejections_of(queued: QueuedPodInfo) -> list[tuple[str, str]]:
    """Return the plugins that rejected a pod, each with the pod's profile."""
    return [(plugin, queued.pod_info.scheduler_name) for plugin in queued.rejecting_plugins]
