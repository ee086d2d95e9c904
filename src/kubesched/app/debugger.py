"""Logs the scheduler's cache, and how it differs from the informers' objects.

Upstream: pkg/scheduler/backend/cache/debugger (v1.36)
Differs:  nodes are in the order of the cache's rows; upstream iterates over a map.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
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


def log_cache(
    node_names: Iterable[str], pod_uids: Iterable[str], cache: Cache, queue: SchedulingQueue
) -> None:
    """Log how a cache differs from the informers' objects, then the cache and the queue.

    `node_names` and `pod_uids` are the nodes and the unfinished pods of the informers.
    """
    waiting = [queued.pod_info.pod for place in _WAITING for queued in queue.pods(place)]
    lost = cache.pods_without_node()
    write(log, V3, "Cache comparer started")
    _compare(node_names, [*cache.nodes.names, *lost], "Nodes")
    on_nodes = [uid for pods in cache.nodes.pods for uid in pods]
    orphans = [info.uid for pods in lost.values() for info in pods]
    _compare(pod_uids, [*on_nodes, *orphans, *(pod.metadata.uid for pod in waiting)], "Pods")
    write(log, V3, "Cache comparer finished")
    nominated_to = queue.nominator.on_node
    texts = [
        _node_text(name, cache.nodes.pods[row].values(), nominated_to(name), cache.nodes, row)
        for row, name in enumerate(cache.nodes.names)
    ]
    texts += [
        _node_text(name, pods, nominated_to(name), cache.nodes, None) for name, pods in lost.items()
    ]
    write(log, V0, "Dump of cached NodeInfo", nodes="\n\n".join(texts))
    counts = queue.statistics()
    write(
        log,
        V0,
        "Dump of scheduling queue",
        summary=f"activeQ:{counts.active}; backoffQ:{counts.backoff};"
        f" unschedulablePods:{counts.unschedulable + counts.gated}",
        pods="".join(map(_pod_text, waiting)),
    )


def _compare(observed: Iterable[str], cached: Iterable[str], kind: str) -> None:
    """Log the names that only one side has; duplicates count."""
    there, here = Counter(observed), Counter(cached)
    if there != here:
        missed, redundant = (tuple(sorted(one.elements())) for one in (there - here, here - there))
        names = {f"missed{kind}": missed, f"redundant{kind}": redundant}
        write(log, V0, "Cache mismatch", **names)


def _node_text(
    name: str,
    pods: Collection[PodInfo],
    nominated: Collection[PodInfo],
    nodes: NodeTable,
    row: int | None,
) -> str:
    """Return a node with its pods; the row is None if only pods name the node."""
    requested: Counter[str] = Counter()
    allocatable: dict[str, int] = {}
    if row is None:
        for info in pods:
            requested.update(info.template.held)
    else:
        rare = (name for name, rows in nodes.rare.items() if row in rows)
        for resource in (*nodes.resources, *rare):
            requested[resource] = int(nodes.requested_of(resource)[row])
            allocatable[resource] = int(nodes.allocatable_of(resource)[row])
    allowed_pods = 0 if row is None else int(nodes.allowed_pods[row])
    parts = [
        f"Node name: {name}\nDeleted: {str(row is None).lower()}\n",
        f"Requested Resources: {_resources_text(requested, 0)}\n",
        f"Allocatable Resources:{_resources_text(allocatable, allowed_pods)}\n",
        f"Scheduled Pods(number: {len(pods)}):\n",
        *(_pod_text(info.pod) for info in pods),
    ]
    if nominated:
        parts.append(f"Nominated Pods(number: {len(nominated)}):\n")
        parts.extend(_pod_text(info.pod) for info in nominated)
    return "".join(parts)


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
