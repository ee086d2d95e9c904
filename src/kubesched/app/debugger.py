"""CacheDebugger logs the scheduler's cache and how it differs from the informers' objects.

Upstream: pkg/scheduler/backend/cache/debugger (v1.36)
Differs:  nodes are in the order of the cache's rows; upstream iterates over a map.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kubesched.api.core import Pod
from kubesched.cache.cache import Cache
from kubesched.framework.structured_log import V0, V3, write
from kubesched.queue.moves import QueuePlace
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

log: Final = logging.getLogger(__name__)

_COLUMNS: Final = {
    "cpu": "MilliCPU",
    "memory": "Memory",
    "ephemeral-storage": "EphemeralStorage",
}
_WAITING: Final = (QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE)


class CacheDebugger:
    """Compares the cache with the informers, and dumps it."""

    def __init__(
        self,
        node_names: Callable[[], Iterable[str]],
        pod_uids: Callable[[], Iterable[str]],
        cache: Cache,
        queue: SchedulingQueue,
    ) -> None:
        """Take functions that return the nodes and the unfinished pods of the informers."""
        self._observed_nodes = node_names
        self._observed_pods = pod_uids
        self._cache = cache
        self._queue = queue

    def run(self) -> None:
        """Log the differences, then the cache and the queue."""
        self.compare()
        self.dump()

    def compare(self) -> None:
        """Log nodes and pods that only one side has."""
        write(log, V3, "Cache comparer started")
        cached = [*self._cache.nodes.names, *self._cache.pods_without_node()]
        _compare(self._observed_nodes(), cached, "Nodes")
        _compare(self._observed_pods(), self._pod_uids(), "Pods")
        write(log, V3, "Cache comparer finished")

    def dump(self) -> None:
        """Log every node with its pods, and the pending pods."""
        write(log, V0, "Dump of cached NodeInfo", nodes="\n\n".join(self._node_texts()))
        counts = self._queue.statistics()
        unschedulable = counts.unschedulable + counts.gated
        write(
            log,
            V0,
            "Dump of scheduling queue",
            summary=f"activeQ:{counts.active}; backoffQ:{counts.backoff};"
            f" unschedulablePods:{unschedulable}",
            pods="".join(_pod_text(pod) for pod in self._waiting_pods()),
        )

    def _waiting_pods(self) -> list[Pod]:
        return [queued.pod_info.pod for place in _WAITING for queued in self._queue.pods(place)]

    def _pod_uids(self) -> list[str]:
        on_nodes = [uid for pods in self._cache.nodes.pods for uid in pods]
        orphans = [info.uid for pods in self._cache.pods_without_node().values() for info in pods]
        return [*on_nodes, *orphans, *(pod.metadata.uid for pod in self._waiting_pods())]

    def _node_texts(self) -> Iterable[str]:
        for row, name in enumerate(self._cache.nodes.names):
            yield self._node_text(name, self._cache.nodes.pods[row].values(), row)
        for name, pods in self._cache.pods_without_node().items():
            yield self._node_text(name, pods, None)

    def _node_text(self, name: str, pods: Iterable[PodInfo], row: int | None) -> str:
        those = list(pods)
        nominated = self._queue.nominator.on_node(name)
        head = (
            f"Node name: {name}\nDeleted: {str(row is None).lower()}\n"
            f"Requested Resources: {self._requested(row, those)}\n"
            f"Allocatable Resources:{self._allocatable(row)}\n"
            f"Scheduled Pods(number: {len(those)}):\n"
        )
        parts = [head, *(_pod_text(info.pod) for info in those)]
        if nominated:
            parts.append(f"Nominated Pods(number: {len(nominated)}):\n")
            parts.extend(_pod_text(info.pod) for info in nominated)
        return "".join(parts)

    def _requested(self, row: int | None, pods: Sequence[PodInfo]) -> str:
        amounts: dict[str, int] = {}
        if row is None:
            for info in pods:
                for name, amount in info.template.held.items():
                    amounts[name] = amounts.get(name, 0) + amount
        else:
            nodes = self._cache.nodes
            amounts = {name: int(nodes.requested_of(name)[row]) for name in _names_on(nodes, row)}
        return _resources_text(amounts, 0)

    def _allocatable(self, row: int | None) -> str:
        if row is None:
            return _resources_text({}, 0)
        nodes = self._cache.nodes
        amounts = {name: int(nodes.allocatable_of(name)[row]) for name in _names_on(nodes, row)}
        return _resources_text(amounts, int(nodes.allowed_pods[row]))


def _names_on(nodes: NodeTable, row: int) -> Iterable[str]:
    """Return the resources that a row may have."""
    return (*nodes.resources, *(name for name, rows in nodes.rare.items() if row in rows))


def _compare(observed: Iterable[str], cached: Iterable[str], kind: str) -> None:
    """Log the names that only one side has; duplicates count."""
    there, here = Counter(observed), Counter(cached)
    if there != here:
        missed, redundant = (tuple(sorted(one.elements())) for one in (there - here, here - there))
        names = {f"missed{kind}": missed, f"redundant{kind}": redundant}
        write(log, V0, "Cache mismatch", **names)


def _resources_text(amounts: Mapping[str, int], allowed_pods: int) -> str:
    """Return resources as Go prints upstream's struct."""
    named = " ".join(f"{theirs}:{amounts.get(ours, 0)}" for ours, theirs in _COLUMNS.items())
    scalars = " ".join(
        f"{name}:{amount}"
        for name, amount in sorted(amounts.items())
        if name not in _COLUMNS and amount
    )
    return f"&{{{named} AllowedPodNumber:{allowed_pods} ScalarResources:map[{scalars}]}}"


def _pod_text(pod: Pod) -> str:
    return (
        f"name: {pod.metadata.name}, namespace: {pod.metadata.namespace},"
        f" uid: {pod.metadata.uid}, phase: {pod.status.phase},"
        f" nominated node: {pod.status.nominated_node_name}\n"
    )
