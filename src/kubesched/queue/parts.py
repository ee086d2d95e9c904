"""QueueParts are activeQ, backoffQ and unschedulablePods, with the cohorts of equal pods in them.

A pod that leads a cohort stands for its followers, which are in no part themselves. An operation on
one pod first takes it out of its cohort (`single_out`); it is then in the part of its leader.

Invariants: a pod is in at most one part, or follows a pod that is in one (`check()`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.backoff_queue import BackoffQueue, QueueOptions
from kubesched.queue.cohorts import Cohorts
from kubesched.queue.keyed_heap import KeyedHeap, SortKey
from kubesched.queue.moves import QueuePlace
from kubesched.queue.unschedulable_pods import Topic, UnschedulablePods
from kubesched.snapshot.pod_info import PodTemplate

_Kind = tuple[PodTemplate, float, frozenset[str], frozenset[str], str]
"""Pods of one kind that were rejected at the same moment may be in one cohort."""


class QueueParts:
    """activeQ, backoffQ, unschedulablePods, and which pods follow which."""

    def __init__(
        self,
        sort_key: SortKey,
        options: QueueOptions,
        topics_of: Callable[[QueuedPodInfo], Sequence[Topic]],
    ) -> None:
        """Set up empty parts; `sort_key` orders activeQ.

        `topics_of` returns the topics of an unschedulable pod.
        """
        self.active = KeyedHeap(sort_key)
        self.backoff = BackoffQueue(sort_key, options)
        self.unschedulable = UnschedulablePods()
        self._parts: Mapping[QueuePlace, KeyedHeap | BackoffQueue | UnschedulablePods] = {
            QueuePlace.ACTIVE: self.active,
            QueuePlace.BACKOFF: self.backoff,
            QueuePlace.UNSCHEDULABLE: self.unschedulable,
        }
        self.cohorts = Cohorts()
        self._pops_from_backoff = options.pops_from_backoff
        self._topics_of = topics_of
        # The pod of each kind that others of the same timestamp may follow.
        self._latest: dict[_Kind, QueuedPodInfo] = {}
        self._latest_at = 0.0

    # Queries.

    def __contains__(self, key: str) -> bool:
        return self.place_of(key) is not QueuePlace.NOWHERE

    def place_of(self, key: str) -> QueuePlace:
        """Return where the pod of that `namespace/name` is; NOWHERE if it is unknown."""
        leader = self.cohorts.leader_of(key)
        if leader is not None:
            key = leader.key
        if key in self.unschedulable:
            return QueuePlace.UNSCHEDULABLE
        if key in self.backoff:
            return QueuePlace.BACKOFF
        return QueuePlace.ACTIVE if key in self.active else QueuePlace.NOWHERE

    def find(self, key: str) -> QueuedPodInfo | None:
        """Return the pod of that `namespace/name`; None if it is in no part itself."""
        return self.backoff.get(key) or self.unschedulable.get(key) or self.active.get(key)

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return a pod by `namespace/name`, a copy if it follows another; None if unknown."""
        leader = self.cohorts.leader_of(key)
        return self.find(key) if leader is None else self.cohorts.copy_of(key)

    def pods(self, place: QueuePlace) -> list[QueuedPodInfo]:
        """Return the pods of one part in the order of popping; copies of those that follow others.

        The part is ACTIVE, BACKOFF or UNSCHEDULABLE.
        """
        first = self._parts[place].pods()
        found = [each for queued in first for each in self.cohorts.members(queued)]
        if len(found) > len(first):
            found.sort(key=lambda queued: (*self._parts[place].order(queued), queued.arrival))
        return found

    def sizes(self) -> dict[QueuePlace, int]:
        """Return the number of pods in each part."""
        sizes = {place: len(part) for place, part in self._parts.items()}
        for leader in self.cohorts.leaders():
            sizes[self.place_of(leader.key)] += self.cohorts.size(leader) - 1
        return sizes

    def peek(self) -> QueuedPodInfo | None:
        """Return the first pod of activeQ, else the first rejected one of backoffQ, else None."""
        queued = self.active.peek()
        if queued is None and self._pops_from_backoff:
            return self.backoff.peek_rejected()
        return queued

    def order(self, queued: QueuedPodInfo, place: QueuePlace) -> tuple[object, ...]:
        """Return the place and the sort key of a pod of activeQ or backoffQ."""
        return (place, *self._parts[place].order(queued))

    def check(self) -> None:
        """Assert that every pod is in one place; check each part."""
        for part in (*self._parts.values(), self.cohorts):
            part.check()
        backoff, rejected = self.backoff.keys(), self.unschedulable.keys()
        twice = (backoff & rejected) | (self.active.keys() & (backoff | rejected))
        assert not twice, f"{sorted(twice)} wait twice"
        for leader in self.cohorts.leaders():
            assert self.find(leader.key) is leader, f"{leader.key} leads and is nowhere"
            for follower in self.cohorts.followers(leader):
                assert self.find(follower) is None, f"{follower} follows and is in the queue"

    # Pods come and go.

    def arrive(self, queued: QueuedPodInfo) -> None:
        """Number a pod, and those that follow it, after all others."""
        self.cohorts.begin_step()
        self.cohorts.arrive(queued)

    def take(self, queued: QueuedPodInfo) -> QueuePlace:
        """Remove a pod of activeQ or backoffQ, with those that follow it; return where it was."""
        if self.active.delete(queued.key) is not None:
            return QueuePlace.ACTIVE
        self.backoff.delete(queued.key)
        return QueuePlace.BACKOFF

    def delete(self, key: str) -> tuple[QueuedPodInfo, QueuePlace] | None:
        """Remove one pod; return it and where it was, None if it is unknown."""
        self.single_out(key)
        for place, part in self._parts.items():
            queued = part.delete(key)
            if queued is not None:
                return queued, place
        return None

    def put_beside(self, place: QueuePlace, queued: QueuedPodInfo) -> None:
        """Put a pod into the part where the pod that it followed is or was."""
        if place is QueuePlace.UNSCHEDULABLE:
            self.unschedulable.put(queued, self._topics_of(queued))
        else:
            (self.active if place is QueuePlace.ACTIVE else self.backoff).add(queued)

    # Pods that stand for others.

    def follow_latest(self, queued: QueuedPodInfo) -> None:
        """Let an unschedulable pod follow one of its kind that was rejected at the same moment."""
        if not queued.standing_message:
            return
        kind = self._kind_of(queued)
        if self._latest_at != queued.timestamp:
            self._latest_at = queued.timestamp
            self._latest.clear()
        first = self._latest.setdefault(kind, queued)
        if first is queued:
            return
        # Another attempt at the same time may have rejected the first pod for another reason.
        is_there = first is self.unschedulable.get(first.key) and self._kind_of(first) == kind
        if is_there and self.cohorts.join(first, queued):
            self.unschedulable.delete(queued.key)
        else:
            self._latest[kind] = queued

    def _kind_of(self, queued: QueuedPodInfo) -> _Kind:
        return (
            queued.pod_info.template,
            self.backoff.duration_seconds(queued.unschedulable_count),
            queued.unschedulable_plugins,
            queued.pending_plugins,
            queued.standing_message,
        )

    def single_out(self, key: str) -> None:
        """Let the pod of that `namespace/name` stand for itself alone."""
        if key not in self.cohorts:
            return
        place = self.place_of(key)
        if place is not QueuePlace.NOWHERE:
            is_leader = self.cohorts.leads(key)
            stands_alone = self.cohorts.promote if is_leader else self.cohorts.leave
            self.put_beside(place, stands_alone(key))

    def one_by_one(
        self, pods: Sequence[QueuedPodInfo], is_each: Callable[[QueuedPodInfo], bool]
    ) -> Sequence[QueuedPodInfo]:
        """Return the pods, and those that follow one for which `is_each` is True.

        The latter stand alone then. All are in the order of their arrival.
        """
        leaders = [queued for queued in pods if self.cohorts.leads(queued.key) and is_each(queued)]
        if not leaders:
            return pods
        followers = (each for leader in leaders for each in self._scatter(leader))
        return sorted((*pods, *followers), key=lambda queued: queued.arrival)

    def _scatter(self, leader: QueuedPodInfo) -> Iterable[QueuedPodInfo]:
        """Let a pod and its followers each stand for themselves; return the followers."""
        place = self.place_of(leader.key)
        followers = [self.cohorts.leave(key) for key in list(self.cohorts.followers(leader))]
        for queued in followers:
            self.put_beside(place, queued)
        return followers
