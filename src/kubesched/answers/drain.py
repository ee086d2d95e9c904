"""Drains: what happens to each pod, in which order a pool is upgraded, which nodes can go.

All nodes are cordoned first, then drained one after another as `kubectl drain` does: every pod is
evicted; evictions that a budget refuses are retried once the replacements of other pods run.
Controllers replace evicted pods, and the production scheduler places them.

To upgrade a pool or to do without nodes, each node is drained in a trial, which is undone if a pod
finds no place or a budget keeps one. So every order that is returned was carried out.

Upstream: staging/src/k8s.io/kubectl/pkg/drain (v1.36)
Differs:  if pods of a node wait for a budget, the next nodes are drained meanwhile, and its pods
          are tried again later. Pods that tolerate a cordon do not come back to a drained node.
          Flags that kubectl drain would need are assumed and reported. A new node equals the
          drained one, with the pods of DaemonSets that it had; a pool's nodes are tried in the
          order of their names, so a better order may exist. Pods that were pending before are
          tried when new nodes are there. To do without a node, no pod is preempted, and pods that
          were pending before are not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from kubesched.answers.pod_outcomes import GONE, ClusterUse, PodOutcomes, PreemptedPod, use_of
from kubesched.answers.trial_cluster import TrialCluster, WatchSteps
from kubesched.api.core import FINISHED, Pod
from kubesched.api.meta import controller_of
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster.eviction import is_mirror, stays_in_drain
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.report import Unknown
from kubesched.explain.sentences import count
from kubesched.inputs.pod_names import workloads_of
from kubesched.snapshot.pod_info import uid_of

_FORCE: Final = "--force"
_IGNORE_DAEMON_SETS: Final = "--ignore-daemonsets"
_DELETE_EMPTY_DIRS: Final = "--delete-emptydir-data"
_FLAGS: Final = (_IGNORE_DAEMON_SETS, _DELETE_EMPTY_DIRS, _FORCE)


class PodFate(StrEnum):
    """What becomes of a pod of a drained node."""

    MOVED = "Moved"
    PENDING = "Pending"
    WAITS = "Waits"
    LOST = "Lost"
    ENDED = "Ended"
    STAYS = "Stays"


_TROUBLES: Final = (PodFate.PENDING, PodFate.WAITS, PodFate.LOST)


class DrainedPod(DocumentPart, frozen=True, kw_only=True):
    """A pod of a drained node.

    Attributes:
        pod: `namespace/name`.
        node: The node that is drained.
        fate: Moved: its replacement has a node. Pending: its replacement has none. Waits: no
            disruption budget lets it go. Lost: nothing creates it again. Ended: it was being
            deleted already. Stays: it belongs to the node.
        round: In which attempt it was evicted, from 1; 0 if it was not.
        controller: `Kind name` of what owns it; empty if nothing does.
        new_pod: `namespace/name` of its replacement; empty if there is none.
        new_node: The node of its replacement; empty if there is none.
        budgets: The budgets that do not let it go.
        message: Why it waits or stays pending; of the scheduler as kubectl shows it.
        flags: The flags of kubectl drain without which it is not evicted.
        unknown: Whether it may not be pending, because the files lack objects.
    """

    pod: str
    node: str
    fate: PodFate
    round: int = 0
    controller: str = ""
    new_pod: str = ""
    new_node: str = ""
    budgets: tuple[str, ...] = ()
    message: str = ""
    flags: tuple[str, ...] = ()
    unknown: bool = False

    @property
    def is_trouble(self) -> bool:
        """Whether it ends without a node, or cannot be evicted."""
        return self.fate in _TROUBLES


class DrainReport(Document, frozen=True, kw_only=True):
    """What happens when nodes are drained.

    Attributes:
        succeeds: Whether every pod that has to go finds a place.
        nodes: The nodes, in the order in which they are drained; all are cordoned before.
        cordoned: Those that were cordoned already.
        pods: The pods of the nodes, node by node.
        preempted: Other pods that preemption evicts for those that move.
        flags: The flags that kubectl drain needs for these nodes.
        notes: What was assumed.
        unknown: The kinds that the outcome depends on and the files lack.
    """

    succeeds: bool
    nodes: tuple[str, ...]
    cordoned: tuple[str, ...]
    pods: tuple[DrainedPod, ...]
    preempted: tuple[PreemptedPod, ...] = ()
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()


async def drain(
    cluster: TrialCluster, names: Sequence[str], watch: WatchSteps | None = None
) -> DrainReport:
    """Return what happens when nodes are drained in this order; the steps to watch are nodes."""
    after_node = cluster.watched(watch, len(names))
    cordoned = tuple(name for name in names if _is_cordoned(cluster, name))
    for name in names:
        # Before pending pods are placed: none of them goes to a node that is drained.
        cluster.cordon(name)
    await cluster.place_pending()
    drained = await drain_nodes(cluster, names, after_node)
    used = {flag for pod in drained.pods for flag in pod.flags}
    return DrainReport(
        succeeds=drained.succeeds(),
        nodes=tuple(names),
        cordoned=cordoned,
        pods=drained.pods,
        preempted=drained.preempted,
        flags=tuple(flag for flag in _FLAGS if flag in used),
        notes=tuple(cluster.notes),
        unknown=drained.unknown,
    )


def _is_cordoned(cluster: TrialCluster, name: str) -> bool:
    return cluster.node(name).spec.unschedulable


class Drained(NamedTuple):
    """What became of the pods of drained nodes; the fields are those of `DrainReport`."""

    pods: tuple[DrainedPod, ...]
    preempted: tuple[PreemptedPod, ...]
    unknown: tuple[Unknown, ...]

    def succeeds(self, *, may_lose: bool = False) -> bool:
        """Return whether all pods that had to go have a place, and all that were evicted for them.

        With `may_lose`, pods without a controller may go for good.
        """
        return not any(
            pod.is_trouble and not (may_lose and _may_be_lost(pod)) for pod in self.pods
        ) and all(one.new_node or (may_lose and one.message == GONE) for one in self.preempted)


async def drain_nodes(
    cluster: TrialCluster, names: Iterable[str], after_node: Callable[[], None] = lambda: None
) -> Drained:
    """Drain nodes of a settled cluster."""
    trial, earlier = _DrainTrial(cluster, names), len(cluster.evictions)
    await trial.run(after_node)
    outcomes = PodOutcomes(cluster)
    pods, preempted = trial.pods(outcomes), outcomes.evicted(earlier, trial.replacements())
    if any(pod.round for pod in pods):
        outcomes.unknown.drained()
    return Drained(pods, preempted, outcomes.unknown.kinds())


class _DrainTrial:
    """Drains nodes; knows which pods left in which round, and which budgets did not let go."""

    def __init__(self, cluster: TrialCluster, names: Iterable[str]) -> None:
        self._cluster = cluster
        self._on_node = {name: cluster.pods_on(name) for name in names}
        self._rounds: dict[str, int] = {}
        self._round = 0

    async def run(self, after_node: Callable[[], None]) -> None:
        """Cordon the nodes, and evict their pods as far as budgets allow."""
        cluster = self._cluster
        for name in self._on_node:
            cluster.cordon(name)
            cluster.drained.setdefault(name, "")
        there = {uid_of(pod) for name in cluster.drained for pod in cluster.pods_on(name)}
        waiting: list[Pod] = []
        for pods in self._on_node.values():
            leaving = [pod for pod in pods if not stays_in_drain(pod)]
            waiting += await self._evict(leaving)
            after_node()
        while waiting:
            left = await self._evict(waiting)
            if len(left) == len(waiting):
                break
            waiting = left
        await self._evict_those_that_came_back(there)

    async def _evict_those_that_came_back(self, there: Container[str]) -> None:
        """Evict the pods that tolerate a cordon once more, from nodes that take no pods at all.

        `there` are the uids of the pods that drained nodes had at the beginning.
        """
        cluster = self._cluster
        on_nodes = [pod for name in cluster.drained for pod in cluster.pods_on(name)]
        back = [pod for pod in on_nodes if not stays_in_drain(pod) and uid_of(pod) not in there]
        if not back:
            return
        for name in cluster.drained:
            cluster.close(name)
        for whose in dict.fromkeys(_workload_name(pod) or pod.metadata.key for pod in back):
            why = f"{whose} tolerates cordons, so that its pods come back to drained nodes"
            effect = "here these have room for no pods, so that they go elsewhere if they can"
            cluster.notes[f"{why}; {effect}."] = None
        await self._evict(back)

    async def _evict(self, pods: list[Pod]) -> list[Pod]:
        """Evict pods in rounds until no budget lets another one go; return those that are left."""
        while pods:
            self._round += 1
            refused = [pod for pod in pods if not self._try_to_evict(pod)]
            await self._cluster.settle()
            if len(refused) == len(pods):
                break
            pods = refused
        return pods

    def _try_to_evict(self, pod: Pod) -> bool:
        """Evict a pod unless budgets refuse; return whether it is gone."""
        found = self._cluster.pod(uid_of(pod))
        if found is not None:
            if not self._cluster.budgets.admit_eviction(found):
                return False
            self._cluster.delete_pod(found)
        self._rounds[uid_of(pod)] = self._round
        return True

    # What became of the pods.

    def replacements(self) -> set[str]:
        """Return the uids of the pods that replaced those of the nodes, for a time or to stay."""
        pods = [pod for found in self._on_node.values() for pod in found]
        return {later for pod in pods for later in self._cluster.successors_of(uid_of(pod))}

    def pods(self, outcomes: PodOutcomes) -> tuple[DrainedPod, ...]:
        return tuple(
            self._drained(pod, name, outcomes)
            for name, pods in self._on_node.items()
            for pod in pods
        )

    def _drained(self, pod: Pod, node_name: str, outcomes: PodOutcomes) -> DrainedPod:
        uid = uid_of(pod)
        found = DrainedPod(
            pod=pod.metadata.key,
            node=node_name,
            fate=PodFate.STAYS,
            round=self._rounds.get(uid, 0),
            controller=_workload_name(pod),
            flags=tuple(_flags_for(pod)),
        )
        if stays_in_drain(pod):
            return found
        if uid not in self._rounds:
            budgets, why = self._why_it_waits(pod)
            return replace(found, fate=PodFate.WAITS, budgets=budgets, message=why)
        if pod.metadata.deletion_timestamp:
            return replace(found, fate=PodFate.ENDED, round=0)
        if self._cluster.last_successor(uid) == uid:
            return replace(found, fate=PodFate.LOST)
        now = outcomes.of(uid, found.pod)
        if now.node in self._cluster.drained:
            budgets, why = self._why_it_waits(pod)
            return replace(found, fate=PodFate.WAITS, budgets=budgets, message=why)
        return replace(
            found,
            fate=PodFate.MOVED if now.node else PodFate.PENDING,
            new_pod=now.pod,
            new_node=now.node,
            message=now.message,
            unknown=now.unknown,
        )

    def _why_it_waits(self, pod: Pod) -> tuple[tuple[str, ...], str]:
        found = self._cluster.budgets.covering(pod)
        names = tuple(one.metadata.key for one in found)
        if len(found) > 1:
            return names, "more than one budget selects it, so that it cannot be evicted"
        return names, " and ".join(map(_why_it_refuses, found))


def _may_be_lost(pod: DrainedPod) -> bool:
    """Whether a pod goes for good, or could, because nothing owns it."""
    return pod.fate is PodFate.LOST or (pod.fate is PodFate.PENDING and not pod.controller)


def _why_it_refuses(budget: PodDisruptionBudget) -> str:
    status = budget.status
    needed = count(status.desired_healthy, "healthy pod")
    return f"the budget needs {needed} and has {status.current_healthy}"


def _workload_name(pod: Pod) -> str:
    """Return `Kind name` of what owns a pod, "" if nothing does; a Deployment by its own name."""
    found = list(workloads_of(pod))
    return " ".join(found[-1]) if found else ""


def _flags_for(pod: Pod) -> Iterable[str]:
    """Yield the flags without which kubectl refuses to drain a node with a pod."""
    if is_mirror(pod) or pod.status.phase in FINISHED:
        return
    if stays_in_drain(pod):
        yield _IGNORE_DAEMON_SETS
        return
    if any(volume.empty_dir is not None for volume in pod.spec.volumes):
        yield _DELETE_EMPTY_DIRS
    if controller_of(pod.metadata) is None:
        yield _FORCE


# Orders of nodes.

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
            which preemption would evict, fit nowhere or are protected.
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
        unknown: The kinds that the outcome depends on and the files lack.
    """

    works: bool
    nodes: int
    at_once: int
    steps: tuple[NodesAtOnce, ...]
    blocked: tuple[NodeThatBlocks, ...] = ()
    moved: int = 0
    notes: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()


class CompactReport(Document, frozen=True, kw_only=True):
    """The nodes that a cluster can do without.

    Attributes:
        removable: The nodes that can be removed, in this order.
        kept: The nodes that cannot be removed, and why.
        before: How full the cluster is with them.
        after: How full it is without them.
        notes: What was assumed.
        unknown: The kinds that the outcome depends on and the files lack.
    """

    removable: tuple[NodesAtOnce, ...]
    kept: tuple[NodeThatBlocks, ...]
    before: ClusterUse
    after: ClusterUse
    notes: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()


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
    cordoned = {name for name in waiting if _is_cordoned(cluster, name)}
    steps: list[NodesAtOnce] = []
    blocked: dict[str, NodeThatBlocks] = {}
    unknown: dict[str, Unknown] = {}
    done = 0
    held = cluster.hold_pending()
    while waiting:
        blocked = {}
        gone = NodesAtOnce((), 0)
        for name in waiting:
            found = await _drained(cluster, name, unknown, may_lose=may_lose)
            if isinstance(found, NodeThatBlocks):
                blocked[name] = found
            else:
                gone += found
                done += 1
            if len(gone.nodes) == at_once or (gone.nodes and name == waiting[-1]):
                steps.append(gone)
                cluster.release(held)
                cluster.rehearsal.scheduler.wake()
                await _bring_back(cluster, gone.nodes, cordoned)
                held = cluster.hold_pending()
                gone = NodesAtOnce((), 0)
            if watch is not None:
                watch(done + len(blocked), number, done)
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
        unknown=tuple(unknown.values()),
    )


async def _bring_back(cluster: TrialCluster, names: Iterable[str], cordoned: set[str]) -> None:
    for name in names:
        cluster.cordon(name, on=False)
        if name in cordoned:
            cluster.cordon(name)
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
    unknown: dict[str, Unknown] = {}
    with cluster.moving_only():
        for name in _emptiest_first(cluster, names):
            found = await _drained(cluster, name, unknown, may_lose=may_lose)
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
        unknown=tuple(unknown.values()),
    )


def _emptiest_first(cluster: TrialCluster, names: Iterable[str]) -> Sequence[str]:
    nodes = cluster.rehearsal.scheduler.cache.nodes

    def fullness(name: str) -> float:
        row = nodes.row_of[name]
        amounts = (nodes.amounts_on(row, resource) for resource in ("cpu", "memory"))
        return max(requested / max(allocatable, 1) for allocatable, requested in amounts)

    return sorted(names, key=lambda name: (fullness(name), name))


async def _drained(
    cluster: TrialCluster, name: str, unknown: dict[str, Unknown], *, may_lose: bool
) -> NodesAtOnce | NodeThatBlocks:
    """Drain a node, and add its unknown kinds; if it cannot be drained, return why and undo it."""
    cluster.begin()
    drained = await drain_nodes(cluster, [name])
    unknown.update((one.kind, one) for one in drained.unknown)
    if drained.succeeds(may_lose=may_lose) and not cluster.breaks_budget:
        cluster.keep()
        moved = sum(pod.round > 0 for pod in drained.pods)
        lost = sum(pod.fate is PodFate.LOST for pod in drained.pods)
        return NodesAtOnce((name,), moved, lost)
    await cluster.undo()
    return NodeThatBlocks(name, tuple(pod for pod in drained.pods if pod.is_trouble))
