"""Whether workloads fit into a cluster: where pods go, which do not fit, how many more would.

The pods are created as their controllers create them, and the production scheduler places them
together with the pods that are pending already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubesched.answers.node_shapes import MissingNodes, NodeShape, missing_nodes, read_shapes
from kubesched.answers.pod_outcomes import (
    PodOutcomeNow,
    PodOutcomes,
    PodsWithoutNode,
    PreemptedPod,
    grouped,
)
from kubesched.answers.room import WatchPods
from kubesched.answers.trial_cluster import QuestionError, TrialCluster
from kubesched.answers.workload_pods import (
    NewPods,
    Scaled,
    Workload,
    left_of,
    new_pods,
    owns,
    replica_sets_of,
    replicas_of,
)
from kubesched.api.apps import CronJob, DaemonSet, Job, ReplicaSet
from kubesched.api.core import Node, Pod
from kubesched.api.errors import AlreadyExistsError
from kubesched.api.meta import KubeObject, controller_of
from kubesched.cluster.controllers.controller import is_active
from kubesched.cluster.controllers.daemon_sets import node_name_of
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.report import Unknown
from kubesched.explain.sentences import count, grouped_by, there_are
from kubesched.inputs.errors import UserError, did_you_mean
from kubesched.inputs.pod_names import belongs_to
from kubesched.simulator.object_server import key_of
from kubesched.snapshot.pod_info import uid_of

_NOTES_MAX: Final = 3
_MORE_FIRST: Final = 8
_MORE_MAX: Final = 10_000
_MORE_AT_ONCE: Final = 512
_REPLICAS_MAX: Final = 100_000


class FitQuestion(NamedTuple):
    """What is asked about the workloads.

    Attributes:
        replicas: The number of pods by the name of the workload; others have their own.
        more: Whether to find out how many more pods fit; there is only one workload then.
        shapes: Nodes that could be added if something does not fit.
    """

    replicas: Mapping[str, int] = {}
    more: bool = False
    shapes: tuple[NodeShape, ...] = ()


class PodsOnNode(DocumentPart, frozen=True):
    """A node, and how many of a workload's pods it takes.

    Attributes:
        node: Its name.
        pods: How many pods.
    """

    node: str
    pods: int


class WorkloadFit(DocumentPart, frozen=True, kw_only=True):
    """How many pods of a workload fit.

    Attributes:
        kind: Of the workload.
        namespace: Of the workload.
        name: Of the workload.
        wanted: How many pods it asks for, including those that it has.
        existing: How many of them it has in the cluster; they stay as they are.
        placed: How many of them have a node at the end.
        nodes: Where the pods that are placed here go.
        not_placed: Why the others have no node.
    """

    kind: str
    namespace: str
    name: str
    wanted: int
    existing: int
    placed: int
    nodes: tuple[PodsOnNode, ...]
    not_placed: tuple[PodsWithoutNode, ...] = ()


class MorePods(DocumentPart, frozen=True):
    """How many more pods of the workload fit.

    Attributes:
        count: The number of pods.
        at_least: Whether there may be more: the search ended before a pod did not fit.
        nodes: Where they go.
        evicted: The pods that preemption evicts for them.
        stopped_by: Why the next one does not fit; None if the search ended before.
        without_evictions: How many of them fit before the first eviction.
    """

    count: int
    at_least: bool
    nodes: tuple[PodsOnNode, ...]
    evicted: tuple[PreemptedPod, ...]
    stopped_by: PodsWithoutNode | None
    without_evictions: int = 0


class FitReport(Document, frozen=True, kw_only=True):
    """Whether workloads fit.

    Attributes:
        fits: Whether every pod of every workload has a node at the end.
        nodes: Number of nodes of the cluster.
        workloads: The workloads, in the order in which they were given.
        evictions: The pods that preemption evicts for the workloads' pods, in order.
        other_evictions: Those that it evicts for pods that were pending already.
        more: How many more pods fit; None if that was not asked.
        missing_nodes: The nodes that are missing; None if no shape was given or everything fits.
        notes: What was assumed.
        unknown: The kinds that the outcome depends on and the files lack.
    """

    fits: bool
    nodes: int
    workloads: tuple[WorkloadFit, ...]
    evictions: tuple[PreemptedPod, ...] = ()
    other_evictions: tuple[PreemptedPod, ...] = ()
    more: MorePods | None = None
    missing_nodes: MissingNodes | None = None
    notes: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()


class AskedWorkload(NamedTuple):
    """A workload as stored, how many pods it is to have, those it has, and those that were created.

    Pods are `namespace/name` by uid. `succeeded` are those of a Job.
    """

    item: Workload
    wanted: int
    existing: dict[str, str]
    created: dict[str, str]
    succeeded: dict[str, str]

    @property
    def pods(self) -> dict[str, str]:
        """Uid -> `namespace/name`."""
        return self.existing | self.created


async def fit(
    cluster: TrialCluster,
    items: Iterable[KubeObject],
    question: FitQuestion,
    watch: WatchPods | None = None,
) -> FitReport:
    """Return whether the workloads among `items`, the objects of manifests, fit into a cluster."""
    outcomes_so_far = cluster.rehearsal.outcomes
    if watch is not None:
        outcomes_so_far.on_attempt = lambda: watch(len(outcomes_so_far.placements))
    asked = create_all(cluster, items, question.replicas)
    cluster.notes |= dict.fromkeys([*_existing_notes(asked), *_succeeded_notes(asked)])
    await cluster.settle()
    outcomes = PodOutcomes(cluster)
    workloads = tuple(_fit_of(one, outcomes) for one in asked)
    pods = {uid: key for one in asked for uid, key in one.pods.items()}
    waiting = [uid for uid, key in pods.items() if not outcomes.of(uid, key).node]
    own = frozenset(pods.values())
    evicted = outcomes.evicted()
    report = FitReport(
        fits=not waiting,
        nodes=len(cluster.rehearsal.scheduler.cache.nodes),
        workloads=workloads,
        evictions=tuple(one for one in evicted if one.preemptor in own),
        other_evictions=tuple(one for one in evicted if one.preemptor not in own),
        notes=tuple(cluster.notes),
        unknown=outcomes.unknown.kinds(),
    )
    if waiting and question.shapes:
        missing = await missing_nodes(cluster, waiting, question.shapes)
        report = replace(report, missing_nodes=missing)
    if question.more:
        more = await _more(cluster, asked[0], report)
        report = replace(report, more=more)
    return report


def _existing_notes(asked: Iterable[AskedWorkload]) -> list[str]:
    found = [one for one in asked if one.existing]
    rule = "existing pods count, and stay as they are."
    if len(found) > _NOTES_MAX:
        return [f"{len(found)} of the workloads have pods already: {rule}"]
    return [
        f"{type(one.item).__name__} {one.item.metadata.key} has {count(len(one.existing), 'pod')} "
        f"already: {rule}"
        for one in found
    ]


def _succeeded_notes(asked: Iterable[AskedWorkload]) -> list[str]:
    found = [one for one in asked if one.succeeded]
    if len(found) > _NOTES_MAX:
        return [f"{len(found)} of the Jobs have pods that succeeded: these are not run again."]
    return [
        f"{count(len(one.succeeded), 'pod')} of Job {one.item.metadata.key} succeeded already, and "
        f"{'is' if len(one.succeeded) == 1 else 'are'} not run again."
        for one in found
    ]


# Creating.


def create_all(
    cluster: TrialCluster, items: Iterable[KubeObject], replicas: Mapping[str, int]
) -> list[AskedWorkload]:
    """Create the objects of manifests; return the workloads among them, with their pods.

    `replicas` are as in a question. Raises QuestionError as `create_pods` does.
    """
    workloads: list[Workload] = []
    for item in items:
        if isinstance(item, Workload):
            workloads.append(item)
        else:
            cluster.add(item)
    existing = grouped_by(cluster.server.all(Pod), lambda pod: pod.metadata.namespace)
    return [
        create_workload(
            cluster,
            item,
            replicas.get(item.metadata.name),
            existing.get(item.metadata.namespace, ()),
        )
        for item in workloads
    ]


def create_workload(
    cluster: TrialCluster, item: Workload, replicas: int | None, pods: Sequence[Pod]
) -> AskedWorkload:
    """Create a workload, and the pods that it lacks; raises QuestionError as `create_pods` does.

    `pods` are those of its namespace; `replicas` is None for the workload's own number.
    """
    wanted = replicas
    if wanted is None or isinstance(item, DaemonSet):
        wanted = replicas_of(item)
    done: list[Pod] = []
    if isinstance(item, Pod):
        had = [pod for pod in pods if pod.metadata.name == item.metadata.name]
    else:
        sets = replica_sets_of(item, cluster.server.all(ReplicaSet))
        had = [pod for pod in pods if owns(item, pod, sets)]
        if isinstance(item, Job):
            done = [pod for pod in pods if _has_succeeded(item, pod)]
            wanted = left_of(item, len(had), len(done)) if replicas is None else replicas
        if isinstance(item, Scaled):
            item = scaled(item, wanted)
        item = cluster.add(item)
    if isinstance(item, DaemonSet):
        taken = map(node_name_of, had)
        new = new_pods(item, 0, taken, cluster.server.all(Node))
        wanted = len(had) + len(new.pods)
    else:
        names = [pod.metadata.name for pod in (*had, *done)]
        new = new_pods(item, max(wanted - len(had), 0), names)
    created = _keys(create_pods(cluster, new))
    return AskedWorkload(item, wanted, _keys(had), created, _keys(done))


def _has_succeeded(job: Job, pod: Pod) -> bool:
    return pod.status.phase == "Succeeded" and belongs_to(pod, "Job", job.metadata.name)


def scaled(item: Scaled, number: int) -> Scaled:
    """Return a workload with another number of pods."""
    match item:
        case Job():
            return replace(item, spec=replace(item.spec, parallelism=number, completions=None))
        case CronJob():
            template = item.spec.job_template
            job = replace(template.spec, parallelism=number, completions=None)
            template = replace(template, spec=job)
            return replace(item, spec=replace(item.spec, job_template=template))
        case _:
            return replace(item, spec=replace(item.spec, replicas=number))


def create_pods(cluster: TrialCluster, new: NewPods) -> list[Pod]:
    """Create what a controller makes; return the pods.

    Raises QuestionError if a pod of such a name belongs to something else.
    """
    for owner in new.owners:
        cluster.add(owner)
    for claim in new.claims:
        if cluster.server.store.find(key_of(claim)) is None:
            cluster.add(claim)
    for pod in new.pods:
        _remove_ended(cluster, pod)
    try:
        return [cluster.create_pod(pod) for pod in new.pods]
    except AlreadyExistsError as error:
        raise QuestionError(f"{error}, and belongs to something else; rename one") from error


def _remove_ended(cluster: TrialCluster, pod: Pod) -> None:
    """Remove the workload's pod of this name if it has ended or is ending, as controllers do."""
    metadata, owner = pod.metadata, controller_of(pod.metadata)
    known = cluster.server.pod(metadata.namespace, metadata.name)
    if known is None or owner is None or is_active(known):
        return
    if belongs_to(known, owner.kind, owner.name):
        cluster.delete_pod(known, for_good=True)


def _keys(pods: Iterable[Pod]) -> dict[str, str]:
    return {uid_of(pod): pod.metadata.key for pod in pods}


# What became of them.


def _fit_of(asked: AskedWorkload, outcomes: PodOutcomes) -> WorkloadFit:
    metadata = asked.item.metadata
    found = {uid: outcomes.of(uid, key) for uid, key in asked.pods.items()}
    placed_here = [one for uid, one in found.items() if uid in asked.created]
    return WorkloadFit(
        kind=type(asked.item).__name__,
        namespace=metadata.namespace,
        name=metadata.name,
        # The pods that it has stay, also if it asks for fewer now.
        wanted=max(asked.wanted, len(asked.existing)),
        existing=len(asked.existing),
        placed=sum(bool(one.node) for one in found.values()),
        nodes=_by_node(placed_here),
        not_placed=grouped(found.values()),
    )


def _by_node(outcomes: Iterable[PodOutcomeNow]) -> tuple[PodsOnNode, ...]:
    counts = Counter(one.node for one in outcomes if one.node)
    return tuple(PodsOnNode(node, number) for node, number in sorted(counts.items()))


async def _more(cluster: TrialCluster, asked: AskedWorkload, report: FitReport) -> MorePods:
    """Create pods in growing numbers until one does not fit."""
    if not report.fits:
        return MorePods(0, False, (), (), report.workloads[0].not_placed[0])
    used = (asked.pods | asked.succeeded).values()
    taken = [key.partition("/")[2] for key in used]
    earlier = len(cluster.evictions)
    placed: list[PodOutcomeNow] = []
    created: dict[str, str] = {}
    stopped_by = None
    number = _MORE_FIRST
    while stopped_by is None and len(placed) < _MORE_MAX:
        pods = create_pods(cluster, new_pods(asked.item, number, taken))
        await cluster.settle()
        outcomes = PodOutcomes(cluster)
        keys = _keys(pods)
        created |= keys
        found = [outcomes.of(uid, key) for uid, key in keys.items()]
        taken += [pod.metadata.name for pod in pods]
        placed += [one for one in found if one.node]
        left = grouped(found)
        stopped_by = left[0] if left else None
        number = min(2 * number, _MORE_AT_ONCE)
    evicted = PodOutcomes(cluster).evicted(earlier)
    return MorePods(
        len(placed),
        stopped_by is None,
        _by_node(placed),
        evicted,
        stopped_by,
        _before_evictions(cluster, created),
    )


def _before_evictions(cluster: TrialCluster, created: Iterable[str]) -> int:
    """Return how many of some equal pods were placed before the first one that evicts others.

    `created` are their uids in order; those that follow may take what an eviction left over.
    """
    outcomes = cluster.rehearsal.outcomes
    without = takewhile(lambda uid: uid not in outcomes.victims, created)
    return sum(uid in outcomes.placements for uid in without)


# The question.


def parse_question(
    items: Iterable[KubeObject],
    replicas: int | str | Mapping[str, int] | Iterable[str],
    node_templates: str | Sequence[str],
    *,
    more: bool,
) -> FitQuestion:
    """Return what is asked about the workloads among objects; otherwise like `Cluster.fit`.

    Raises UserError if an argument is wrong, or does not go with the workloads.
    """
    if isinstance(replicas, int | str):
        replicas = [str(replicas)]
    elif isinstance(replicas, Mapping):
        replicas = [f"{name}={number}" for name, number in replicas.items()]
    if isinstance(node_templates, str):
        node_templates = [node_templates]
    workloads = [item for item in items if isinstance(item, Workload)]
    by_name = _replicas(replicas, workloads)
    if more and len(workloads) > 1:
        raise UserError(
            f"--max: there are {len(workloads)} workloads; name a file with only one of them"
        )
    if more and isinstance(workloads[0], DaemonSet):
        raise UserError("--max: a DaemonSet has one pod per node; name a workload with replicas")
    return FitQuestion(by_name, more, read_shapes(node_templates))


def _replicas(written: Iterable[str], workloads: Sequence[Workload]) -> dict[str, int]:
    """Return the number of pods by workload; one for a name overrides one for all."""
    every: dict[str, int] = {}
    single: dict[str, int] = {}
    scalable = [item.metadata.name for item in workloads if not isinstance(item, DaemonSet)]
    for text in written:
        name, equals, number = text.rpartition("=")
        name = name.rpartition("/")[2]
        if not number.isdecimal() or int(number) > _REPLICAS_MAX:
            raise UserError(
                f"--replicas {text}: write a number up to {_REPLICAS_MAX}, or NAME=NUMBER"
            )
        if not equals:
            every = dict.fromkeys(scalable, int(number))
        elif name in scalable:
            single[name] = int(number)
        else:
            raise UserError(f"--replicas {text}: {_no_such_workload(name, workloads, scalable)}")
    return every | single


def _no_such_workload(name: str, workloads: Sequence[Workload], scalable: Sequence[str]) -> str:
    if any(item.metadata.name == name for item in workloads):
        return "a DaemonSet has one pod per node; leave it out"
    hint = did_you_mean(name, scalable, there_are("workload", sorted(scalable)))
    return f"no workload in the manifests has this name; {hint}"
