"""What became of pods in a trial cluster, their nodes or why they have none; how full it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Final, NamedTuple

from kubesched.answers.top import ResourceRequests, requests_of
from kubesched.answers.trial_cluster import TrialCluster
from kubesched.api.names import PODS
from kubesched.api.quantity import value
from kubesched.cluster.controllers.controller import is_active
from kubesched.explain.document import DocumentPart
from kubesched.explain.sentences import grouped_by, largest_first
from kubesched.explain.unknown import UnknownOutcomes
from kubesched.simulator.report import Gated, Unplaced
from kubesched.simulator.utilisation import amounts_of, resource_names
from kubesched.snapshot.pod_info import PodInfo

GONE: Final = "it was evicted, and no controller creates it again"


class PodOutcomeNow(NamedTuple):
    """The node of a pod or of its replacement, or else why it has none, as in `PodsWithoutNode`."""

    pod: str
    node: str = ""
    message: str = ""
    reasons: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    unknown: bool = False


class PodsWithoutNode(DocumentPart, frozen=True):
    """Pods that no node takes for the same reason.

    Attributes:
        pods: `namespace/name` of each.
        message: The message of the condition PodScheduled=False, as kubectl shows it.
        reasons: The reasons in the message, sorted and without numbers.
        plugins: The plugins that rejected them.
        unknown: Whether they may fit, because the files lack objects that the rejection depends
            on.
    """

    pods: tuple[str, ...]
    message: str
    reasons: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    unknown: bool = False


class PreemptedPod(DocumentPart, frozen=True):
    """A pod that preemption evicts.

    Attributes:
        pod: `namespace/name`.
        node: The node it was on.
        preemptor: The pod that it is evicted for.
        priority: Its priority.
        controller: `Kind name` of its controller; empty if it has none.
        new_node: The node of its replacement; empty if there is none.
        message: Why it has no new node; empty if it has one.
    """

    pod: str
    node: str
    preemptor: str
    priority: int
    controller: str
    new_node: str
    message: str


class PodOutcomes:
    """Outcomes at one moment of a settled cluster; `unknown` collects what they depend on."""

    def __init__(self, cluster: TrialCluster) -> None:
        self._cluster = cluster
        scheduler = cluster.rehearsal.scheduler
        self._profiles = scheduler.profiles
        self.unknown = UnknownOutcomes(scheduler.cache.snapshot(scheduler.queue.nominator))

    @cached_property
    def _pending(self) -> dict[str, Unplaced | Gated]:
        # All pending pods are listed only if one of them is asked about.
        rehearsal = self._cluster.rehearsal
        return {**rehearsal.unplaced(), **rehearsal.gated()}

    def of(self, uid: str, key: str = "") -> PodOutcomeNow:
        """Return the outcome of a pod, or of its replacement.

        `key` is its `namespace/name`, in case it is gone.
        """
        last = self._cluster.last_successor(uid)
        pod = self._cluster.pod(last)
        if pod is None:
            return PodOutcomeNow(key, message=GONE, reasons=(GONE,))
        info = PodInfo(pod)
        profile = self._profiles.get(info.scheduler_name)
        outcomes = self._cluster.rehearsal.outcomes
        if info.node_name:
            if profile is not None and last in outcomes.placements:
                self.unknown.placed(profile, info, had_choice=last in outcomes.had_choice)
                if last in outcomes.victims:
                    self.unknown.preempted(profile, info)
            return PodOutcomeNow(info.key, info.node_name)
        if profile is None:
            known = next(iter(self._profiles))
            text = (
                f"it asks for the scheduler {info.scheduler_name}, which is not configured; "
                f"--profile {known} asks that one instead"
            )
            return PodOutcomeNow(info.key, message=text, reasons=(text,))
        found = self._pending.get(last)
        if found is None:
            text = "it was not tried"
            return PodOutcomeNow(info.key, message=text, reasons=(text,))
        # Pods that are held back for the same reason are one group.
        held = found.message.removeprefix(f'pod "{info.key}": ')
        reasons = (held,) if isinstance(found, Gated) else found.reasons
        plugins = (found.plugin,) if isinstance(found, Gated) else found.plugins
        guess = self.unknown.rejected(profile, info, plugins)
        return PodOutcomeNow(info.key, "", found.message, reasons, plugins, guess)

    def evicted(self, since: int = 0, without: Collection[str] = ()) -> tuple[PreemptedPod, ...]:
        """Return the pods that preemption evicted since a position, except those `without` uids."""
        found = []
        for one in self._cluster.evictions[since:]:
            uid = self._cluster.gone.get(one.pod, "")
            if uid in without:
                continue
            now = self.of(uid, one.pod)
            found.append(
                PreemptedPod(
                    one.pod,
                    one.node,
                    one.preemptor,
                    one.priority,
                    one.controller,
                    now.node,
                    now.message,
                )
            )
        return tuple(found)


def grouped(outcomes: Iterable[PodOutcomeNow]) -> tuple[PodsWithoutNode, ...]:
    """Return the pods without a node by their reasons, the most frequent ones first."""
    without = [one for one in outcomes if not one.node]
    groups = grouped_by(without, lambda one: (one.reasons, one.plugins, one.unknown))
    return tuple(
        PodsWithoutNode(tuple(one.pod for one in found), found[0].message, *common)
        for common, found in largest_first(groups)
    )


# How full the cluster is.


class ClusterUse(DocumentPart, frozen=True):
    """How full a cluster is.

    Attributes:
        nodes: Number of nodes.
        pods: Number of pods on nodes.
        pending: Number of pods without a node.
        resources: What pods on nodes request of each resource.
    """

    nodes: int
    pods: int
    pending: int
    resources: tuple[ResourceRequests, ...]


def use_of(cluster: TrialCluster) -> ClusterUse:
    """Return how full a settled cluster is."""
    rehearsal = cluster.rehearsal
    nodes = rehearsal.scheduler.cache.nodes
    # Drained nodes that are closed allow no pods, but only until they are uncordoned.
    closed = sum(value(pods) for pods in cluster.drained.values() if pods)
    resources = []
    for name in resource_names(nodes):
        # Python's integers, because sums of absurd amounts may exceed int64.
        allocatable, requested = (sum(column.tolist()) for column in amounts_of(nodes, name))
        allocatable += closed * (name == PODS)
        resources.append(requests_of(name, requested, allocatable))
    return ClusterUse(
        len(nodes),
        int(nodes.pod_counts.sum()),
        sum(is_active(pod) and not pod.spec.node_name for pod in cluster.pods().values()),
        tuple(resources),
    )
