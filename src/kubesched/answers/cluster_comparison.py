"""Compares clusters after the scheduler has placed the pending pods of each.

The clusters may be one at two times, or under two configurations. The first is the one that the
others are compared with.

Reads:    the ends of their simulations
Invariants: pods and nodes are the same if their names are; lists are sorted by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubesched.answers.workload_pods import Owners, PodOwner
from kubesched.api.core import FINISHED, Pod
from kubesched.api.meta import KubeObject
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.report import Unknown
from kubesched.simulator.report import Eviction, SimulationReport, Summary, ZoneUse
from kubesched.simulator.simulation import SimulationEnd
from kubesched.simulator.utilisation import AveragePod, fragmentation
from kubesched.snapshot.pod_info import PodInfo


class ComparedCluster(DocumentPart, frozen=True):
    """One of the clusters, at the end.

    Attributes:
        name: The file, context or configuration, shortened.
        summary: Counts and totals.
        fragmentation: Resource -> the share of what is free that average pods cannot use, because
            their nodes lack another resource. The average is of all pods on nodes of all clusters.
        zones: Utilisation per zone.
        evictions: Evicted pods, in order of eviction.
        unknown: The kinds that the outcome depends on and the input lacks.
    """

    name: str
    summary: Summary
    fragmentation: dict[str, float]
    zones: tuple[ZoneUse, ...]
    evictions: tuple[Eviction, ...]
    unknown: tuple[Unknown, ...]


class PodDifference(DocumentPart, frozen=True):
    """A pod that is in both clusters and does not end on the same node.

    Attributes:
        pod: `namespace/name`.
        before: Its node in the first cluster; empty if it has none.
        after: Its node in the other cluster; empty if it has none.
        why: Why it has no node in one of them; empty if it has one in both.
        scheduled: Whether the scheduler chose one of the nodes. Otherwise the pod was there.
    """

    pod: str
    before: str
    after: str
    why: str
    scheduled: bool


class WorkloadDifference(DocumentPart, frozen=True):
    """A workload that has other pods in the other cluster.

    Attributes:
        kind: Its kind; `Pod` for a pod that nothing owns.
        namespace: Its namespace.
        name: Its name.
        gone: Number of its pods that are in the first cluster only.
        new: Number of its pods that are in the other cluster only.
    """

    kind: str
    namespace: str
    name: str
    gone: int
    new: int


class ClusterDifference(DocumentPart, frozen=True):
    """How a cluster differs from the first.

    Attributes:
        cluster: Its name.
        elsewhere: Pods that have a node in both, not the same.
        no_longer_fit: Pods that have a node in the first cluster only.
        newly_fit: Pods that have a node in this one only.
        pods_gone: Pods that are in the first cluster only.
        pods_new: Pods that are in this one only.
        workloads: The workloads of pods that are in one of them only.
        nodes_gone: Nodes that are in the first cluster only.
        nodes_new: Nodes that are in this one only.
    """

    cluster: str
    elsewhere: tuple[PodDifference, ...]
    no_longer_fit: tuple[PodDifference, ...]
    newly_fit: tuple[PodDifference, ...]
    pods_gone: tuple[str, ...]
    pods_new: tuple[str, ...]
    workloads: tuple[WorkloadDifference, ...]
    nodes_gone: tuple[str, ...]
    nodes_new: tuple[str, ...]


class ClusterComparison(Document, frozen=True):
    """Where the pods of clusters end, compared.

    Attributes:
        seed: The seed of the random source that broke ties, the same for all.
        differences: One for each cluster but the first.
        clusters: The clusters, in the given order.
    """

    seed: int
    differences: tuple[ClusterDifference, ...]
    clusters: tuple[ComparedCluster, ...]


class ClusterEnd(NamedTuple):
    """A cluster to compare: a short, distinct name, the objects that it had, and how it ended."""

    name: str
    objects: Sequence[KubeObject]
    end: SimulationEnd


def compared_clusters(clusters: Sequence[ClusterEnd], seed: int) -> ClusterComparison:
    """Compare clusters that were simulated with the same seed."""
    average = AveragePod()
    for cluster in clusters:
        for pods in cluster.end.nodes.pods:
            for info in pods.values():
                average.add(info.template.held)
    amounts = average.amounts()
    ends = [_Outcomes(cluster) for cluster in clusters]
    return ClusterComparison(
        seed,
        tuple(_difference(ends[0], other) for other in ends[1:]),
        tuple(
            ComparedCluster(
                cluster.name,
                cluster.end.report.summary,
                fragmentation(cluster.end.nodes, amounts),
                cluster.end.report.zones,
                cluster.end.report.evictions,
                cluster.end.report.unknown,
            )
            for cluster in clusters
        ),
    )


class _Outcomes:
    """What became of each pod of a cluster, by `namespace/name`.

    `node_of` lacks pods without a node at the end, and `why` has the reasons. For the `scheduled`
    pods, the scheduler chose a node.
    """

    def __init__(self, cluster: ClusterEnd) -> None:
        report, nodes = cluster.end
        self.name = cluster.name
        self.nodes = frozenset(nodes.names)
        self.node_of = {
            info.key: name
            for name, pods in zip(nodes.names, nodes.pods, strict=True)
            for info in pods.values()
        }
        self.scheduled = {placement.pod for placement in report.placements}
        self.why = dict(_reasons(report))
        self.pods = {
            item.metadata.key: item
            for item in cluster.objects
            if isinstance(item, Pod) and self._counts(item)
        }
        self._owners = Owners(cluster.objects)

    def _counts(self, pod: Pod) -> bool:
        """Whether a pod needs a node, and its node, if it has one, is in the cluster."""
        node_name = pod.spec.node_name
        return pod.status.phase not in FINISHED and (not node_name or node_name in self.nodes)

    def owners_of(self, keys: Iterable[str]) -> Counter[PodOwner]:
        """Return how many of these pods each workload owns."""
        return Counter(self._owners.of(PodInfo(self.pods[key])) for key in keys)


def _reasons(report: SimulationReport) -> Iterator[tuple[str, str]]:
    """Yield pods without a node, and why."""
    for ignored in report.ignored:
        yield ignored.pod, f"{ignored.reason} ({ignored.scheduler_name})"
    for gated in report.gated:
        yield gated.pod, "not known" if gated.unknown else f"held back by {gated.plugin}"
    for eviction in report.evictions:
        yield eviction.pod, f"evicted for {eviction.preemptor}"
    for unplaced in report.unplaced:
        why = ", ".join(unplaced.reasons) or unplaced.message
        yield unplaced.pod, "not known" if unplaced.unknown else why


def _difference(first: _Outcomes, other: _Outcomes) -> ClusterDifference:
    common = sorted(first.pods.keys() & other.pods.keys())
    differing = [
        _pod(key, first, other)
        for key in common
        if first.node_of.get(key) != other.node_of.get(key)
    ]
    gone = sorted(first.pods.keys() - other.pods.keys())
    new = sorted(other.pods.keys() - first.pods.keys())
    return ClusterDifference(
        other.name,
        tuple(pod for pod in differing if pod.before and pod.after),
        tuple(pod for pod in differing if not pod.after),
        tuple(pod for pod in differing if not pod.before),
        tuple(gone),
        tuple(new),
        tuple(_workloads(first.owners_of(gone), other.owners_of(new))),
        tuple(sorted(first.nodes - other.nodes)),
        tuple(sorted(other.nodes - first.nodes)),
    )


def _pod(key: str, first: _Outcomes, other: _Outcomes) -> PodDifference:
    before, after = first.node_of.get(key, ""), other.node_of.get(key, "")
    without = other if not after else first
    return PodDifference(
        key,
        before,
        after,
        "" if before and after else without.why.get(key, ""),
        key in first.scheduled or key in other.scheduled,
    )


def _workloads(gone: Counter[PodOwner], new: Counter[PodOwner]) -> Iterator[WorkloadDifference]:
    for owner in sorted(gone.keys() | new.keys()):
        yield WorkloadDifference(owner.kind, owner.namespace, owner.name, gone[owner], new[owner])
