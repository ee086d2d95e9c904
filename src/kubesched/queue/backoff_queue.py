"""BackoffQueue (backoffQ) holds pods that are retried when their backoff has ended.

The backoff doubles with every failed attempt, from the initial to the maximum duration. With
pop-from-backoff, expirations are aligned to whole seconds and the pods of one second are in
activeQ's order, so that an idle scheduler can pop the most important of them early.

Upstream: pkg/scheduler/backend/queue/{backoff_queue,scheduling_queue}.go (v1.36)
Invariants: a pod is in one of the two heaps; a pod without rejecting plugins in the one of errors.
Differs:  members of pod groups are popped early only if an event moved them here, such as the end
          of a preemption for their group. After a failed attempt they back off; upstream retries
          them again and again as long as nothing else is queued. Feature gates are options like
          the others; queueing hints, which 1.36 does not let users turn off, are always on.
"""

from __future__ import annotations

from itertools import chain
from math import floor, inf

import msgspec

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.keyed_heap import KeyedHeap, Order, SortKey

_NO_BACKOFF = -inf
_SHIFT_MAX = 62


class QueueOptions(msgspec.Struct, frozen=True):
    """Backoff times and feature gates; the defaults are those of 1.36.

    Attributes:
        initial_backoff_seconds: Backoff after the first failure.
        max_backoff_seconds: The longest backoff; 0 means no backoff.
        max_in_unschedulable_pods_seconds: Time after which a pod is retried without any event.
        pops_from_backoff: Gate SchedulerPopFromBackoffQ: an idle scheduler pops rejected pods
            early.
        generic_workload: Gate GenericWorkload: members of pod groups are retried after backoff
            alone.
        wall_clock_ahead_seconds: How far the wall clock is ahead of the caller's, because seconds
            are those of the wall clock; a multiple of 2^-10, so that sums are exact.
    """

    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    max_in_unschedulable_pods_seconds: float = 300.0
    pops_from_backoff: bool = True
    generic_workload: bool = False
    wall_clock_ahead_seconds: float = 0.0


class BackoffQueue:
    """Two heaps ordered by expiration: rejected pods, and pods whose attempt ended in an error."""

    def __init__(self, sort_key: SortKey, options: QueueOptions) -> None:
        """Set up an empty queue; `sort_key` is that of activeQ."""
        self._sort_key = sort_key
        self._initial_seconds = options.initial_backoff_seconds
        self._max_seconds = options.max_backoff_seconds
        self._aligns = options.pops_from_backoff
        self._has_pod_groups = options.generic_workload
        self._ahead_seconds = options.wall_clock_ahead_seconds
        self._rejected = KeyedHeap(self._rejected_order if self._aligns else self._order)
        self._failed = KeyedHeap(self._order)

    def __len__(self) -> int:
        return len(self._rejected) + len(self._failed)

    def __contains__(self, key: str) -> bool:
        return key in self._rejected or key in self._failed

    def keys(self) -> frozenset[str]:
        """Return `namespace/name` of the pods."""
        return frozenset(self._rejected.keys() | self._failed.keys())

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the pod of that `namespace/name`, None if absent."""
        return self._rejected.get(key) or self._failed.get(key)

    def add(self, queued: QueuedPodInfo, *, is_woken: bool = False) -> None:
        """Add a pod to the heap of rejected pods or of errors, or reorder it after a change.

        `is_woken` means that an event moved it out of unschedulablePods.
        """
        key = queued.key
        may_be_early = is_woken or key in self._rejected or not self._is_member(queued)
        if may_be_early and queued.rejecting_plugins:
            self._rejected.add(queued)
            self._failed.delete(key)
        else:
            self._failed.add(queued)
            self._rejected.delete(key)

    def _is_member(self, queued: QueuedPodInfo) -> bool:
        return self._has_pod_groups and queued.pod_info.pod.spec.scheduling_group is not None

    def delete(self, key: str) -> QueuedPodInfo | None:
        """Remove and return one pod; None if absent."""
        return self._rejected.delete(key) or self._failed.delete(key)

    def peek_rejected(self) -> QueuedPodInfo | None:
        """Return the first rejected pod, even if it is still backing off; None if there is none."""
        return self._rejected.peek()

    def order(self, queued: QueuedPodInfo) -> Order:
        """Return the order of `pods`."""
        is_failed = queued.key in self._failed
        return (is_failed, *(self._failed if is_failed else self._rejected).order(queued))

    def pop_completed(self, now: float) -> list[QueuedPodInfo]:
        """Remove and return the pods whose backoff has ended, rejected ones first."""
        completed: list[QueuedPodInfo] = []
        for heap in (self._rejected, self._failed):
            while (first := heap.peek()) is not None and not self.is_backing_off(first, now):
                heap.delete(first.key)
                completed.append(first)
        return completed

    def next_completion(self, now: float) -> float | None:
        """Return the first whole second after `now` at which `pop_completed` may return a pod.

        None if the queue is empty.
        """
        firsts = [first for heap in (self._rejected, self._failed) if (first := heap.peek())]
        if not firsts:
            return None
        return max(min(map(self.completion, firsts)), self.second_of(now) + 1.0)

    def completion(self, queued: QueuedPodInfo) -> float:
        """Return the whole second at which `pop_completed` returns a pod that is backing off."""
        # Not earlier, because the second in which a backoff ends still counts as backoff.
        return self.second_of(self.expiration(queued)) + 1.0

    def second_of(self, now: float) -> float:
        """Return when the current second of the wall clock began."""
        return floor(now + self._ahead_seconds) - self._ahead_seconds

    def pods(self) -> list[QueuedPodInfo]:
        """Return all pods in the order of each heap, rejected ones first."""
        return self._rejected.pods() + self._failed.pods()

    def is_backing_off(self, queued: QueuedPodInfo, now: float) -> bool:
        """Whether the backoff has not ended; when aligned, it lasts to the end of its second."""
        return self.expiration(queued) >= (self.second_of(now) if self._aligns else now)

    def expiration(self, queued: QueuedPodInfo) -> float:
        """Return when the pod's backoff ends, in seconds; minus infinity if it has none.

        Computed once per failure and kept in `queued.backoff_expiration`.
        """
        count = queued.consecutive_errors_count or queued.unschedulable_count
        if not count or not self._max_seconds:
            return _NO_BACKOFF
        if queued.backoff_expiration is None:
            end = queued.timestamp + self.duration_seconds(count)
            queued.backoff_expiration = self.second_of(end) if self._aligns else end
        return queued.backoff_expiration

    def duration_seconds(self, failures: int) -> float:
        """Return the backoff in seconds after a number of failures; 0.0 after none."""
        if failures <= 0:
            return 0.0
        # The shift is limited so that the product stays a finite float.
        return min(self._initial_seconds * (1 << min(failures - 1, _SHIFT_MAX)), self._max_seconds)

    def check(self) -> None:
        """Assert that both heaps are sound and that every pod is in the right one."""
        self._rejected.check()
        self._failed.check()
        for queued in self._rejected:
            assert queued.rejecting_plugins, f"nothing rejected {queued.key}"
            assert queued.key not in self._failed, f"{queued.key} is here twice"
        for queued in self._failed:
            is_rejected = bool(queued.rejecting_plugins) and not self._is_member(queued)
            assert not is_rejected, f"{queued.key} was rejected"
        if self._aligns:
            pods = chain(self._rejected, self._failed)
            gated = [queued.key for queued in pods if queued.is_gated]
            assert not gated, f"gated pods may be popped: {gated}"

    def _order(self, queued: QueuedPodInfo) -> Order:
        return (self.expiration(queued),)

    def _rejected_order(self, queued: QueuedPodInfo) -> Order:
        return (self.expiration(queued), *self._sort_key(queued))


def note_failure(queued: QueuedPodInfo, now: float) -> None:
    """Count a failed attempt, as an error or a rejection, and restart the backoff."""
    if queued.rejecting_plugins:
        queued.unschedulable_count += 1
        queued.consecutive_errors_count = 0
    else:
        queued.consecutive_errors_count += 1
    queued.timestamp = now
    queued.backoff_expiration = None
    queued.was_flushed = False
