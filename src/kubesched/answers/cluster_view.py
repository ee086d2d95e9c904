"""ClusterView: every node and what it holds, and the pending pods by cause, to be drawn.

Reads:    the node table, the pods on nodes, and pending pods; ReplicaSets and Jobs for owners
Invariants: amounts are integers: cpu in millicores, memory and storage in bytes, the rest in units;
            a row is a number of a node, zone, pool or workload, counted from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, TypeAlias

from kubesched.answers.top import ClusterFigures, TopGroup, pool_label_of
from kubesched.answers.why import PodState, WhyReport, state_of
from kubesched.answers.workload_pods import Owners, PodOwner
from kubesched.api.conditions import find_condition
from kubesched.api.core import Node
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.sentences import grouped_by, largest_first
from kubesched.plugins.volumes.claims import claims_of
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.playback import WorkloadOnNodes
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

_TEMPLATES_MAX: Final = 500
"""Templates of pending pods that are tried, those with most pods first; milliseconds for each."""
_ANSWERS_MAX: Final = 10
"""Groups that get an answer with changes; finding them takes dozens of tries."""
_PODS_MAX: Final = 20

_Ask: TypeAlias = Callable[[PodInfo], WhyReport]


class ViewedNodes(DocumentPart, frozen=True):
    """The nodes, in order of zone, pool and name; every list has an entry per node.

    Attributes:
        names: Their names.
        zones: The row of each one's zone.
        pools: The row of each one's pool.
        cordoned: Whether each is cordoned.
        ready: Whether each is ready, as far as it reports that.
        allocatable: Per resource of the view, in its order, the amount per node.
        requested: The same for what the pods on the node request.
        pods: Per node the row of a workload, then how many of its pods are there, and so on.
    """

    names: tuple[str, ...]
    zones: tuple[int, ...]
    pools: tuple[int, ...]
    cordoned: tuple[bool, ...]
    ready: tuple[bool, ...]
    allocatable: tuple[tuple[int, ...], ...]
    requested: tuple[tuple[int, ...], ...]
    pods: tuple[tuple[int, ...], ...]


class PendingGroup(DocumentPart, frozen=True):
    """Pending pods that no node takes for the same reasons.

    Attributes:
        reasons: Why, sorted and without numbers; empty if they fit.
        fits: Whether each of them fits now.
        count: Number of pods.
        pods: `namespace/name` of the first ones.
        workloads: What they belong to, the one with most pods first, and how many pods of it there
            are, in words.
        why: The answer for the first pod of the lowest priority, for which evictions help least,
            with suggested changes; null for groups that are too small to be among the first ones.
    """

    reasons: tuple[str, ...]
    fits: bool
    count: int
    pods: tuple[str, ...]
    workloads: tuple[str, ...]
    why: WhyReport | None = None


class ClusterView(Document, frozen=True, kw_only=True):
    """The nodes of a cluster with what they hold, in columns, and its pending pods by cause.

    Attributes:
        zones: Names of the zones, with the region if there are several regions; empty for nodes
            without one.
        pool_label: The label whose value is a node's pool; empty if no well-known label is used.
        pools: Names of the pools; empty for nodes without one.
        resources: cpu, memory and pods first, then the others by name.
        nodes: The nodes.
        workloads: What the pods on nodes belong to.
        pending_pods: Number of pods without a node.
        pending: These pods by cause, the largest group first; empty if that was not asked.
    """

    zones: tuple[str, ...]
    pool_label: str
    pools: tuple[str, ...]
    resources: tuple[str, ...]
    nodes: ViewedNodes
    workloads: tuple[WorkloadOnNodes, ...]
    pending_pods: int
    pending: tuple[PendingGroup, ...]


def cluster_view(cluster: ClusterState, pool_label: str, ask: _Ask | None) -> ClusterView:
    """Return the view of a cluster, which stays as it is.

    `pool_label` names pools, "" for a well-known label. `ask` answers why a pod is pending; without
    it, causes are left out.
    """
    figures = ClusterFigures(cluster)
    nodes = figures.nodes
    label = pool_label or pool_label_of(nodes)
    zone_of = list(figures.places(TopGroup.ZONES, ""))
    pool_of = list(figures.places(TopGroup.POOLS, label)) if label else [""] * len(nodes)
    order = sorted(
        range(len(nodes)), key=lambda row: (zone_of[row], pool_of[row], nodes.names[row])
    )
    zones, pools = sorted(set(zone_of)), sorted(set(pool_of))
    zone_rows = {name: row for row, name in enumerate(zones)}
    pool_rows = {name: row for row, name in enumerate(pools)}
    columns = [figures.amounts(name) for name in figures.resources]
    allocatable, requested = (
        tuple(tuple(pair[at][row] for row in order) for pair in columns) for at in (0, 1)
    )
    workloads = _Workloads(figures.owners)
    return ClusterView(
        zones=tuple(zones),
        pool_label=label,
        pools=tuple(pools),
        resources=figures.resources,
        nodes=ViewedNodes(
            names=tuple(nodes.names[row] for row in order),
            zones=tuple(zone_rows[zone_of[row]] for row in order),
            pools=tuple(pool_rows[pool_of[row]] for row in order),
            cordoned=tuple(bool(nodes.unschedulable[row]) for row in order),
            ready=tuple(_is_ready(nodes.nodes[row]) for row in order),
            allocatable=allocatable,
            requested=requested,
            pods=tuple(workloads.counted(nodes.pods[row].values()) for row in order),
        ),
        workloads=workloads.found,
        pending_pods=len(figures.waiting),
        pending=tuple(_pending(cluster, figures, ask)) if ask is not None else (),
    )


def _is_ready(node: Node) -> bool:
    ready = find_condition(node.status.conditions, "Ready")
    return ready is None or ready.status == "True"


class _Workloads:
    """Numbers the workloads of pods in the order in which they first appear."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._rows: dict[tuple[PodOwner, int, str, tuple[tuple[str, int], ...]], int] = {}
        # Equal pods share their template, and all pods without an owner have one of their own.
        self._of_template: dict[PodTemplate, int] = {}

    def counted(self, pods: Iterable[PodInfo]) -> tuple[int, ...]:
        """Return the row of each workload of these pods, followed by their number."""
        counts = Counter(map(self._row, pods))
        return tuple(chain.from_iterable(sorted(counts.items())))

    def _row(self, info: PodInfo) -> int:
        row = self._of_template.get(info.template)
        if row is None:
            requests = tuple(sorted(info.template.held.items()))
            owner = self._owners.of(info)
            key = (owner, info.priority, info.spec.priority_class_name, requests)
            row = self._rows.setdefault(key, len(self._rows))
            if owner.kind != "Pod":
                self._of_template[info.template] = row
        return row

    @property
    def found(self) -> tuple[WorkloadOnNodes, ...]:
        return tuple(
            WorkloadOnNodes(
                owner.kind, owner.namespace, owner.name, priority, priority_class, dict(requests)
            )
            for owner, priority, priority_class, requests in self._rows
        )


# Pending pods.


def _pending(cluster: ClusterState, figures: ClusterFigures, ask: _Ask) -> Iterator[PendingGroup]:
    """Yield the pods by cause, the largest group first."""
    kinds = grouped_by(figures.waiting, lambda info: (info.template, tuple(claims_of(info.pod))))
    groups: dict[tuple[str, ...], list[PodInfo]] = {}
    for number, (_, pods) in enumerate(largest_first(kinds)):
        reasons = _reasons(cluster, pods[0]) if number < _TEMPLATES_MAX else _NOT_TRIED
        groups.setdefault(reasons, []).extend(pods)
    for number, (reasons, pods) in enumerate(largest_first(groups)):
        is_asked = number < _ANSWERS_MAX and reasons is not _NOT_TRIED
        counts = Counter(str(figures.owners.of(info)) for info in pods)
        yield PendingGroup(
            reasons=reasons,
            fits=not reasons,
            count=len(pods),
            pods=tuple(info.key for info in pods[:_PODS_MAX]),
            workloads=tuple(
                f"{name}, {count} pods" if count > 1 else name
                for name, count in counts.most_common(_PODS_MAX)
            ),
            why=ask(min(pods, key=lambda info: info.priority)) if is_asked else None,
        )


_NOT_TRIED: Final = (f"not tried: more than {_TEMPLATES_MAX} kinds of pods are pending",)


def _reasons(cluster: ClusterState, info: PodInfo) -> tuple[str, ...]:
    """Return why no node takes a pod; nothing if one does."""
    if state_of(info.pod, cluster.profiles) is PodState.OTHER_SCHEDULER:
        return (f"for the scheduler {info.scheduler_name}",)
    held = cluster.pre_enqueue(info)
    if not held.is_success:
        return tuple(held.all_reasons) or (held.message,)
    decision: Decision = cluster.schedule_one(info, preempts=False)
    match decision:
        case Placed():
            return ()
        case Rejected():
            return decision.diagnosis.reasons(len(cluster.cache.nodes))
    return (decision.message,)
