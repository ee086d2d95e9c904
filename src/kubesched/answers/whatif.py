"""What a plan changes: pods that move, are lost or pending, and how full the cluster is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kubesched.answers.drain import DrainedPod
from kubesched.answers.plan import PlanStep
from kubesched.answers.plan_steps import Manifests, PlanRun
from kubesched.answers.pod_outcomes import (
    PodOutcomeNow,
    PodOutcomes,
    PodsWithoutNode,
    PreemptedPod,
    grouped,
)
from kubesched.answers.top import ResourceRequests
from kubesched.answers.trial_cluster import TrialCluster, WatchSteps, is_daemon
from kubesched.api.core import Pod
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.report import Unknown
from kubesched.simulator.utilisation import Utilisation


class MovedPod(DocumentPart, frozen=True):
    """A pod that is somewhere else afterwards.

    Attributes:
        pod: `namespace/name` before.
        node: Its node before; empty for a pod that was pending, or is new.
        new_pod: `namespace/name` of its replacement; the same if it was not replaced.
        new_node: Its node afterwards; empty if it is gone.
    """

    pod: str
    node: str
    new_pod: str
    new_node: str


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


class WhatIfReport(Document, frozen=True, kw_only=True):
    """What a plan changes.

    Attributes:
        works: Whether no pod is lost, newly pending or kept from leaving by a budget.
        steps: What each step did, in words.
        moved: Pods whose replacement is on a node.
        lost: Pods that are gone, and that nothing creates again.
        removed: Pods that a step removes.
        now_pending: Pods that had a node, or are new, and that no node takes; and those that were
            pending and would get a node without the plan.
        no_longer_pending: Pods that were pending, and get a node because of the plan.
        created: New pods that have a node.
        waiting: Pods that a drain left on their nodes, because of a budget.
        preempted: Pods that preemption evicts.
        before: How full the cluster is without the plan, after the scheduler has tried all pods.
        after: How full it is afterwards.
        notes: What was assumed.
        unknown: The kinds that the outcome depends on and the files lack.
    """

    works: bool
    steps: tuple[str, ...]
    moved: tuple[MovedPod, ...] = ()
    lost: tuple[MovedPod, ...] = ()
    removed: tuple[MovedPod, ...] = ()
    now_pending: tuple[PodsWithoutNode, ...] = ()
    no_longer_pending: tuple[MovedPod, ...] = ()
    created: tuple[MovedPod, ...] = ()
    waiting: tuple[DrainedPod, ...] = ()
    preempted: tuple[PreemptedPod, ...] = ()
    before: ClusterUse
    after: ClusterUse
    notes: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()


async def what_if(
    cluster: TrialCluster,
    steps: Sequence[tuple[str, PlanStep]],
    manifests: Manifests,
    watch: WatchSteps | None = None,
) -> WhatIfReport:
    """Return what a plan changes.

    Each step comes with its path in the plan; `manifests` has the objects of each file that a step
    applies.

    Raises:
        QuestionError: A step names something that does not exist.
    """
    after_step = cluster.watched(watch, len(steps))
    run = PlanRun(cluster, manifests)
    # Placing many pending pods takes long, so a misspelt name is reported first.
    run.check(steps)
    await cluster.place_pending()
    pods, placed_first = cluster.pods(), frozenset(cluster.placed_first)
    before = use_of(cluster)
    earlier = len(cluster.evictions)
    done = []
    for path, step in steps:
        done.append(await run.carry_out(path, step))
        after_step()
    difference = _Difference(cluster, pods, placed_first, run.removed)
    # A later step may have let a pod go that waited for a budget.
    waiting = tuple(pod for pod in run.waiting if pod.pod in difference.unmoved)
    preempted = difference.outcomes.evicted(earlier)
    return WhatIfReport(
        works=not (difference.lost or difference.pending or waiting),
        steps=tuple(done),
        moved=tuple(difference.moved),
        lost=tuple(difference.lost),
        removed=tuple(difference.removed),
        now_pending=grouped(difference.pending),
        no_longer_pending=tuple(difference.no_longer_pending),
        created=tuple(difference.created),
        waiting=waiting,
        preempted=preempted,
        before=before,
        after=use_of(cluster),
        notes=tuple(cluster.notes),
        unknown=difference.outcomes.unknown(),
    )


class _Difference:
    """The pods before and after a plan."""

    def __init__(
        self,
        cluster: TrialCluster,
        before: Mapping[str, Pod],
        placed_first: Collection[str],
        removed: Collection[str],
    ) -> None:
        self.outcomes = PodOutcomes(cluster)
        self.moved: list[MovedPod] = []
        self.lost: list[MovedPod] = []
        self.removed: list[MovedPod] = []
        self.no_longer_pending: list[MovedPod] = []
        self.created: list[MovedPod] = []
        self.pending: list[PodOutcomeNow] = []
        self.unmoved: set[str] = set()
        now = cluster.pods()
        for uid, was in before.items():
            last = cluster.last_successor(uid)
            pod = now.pop(last, None)
            was_first = uid in placed_first
            key, node = was.metadata.key, "" if was_first else was.spec.node_name
            if pod is not None:
                found = MovedPod(key, node, pod.metadata.key, pod.spec.node_name)
                self._add(uid, last, found, was_first=was_first)
            elif uid in removed or last in removed:
                self.removed.append(MovedPod(key, node, "", ""))
            elif not is_daemon(was):
                self.lost.append(MovedPod(key, node, "", ""))
        for uid, pod in now.items():
            key = pod.metadata.key
            if pod.spec.node_name:
                self.created.append(MovedPod("", "", key, pod.spec.node_name))
            else:
                self.pending.append(self.outcomes.of(uid, key))

    def _add(self, uid: str, last: str, found: MovedPod, *, was_first: bool) -> None:
        if not (found.node or was_first):
            if found.new_node:
                self.no_longer_pending.append(found)
        elif not found.new_node:
            self.pending.append(self.outcomes.of(uid, found.pod))
        elif was_first:
            return
        elif last != uid:
            self.moved.append(found)
        else:
            self.unmoved.add(found.pod)


def use_of(cluster: TrialCluster) -> ClusterUse:
    """Return how full a settled cluster is."""
    rehearsal = cluster.rehearsal
    nodes = rehearsal.scheduler.cache.nodes
    total = Utilisation(nodes).total()
    return ClusterUse(
        len(nodes),
        int(nodes.pod_counts.sum()),
        len(rehearsal.unplaced()) + len(rehearsal.gated()),
        tuple(
            ResourceRequests(one.resource, one.requested_after, one.allocatable, one.share_after)
            for one in total
        ),
    )
