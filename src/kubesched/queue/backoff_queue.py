"""BackoffQueue (backoffQ) holds pods that may be tried again once their backoff has ended.

The more often a pod failed, the longer it waits: initial, twice that, four times, ..., at most max.
With pop-from-backoff, ends are aligned to whole seconds, and the pods of one second stand in
activeQ's order, so that an idle scheduler may take the most important of them early.

Upstream: pkg/scheduler/backend/queue/backoff_queue.go (v1.36)
Invariants: a pod is in one of the two heaps; without rejecting plugins in the one of errors.
Differs:  members of pod groups are not popped early. They come back by backoff alone, and upstream
          tries one that was rejected again and again, as long as nothing else waits.
"""

from __future__ import annotations

from itertools import chain
from math import floor, inf

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.keyed_heap import KeyedHeap, Order, SortKey

_NO_BACKOFF = -inf
_SHIFT_MAX = 62


class BackoffQueue:
    """Two heaps by the end of the backoff: of rejected pods, and of pods that met an error."""

    def __init__(
        self,
        sort_key: SortKey,
        *,
        initial_seconds: float = 1.0,
        max_seconds: float = 10.0,
        pops_from_backoff: bool = True,
        has_pod_groups: bool = False,
    ) -> None:
        """Set up an empty queue.

        Args:
            sort_key: The order of activeQ.
            initial_seconds: Backoff after the first failure.
            max_seconds: The longest backoff; 0 means no backoff at all.
            pops_from_backoff: Whether ends are aligned and pods can be popped early (gate
                SchedulerPopFromBackoffQ).
            has_pod_groups: Whether members of pod groups go by backoff alone (gate
                GenericWorkload).
        """
        self._sort_key = sort_key
        self._initial_seconds = initial_seconds
        self._max_seconds = max_seconds
        self._aligns = pops_from_backoff
        self._has_pod_groups = has_pod_groups
        self._rejected = KeyedHeap(self._rejected_order if pops_from_backoff else self._order)
        self._failed = KeyedHeap(self._order)

    def __len__(self) -> int:
        return len(self._rejected) + len(self._failed)

    def __contains__(self, key: str) -> bool:
        return key in self._rejected or key in self._failed

    @property
    def has_rejected(self) -> bool:
        """Whether `pop_rejected` finds a pod."""
        return len(self._rejected) > 0

    def keys(self) -> frozenset[str]:
        """Return the names of the pods."""
        return frozenset(self._rejected.keys() | self._failed.keys())

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the pod of that `namespace/name`, None if it is not here."""
        return self._rejected.get(key) or self._failed.get(key)

    def add(self, queued: QueuedPodInfo) -> None:
        """Take a pod in, into the heap its rejecting plugins ask for."""
        key = queued.pod_info.key
        if self._may_be_early(queued):
            self._rejected.add(queued)
            self._failed.delete(key)
        else:
            self._failed.add(queued)
            self._rejected.delete(key)

    def _may_be_early(self, queued: QueuedPodInfo) -> bool:
        if self._has_pod_groups and queued.pod_info.pod.spec.scheduling_group is not None:
            return False
        return bool(queued.unschedulable_plugins or queued.pending_plugins)

    def reorder(self, queued: QueuedPodInfo) -> None:
        """Sort a pod that is here anew, after its object changed."""
        heap = self._rejected if queued.pod_info.key in self._rejected else self._failed
        heap.add(queued)

    def delete(self, key: str) -> QueuedPodInfo | None:
        """Take one pod out; None if it is not here."""
        return self._rejected.delete(key) or self._failed.delete(key)

    def pop_rejected(self) -> QueuedPodInfo | None:
        """Take out the first rejected pod, however long it should still wait; None if none."""
        return self._rejected.pop()

    def pop_completed(self, now: float) -> list[QueuedPodInfo]:
        """Take out every pod whose backoff has ended, rejected ones first."""
        completed: list[QueuedPodInfo] = []
        for heap in (self._rejected, self._failed):
            while (first := heap.peek()) is not None and not self.is_backing_off(first, now):
                heap.pop()
                completed.append(first)
        return completed

    def next_completion(self, now: float) -> float | None:
        """Return the first whole second after `now` at which `pop_completed` finds a pod.

        None if no pod is here. The pod may be gone by then.
        """
        firsts = [first for heap in (self._rejected, self._failed) if (first := heap.peek())]
        if not firsts:
            return None
        # A second too early for no pod: the second in which a backoff ends counts as backoff.
        end = max(min(map(self.expiration, firsts)), now)
        return floor(end) + 1.0

    def pods(self) -> list[QueuedPodInfo]:
        """Return all pods, each heap in its order, rejected ones first."""
        return self._rejected.pods() + self._failed.pods()

    def is_backing_off(self, queued: QueuedPodInfo, now: float) -> bool:
        """Whether the pod must not be tried yet; the second in which its backoff ends counts."""
        return self.expiration(queued) >= (floor(now) if self._aligns else now)

    def expiration(self, queued: QueuedPodInfo) -> float:
        """Return when the pod's backoff ends, in seconds; minus infinity if it has none.

        Computed once for each failure, and kept in `queued.backoff_expiration`.
        """
        count = queued.consecutive_errors_count or queued.unschedulable_count
        if not count or not self._max_seconds:
            return _NO_BACKOFF
        if queued.backoff_expiration is None:
            end = queued.timestamp + self.duration_seconds(count)
            queued.backoff_expiration = float(floor(end)) if self._aligns else end
        return queued.backoff_expiration

    def duration_seconds(self, failures: int) -> float:
        """Return how long a pod waits after so many failures; 0 for none."""
        if failures <= 0:
            return 0.0
        # A shift beyond any maximum, so that the product stays a finite float.
        return min(self._initial_seconds * (1 << min(failures - 1, _SHIFT_MAX)), self._max_seconds)

    def check(self) -> None:
        """Assert that both heaps are sound and hold what they are meant for."""
        self._rejected.check()
        self._failed.check()
        for queued in self._rejected:
            assert self._may_be_early(queued), f"nothing rejected {queued.pod_info.key}"
            assert queued.pod_info.key not in self._failed, f"{queued.pod_info.key} waits twice"
        for queued in self._failed:
            assert not self._may_be_early(queued), f"{queued.pod_info.key} was rejected"
        if self._aligns:
            pods = chain(self._rejected, self._failed)
            gated = [queued.pod_info.key for queued in pods if queued.is_gated]
            assert not gated, f"gated pods may be popped: {gated}"

    def _order(self, queued: QueuedPodInfo) -> Order:
        return (self.expiration(queued),)

    def _rejected_order(self, queued: QueuedPodInfo) -> Order:
        return (self.expiration(queued), *self._sort_key(queued))


def note_failure(queued: QueuedPodInfo, now: float) -> None:
    """Count a failed attempt, as an error or a rejection, and start the backoff anew."""
    if queued.rejecting_plugins:
        queued.unschedulable_count += 1
        queued.consecutive_errors_count = 0
    else:
        queued.consecutive_errors_count += 1
    queued.timestamp = now
    queued.backoff_expiration = None
    queued.was_flushed = False
