"""In which order the nodes of a pool can be replaced, and which nodes a cluster can do without.

Each node is drained in a trial, and the trial is undone if a pod finds no place or a budget keeps
one. So every order that is returned was carried out, from the first node to the last.

Differs:  a new node equals the drained one, with the pods of DaemonSets that it had; a
          pool's nodes are tried in the order of their names, so a better order may exist. To do
          without a node, no pod is preempted, and pods that were pending before are not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from kubesched.answers.drain import DrainedPod, PodFate, drain_nodes, is_cordoned
from kubesched.answers.trial_cluster import TrialCluster
from kubesched.answers.whatif import ClusterUse, use_of
from kubesched.explain.document import Document, DocumentPart

WatchNodes: TypeAlias = Callable[[int, int, int], object]
"""Called with the numbers of nodes that were tried, that are to be tried, and that can go."""


class NodesAtOnce(DocumentPart, frozen=True):
    """Nodes that are drained and replaced together.

    Attributes:
        nodes: Their names, in the order in which they are drained.
        moved: How many pods are evicted.
        lost: How many of them are lost, because nothing creates them again.
    """

    nodes: tuple[str, ...]
    moved: int
    lost: int = 0

    def __add__(self, other: NodesAtOnce) -> NodesAtOnce:
        return NodesAtOnce(
            self.nodes + other.nodes, self.moved + other.moved, self.lost + other.lost
        )


class NodeThatBlocks(DocumentPart, frozen=True):
    """A node that cannot be drained.

    Attributes:
        node: Its name.
        pods: The pods that fit nowhere, or that a budget protects. None if only pods elsewhere,
            which preemption would evict, fit nowhere.
    """

    node: str
    pods: tuple[DrainedPod, ...]


class UpgradeReport(Document, frozen=True, kw_only=True):
    """An order in which the nodes of a pool can be replaced.

    Attributes:
        works: Whether all nodes can be replaced.
        nodes: Number of nodes of the pool.
        at_once: How many nodes may be drained at a time.
        steps: The order.
        blocked: The nodes that cannot be drained even after the others.
        moved: How many pods are evicted in all; a pod may move more than once.
        notes: What was assumed.
    """

    works: bool
    nodes: int
    at_once: int
    steps: tuple[NodesAtOnce, ...]
    blocked: tuple[NodeThatBlocks, ...] = ()
    moved: int = 0
    notes: tuple[str, ...] = ()


class CompactReport(Document, frozen=True, kw_only=True):
    """The nodes that a cluster can do without.

    Attributes:
        removable: The nodes that can be removed, in this order.
        kept: The nodes that cannot be removed, and why.
        before: How full the cluster is with them.
        after: How full it is without them.
        notes: What was assumed.
    """

    removable: tuple[NodesAtOnce, ...]
    kept: tuple[NodeThatBlocks, ...]
    before: ClusterUse
    after: ClusterUse
    notes: tuple[str, ...] = ()


async def upgrade(
    cluster: TrialCluster,
    names: Iterable[str],
    at_once: int,
    *,
    may_lose: bool = False,
    watch: WatchNodes | None = None,
) -> UpgradeReport:
    """Return an order in which nodes can be drained and replaced without breaking a budget.

    At most `at_once` nodes are drained at a time. With `may_lose`, pods without a controller may be
    lost. `watch` is called at the start and after each node.
    """
    waiting = sorted(names)
    number = len(waiting)
    if watch is not None:
        watch(0, number, 0)
    await cluster.place_pending()
    cordoned = {name for name in waiting if is_cordoned(cluster, name)}
    steps: list[NodesAtOnce] = []
    blocked: dict[str, NodeThatBlocks] = {}
    done = 0
    while waiting:
        blocked = {}
        gone = NodesAtOnce((), 0)
        for name in waiting:
            found = await _drained(cluster, name, may_lose=may_lose)
            if isinstance(found, NodeThatBlocks):
                blocked[name] = found
            else:
                gone += found
                done += 1
            if len(gone.nodes) == at_once:
                steps.append(gone)
                await _bring_back(cluster, gone.nodes, cordoned)
                gone = NodesAtOnce((), 0)
            if watch is not None:
                watch(done + len(blocked), number, done)
        if gone.nodes:
            steps.append(gone)
            await _bring_back(cluster, gone.nodes, cordoned)
        if len(blocked) == len(waiting):
            break
        # They may find room on the new nodes.
        waiting = list(blocked)
    return UpgradeReport(
        works=not blocked,
        nodes=number,
        at_once=at_once,
        steps=tuple(steps),
        blocked=tuple(blocked.values()),
        moved=sum(step.moved for step in steps),
        notes=tuple(cluster.notes),
    )


async def _bring_back(cluster: TrialCluster, names: Iterable[str], cordoned: set[str]) -> None:
    for name in names:
        if name not in cordoned:
            cluster.cordon(name, on=False)
    await cluster.settle()


async def compact(
    cluster: TrialCluster,
    names: Sequence[str],
    *,
    may_lose: bool = False,
    watch: WatchNodes | None = None,
) -> CompactReport:
    """Return which nodes can be removed, the emptiest first, so that every pod still has a place.

    With `may_lose`, pods without a controller may be lost. `watch` is called at the start and after
    each node.
    """
    if watch is not None:
        watch(0, len(names), 0)
    await cluster.place_pending()
    before = use_of(cluster)
    removable: list[NodesAtOnce] = []
    kept: list[NodeThatBlocks] = []
    with cluster.moving_only():
        for name in _emptiest_first(cluster, names):
            found = await _drained(cluster, name, may_lose=may_lose)
            if isinstance(found, NodeThatBlocks):
                kept.append(found)
            else:
                cluster.remove_node(name)
                removable.append(found)
            if watch is not None:
                watch(len(kept) + len(removable), len(names), len(removable))
    await cluster.settle()
    return CompactReport(
        removable=tuple(removable),
        kept=tuple(kept),
        before=before,
        after=use_of(cluster),
        notes=tuple(cluster.notes),
    )


def _emptiest_first(cluster: TrialCluster, names: Iterable[str]) -> Sequence[str]:
    nodes = cluster.rehearsal.scheduler.cache.nodes
    cpu, memory = nodes.resources["cpu"], nodes.resources["memory"]

    def fullness(name: str) -> float:
        row = nodes.row_of[name]
        return max(
            float(nodes.requested[at, row]) / max(float(nodes.allocatable[at, row]), 1.0)
            for at in (cpu, memory)
        )

    return sorted(names, key=lambda name: (fullness(name), name))


async def _drained(
    cluster: TrialCluster, name: str, *, may_lose: bool
) -> NodesAtOnce | NodeThatBlocks:
    """Drain a node; if it cannot be drained, return why and undo it."""
    cluster.begin()
    drained = await drain_nodes(cluster, [name])
    if drained.succeeds(may_lose=may_lose):
        cluster.keep()
        moved = sum(pod.round > 0 for pod in drained.pods)
        lost = sum(pod.fate is PodFate.LOST for pod in drained.pods)
        return NodesAtOnce((name,), moved, lost)
    await cluster.undo()
    return NodeThatBlocks(name, tuple(pod for pod in drained.pods if pod.is_trouble))
