"""KeyedHeap is a priority queue of pods with access to and removal of single pods.

Pods that compare equal leave in the order of their numbers, `QueuedPodInfo.arrival`; an update does
not change a pod's number.

Upstream: pkg/scheduler/backend/heap (v1.36)
Invariants: `_entries` has one live entry per pod; other entries of the heap are stale and skipped.
Differs:  the order among equal pods is their arrival; upstream's depends on the heap's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView
from heapq import heapify, heappop, heappush
from typing import Final

from kubesched.framework.queued_pod_info import QueuedPodInfo

Order = tuple[int | float, ...]
SortKey = Callable[[QueuedPodInfo], Order]

# Order, the pod's number, version, pod. The version is unique, so pods are never compared.
_Entry = tuple[Order, int, int, QueuedPodInfo]

_STALE_MIN: Final = 64


class KeyedHeap:
    """Pods by `namespace/name`, the one with the smallest sort key first.

    `order` returns the sort key of a pod.
    """

    def __init__(self, order: SortKey) -> None:
        self.order = order
        self._heap: list[_Entry] = []
        self._entries: dict[str, _Entry] = {}
        self._version = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (entry[-1] for entry in self._entries.values())

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the pod of that `namespace/name`, None if absent."""
        entry = self._entries.get(key)
        return None if entry is None else entry[-1]

    def keys(self) -> KeysView[str]:
        """Return `namespace/name` of the pods, in the order of their arrival."""
        return self._entries.keys()

    def add(self, queued: QueuedPodInfo) -> None:
        """Add a pod, replace the one of the same name, or reorder it after a change."""
        key = queued.key
        known = self._entries.get(key)
        self._version += 1
        if known is not None:
            queued.arrival = known[1]
        entry = (self.order(queued), queued.arrival, self._version, queued)
        self._entries[key] = entry
        heappush(self._heap, entry)
        if known is not None:
            self._drop_stale()

    def peek(self) -> QueuedPodInfo | None:
        """Return the first pod without removing it; None if empty."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[-1].key) is entry:
                return entry[-1]
            heappop(heap)
        return None

    def delete(self, key: str) -> QueuedPodInfo | None:
        """Remove and return one pod; None if absent."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._drop_stale()
        return entry[-1]

    def pods(self) -> list[QueuedPodInfo]:
        """Return all pods in the order of popping."""
        return [entry[-1] for entry in sorted(self._entries.values())]

    def check(self) -> None:
        """Assert that every pod is in the heap under its name and sort key."""
        live = {entry[2] for entry in self._heap}
        for key, (order, _, version, queued) in self._entries.items():
            assert version in live, f"{key} is not in the heap"
            assert key == queued.key, f"{queued.key} is filed as {key}"
            assert order == self.order(queued), f"{key} has another sort key now"

    def _drop_stale(self) -> None:
        # At least half of the entries go, so this is O(1) amortized per stale entry.
        if len(self._heap) > 2 * len(self._entries) + _STALE_MIN:
            self._heap = list(self._entries.values())
            heapify(self._heap)
