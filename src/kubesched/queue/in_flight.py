"""InFlight records what happened in the cluster while pods were being scheduled.

All pods in flight share one log of changes. Each pod has a position in the log: what comes after it
has happened since the pod was popped. Changes before the first position are dropped.

Upstream: pkg/scheduler/backend/queue/active_queue.go, inFlightPods and inFlightEvents (v1.36)
Invariants: positions do not decrease in the order of popping; the log starts at the first pod's
          position and is empty when no pod is in flight.
Differs:  pods and changes are not in one linked list; the results are the same.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from itertools import islice

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.moves import POD_POPPED, ClusterChange


class InFlight:
    """Pods by uid, and the changes since the first of them was popped."""

    def __init__(self) -> None:
        # An OrderedDict, because finding the first key of a plain dict slows down as pods leave.
        self._pods: OrderedDict[str, tuple[int, QueuedPodInfo]] = OrderedDict()
        self._changes: list[ClusterChange] = []
        self._start = 0
        self._counts: Counter[str] = Counter()

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def add(self, queued: QueuedPodInfo) -> None:
        """Add a pod that has just been popped."""
        self._pods[queued.pod_info.uid] = (self._start + len(self._changes), queued)

    def record(self, change: ClusterChange) -> None:
        """Append a change to the log, if any pod is in flight."""
        if self._pods:
            self._counts[change.event.label] += 1
            self._changes.append(change)

    def since_popped(self, uid: str) -> Iterable[ClusterChange] | None:
        """Return the changes since the pod was popped; None if it is not in flight."""
        known = self._pods.get(uid)
        return None if known is None else islice(self._changes, known[0] - self._start, None)

    def done(self, uid: str) -> QueuedPodInfo | None:
        """Remove a pod and the changes only it needed; return None if it is not in flight."""
        known = self._pods.pop(uid, None)
        if known is None:
            return None
        if self._changes:
            self._trim()
        return known[1]

    def pods(self) -> list[QueuedPodInfo]:
        """Return the pods in flight in the order of popping."""
        return [queued for _, queued in self._pods.values()]

    def counts(self) -> dict[str, int]:
        """Return the number of changes by event label, and of pods in flight as `PodPopped`.

        A label stays with 0 when its changes are gone, as the series of a gauge does.
        """
        return {**self._counts, POD_POPPED: len(self._pods)}

    def check(self) -> None:
        """Assert that positions are in order, and that the log is minimal and counted."""
        positions = [position for position, _ in self._pods.values()]
        assert positions == sorted(positions), "positions decrease"
        assert not positions or positions[0] == self._start, "the log starts too early"
        assert positions or not self._changes, "changes are kept without a pod in flight"
        labels = [change.event.label for change in self._changes]
        counted = {label: count for label, count in self._counts.items() if count}
        assert counted == {label: labels.count(label) for label in labels}, "changes are miscounted"

    def _trim(self) -> None:
        first = next(iter(self._pods.values()), None)
        end = len(self._changes) if first is None else first[0] - self._start
        for change in islice(self._changes, end):
            self._counts[change.event.label] -= 1
        del self._changes[:end]
        self._start += end
