"""UnschedulablePods holds pods that wait for an event, including gated pods.

An event that a few plugins have registered concerns only pods that one of them rejected. So pods
are indexed by topics: one for each plugin that rejected them, and more if a plugin knows which
objects a pod waits for (`QueueingHints.topics_of_pod`).

Upstream: pkg/scheduler/backend/queue/unschedulable_pods.go (v1.36)
Invariants: every pod is filed under exactly its topics; `gated` counts the gated pods.
Differs:  pods are visited in the order of their arrival; upstream iterates over a map.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.keyed_heap import Order

# Profile and plugin, and optionally a name from the plugin's `Filing`.
Topic = tuple[str, ...]


class _Entry(NamedTuple):
    arrival: int
    queued: QueuedPodInfo
    topics: Sequence[Topic]
    is_gated: bool


_ARRIVAL: Final = attrgetter("arrival")


class UnschedulablePods:
    """Pods by `namespace/name` and by topic; a PreEnqueue plugin gates some of them."""

    def __init__(self) -> None:
        self.gated = 0
        self._entries: dict[str, _Entry] = {}
        self._by_topic: dict[Topic, dict[str, _Entry]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the pod of that `namespace/name`, None if absent."""
        entry = self._entries.get(key)
        return None if entry is None else entry.queued

    def keys(self) -> KeysView[str]:
        """Return `namespace/name` of the pods."""
        return self._entries.keys()

    def put(self, queued: QueuedPodInfo, topics: Sequence[Topic]) -> bool:
        """Add a pod, or file it again after a change; return whether it was absent before."""
        key = queued.key
        known = self._entries.get(key)
        if known is not None:
            self._unfile(key, known)
            queued.arrival = known.arrival
        entry = _Entry(queued.arrival, queued, topics, queued.is_gated)
        self._entries[key] = entry
        self.gated += entry.is_gated
        for topic in topics:
            self._by_topic.setdefault(topic, {})[key] = entry
        return known is None

    def delete(self, key: str) -> QueuedPodInfo | None:
        """Remove and return one pod; None if absent."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._unfile(key, entry)
        return entry.queued

    def pods(self) -> list[QueuedPodInfo]:
        """Return all pods in the order of their arrival."""
        return [entry.queued for entry in sorted(self._entries.values(), key=_ARRIVAL)]

    def order(self, queued: QueuedPodInfo) -> Order:
        """Return (): the order of `pods` depends on their arrival alone."""
        return ()

    def filed_under(self, topics: Iterable[Topic]) -> list[QueuedPodInfo]:
        """Return the pods filed under any of the topics, in the order of their arrival."""
        if not self._by_topic:
            return []
        filed = [pods for topic in topics if (pods := self._by_topic.get(topic))]
        if len(filed) > 1:
            merged: dict[str, _Entry] = {}
            for pods in filed:
                merged.update(pods)
            filed = [merged]
        return [entry.queued for pods in filed for entry in sorted(pods.values(), key=_ARRIVAL)]

    def check(self) -> None:
        """Assert that pods are filed under their names and topics, and that counts are right."""
        gated = [key for key, entry in self._entries.items() if entry.is_gated]
        assert self.gated == len(gated), f"{self.gated} gated pods are counted, not {gated}"
        for key, entry in self._entries.items():
            assert key == entry.queued.key, f"{entry.queued.key} is {key}"
            assert entry.arrival == entry.queued.arrival, f"{key} was numbered without `put`"
            assert entry.is_gated == entry.queued.is_gated, f"{key} was gated without `put`"
        wanted = 0
        for key, entry in self._entries.items():
            wanted += len(entry.topics)
            for topic in entry.topics:
                filed = self._by_topic.get(topic, {}).get(key)
                assert filed is entry, f"{key} is not filed under {topic}"
        there = sum(map(len, self._by_topic.values()))
        assert wanted == there, f"{there} pods are filed under topics, not {wanted}"

    def _unfile(self, key: str, entry: _Entry) -> None:
        self.gated -= entry.is_gated
        for topic in entry.topics:
            pods = self._by_topic[topic]
            del pods[key]
            if not pods:
                del self._by_topic[topic]
