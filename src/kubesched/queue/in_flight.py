"""InFlight remembers what happened in the cluster while pods were being tried.

One log of changes serves all pods in flight: each has its place in it, and what stands after that
place has happened since the pod was popped. What stands before everybody's place is dropped.

Upstream: pkg/scheduler/backend/queue/active_queue.go, inFlightPods and inFlightEvents (v1.36)
Invariants: places do not fall in the order of popping; the log starts at the first pod's place and
          is empty when nobody is in flight.
Differs:  pods and changes are not in one linked list; the answers are the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.queue_events import POD_POPPED, Change


class InFlight:
    """Pods by uid, and the changes since the first of them was popped."""

    def __init__(self) -> None:
        # An OrderedDict, because a plain dict finds its first key ever slower as pods leave.
        self._pods: OrderedDict[str, tuple[int, QueuedPodInfo]] = OrderedDict()
        self._changes: list[Change] = []
        self._start = 0
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def add(self, queued: QueuedPodInfo) -> None:
        """Note that a pod, not in flight yet, has been popped."""
        self._pods[queued.pod_info.uid] = (self._start + len(self._changes), queued)

    def record(self, change: Change) -> None:
        """Append a change, if anybody is in flight who may want to know."""
        if not self._pods:
            return
        label = change.event.label
        self._counts[label] = self._counts.get(label, 0) + 1
        self._changes.append(change)

    def since_popped(self, uid: str) -> Iterable[Change] | None:
        """Return the changes since the pod was popped; None if it is not in flight."""
        known = self._pods.get(uid)
        return None if known is None else islice(self._changes, known[0] - self._start, None)

    def done(self, uid: str) -> QueuedPodInfo | None:
        """Let a pod go and drop what nobody needs any more; None if it is not in flight."""
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
        """Return changes in the log by event label, and pods in flight as `PodPopped`.

        A label that ever counted stays, with 0, as a gauge's series does.
        """
        return {**self._counts, POD_POPPED: len(self._pods)}

    def check(self) -> None:
        """Assert that the places are in order, the log is no longer than needed and counted."""
        places = [place for place, _ in self._pods.values()]
        assert places == sorted(places), "places fall"
        assert not places or places[0] == self._start, "the log starts before the first pod's place"
        assert places or not self._changes, "changes are kept for nobody"
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
