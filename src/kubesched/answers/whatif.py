"""What a plan changes: pods that move, are lost or pending, and how full the cluster is.

The steps are carried out in a trial cluster, which settles after each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import singledispatchmethod
from typing import Final, TypeAlias, get_args

from msgspec.structs import replace

from kubesched.answers.drain import DrainedPod, PodFate, drain_nodes
from kubesched.answers.fit import create_all, create_pods, create_workload, scaled
from kubesched.answers.node_shapes import new_nodes, shape_of
from kubesched.answers.plan import (
    AddNodes,
    ApplyManifest,
    CordonNodes,
    DrainNodes,
    LabelNodes,
    LoseZone,
    Names,
    OfNodes,
    OfWorkload,
    PlanStep,
    RemoveNodes,
    ResizeNodes,
    ScaleWorkload,
    SetBudget,
    SetPriority,
    TaintNodes,
    UncordonNodes,
)
from kubesched.answers.pod_outcomes import (
    ClusterUse,
    PodOutcomeNow,
    PodOutcomes,
    PodsWithoutNode,
    PreemptedPod,
    grouped,
    use_of,
)
from kubesched.answers.trial_cluster import (
    QuestionError,
    TrialCluster,
    WatchSteps,
    names_of,
    selected_nodes,
)
from kubesched.answers.workload_pods import (
    Scaled,
    is_daemon,
    new_pods,
    ordinal_of,
    replacement_of,
    replicas_of,
    stateful_set_of,
)
from kubesched.api.apps import CronJob, StatefulSet
from kubesched.api.core import Node, Pod, Taint
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubesched.api.scheduling import PriorityClass
from kubesched.api.tolerations import NO_EXECUTE, find_untolerated, taint_text
from kubesched.api.volume import PersistentVolumeClaim
from kubesched.api.well_known import ZONE
from kubesched.cluster.controllers.controller import is_active
from kubesched.cluster.controllers.replica_sets import deletion_rank
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.report import Unknown
from kubesched.explain.sentences import count, grouped_by, names
from kubesched.inputs.pod_names import belongs_to, no_such, node_name
from kubesched.simulator.defaults import PriorityClasses
from kubesched.snapshot.pod_info import uid_of

_SELECTOR_SIGNS: Final = frozenset("=!(), ")
_Manifests: TypeAlias = Mapping[str, Sequence[KubeObject]]


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
    manifests: _Manifests,
    watch: WatchSteps | None = None,
) -> WhatIfReport:
    """Return what a plan changes; raises QuestionError if a step names what does not exist.

    Each step comes with its path in the plan; `manifests` has the objects of each file that a step
    applies.
    """
    after_step = cluster.watched(watch, len(steps))
    run = _PlanRun(cluster, manifests)
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
    difference = _Difference(cluster, pods, placed_first, run)
    # A later step may have let a pod go that waited for a budget.
    waiting = tuple(pod for pod in run.waiting if pod.pod in difference.unmoved)
    preempted = difference.outcomes.evicted(earlier)
    if run.has_evicted:
        difference.outcomes.unknown.drained()
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
        unknown=difference.outcomes.unknown.kinds(),
    )


class _Difference:
    """The pods before and after a plan."""

    def __init__(
        self,
        cluster: TrialCluster,
        before: Mapping[str, Pod],
        placed_first: Collection[str],
        run: _PlanRun,
    ) -> None:
        self.outcomes = PodOutcomes(cluster)
        self._drained = cluster.drained
        self._waiting = {pod.pod for pod in run.waiting}
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
            elif uid in run.removed or last in run.removed:
                self.removed.append(MovedPod(key, node, "", ""))
            elif is_active(was) and not is_daemon(was):
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
        elif last != uid and not (found.new_node in self._drained and found.pod in self._waiting):
            self.moved.append(found)
        else:
            self.unmoved.add(found.pod)


# The steps.


class _PlanRun:
    """Carries out steps.

    `removed` are the uids of pods that a step deleted for good, `waiting` the pods that a drain
    left because of a budget.
    """

    def __init__(self, cluster: TrialCluster, manifests: _Manifests) -> None:
        self._cluster = cluster
        self._manifests = manifests
        self._removed_nodes: set[str] = set()
        self.removed: set[str] = set()
        self.waiting: list[DrainedPod] = []
        self.has_evicted = False

    def check(self, steps: Sequence[tuple[str, PlanStep]]) -> None:
        """Raise QuestionError for unknown names, unless an earlier step may create them."""
        knows_nodes = knows_workloads = True
        for path, step in steps:
            with _at(path):
                if knows_nodes and isinstance(step, OfNodes):
                    self._names(step.nodes)
                elif knows_nodes and isinstance(step, LoseZone):
                    self._nodes_of_zone(step.zone)
                elif knows_workloads and isinstance(step, ScaleWorkload):
                    if self._workload(step) is None and step.replicas:
                        self._existing_pods_of(step)
                elif knows_workloads and isinstance(step, SetPriority):
                    self._existing_pods_of(step)
            knows_nodes &= not isinstance(step, AddNodes | LabelNodes | ApplyManifest)
            knows_workloads &= not isinstance(step, ApplyManifest)

    async def carry_out(self, path: str, step: PlanStep) -> str:
        """Carry a step out; return what it did, in words; raises QuestionError as `check` does."""
        # Backoff of the step before does not decide who gets the room that this one makes.
        await self._cluster.rehearsal.pause()
        # Of a step that adds nodes, only the node that these are like may be unknown.
        with _at(f"{path}.like" if isinstance(step, AddNodes) else path):
            if isinstance(step, DrainNodes):
                done = await self._drain(step)
            else:
                done = self._do(step)
            await self._cluster.settle()
        return done

    # Nodes.

    async def _drain(self, step: DrainNodes) -> str:
        nodes = self._names(step.nodes)
        drained = await drain_nodes(self._cluster, nodes)
        waiting = [pod for pod in drained.pods if pod.fate is PodFate.WAITS]
        self.waiting += waiting
        self.has_evicted |= any(pod.round for pod in drained.pods)
        verb = "waits" if len(waiting) == 1 else "wait"
        left = f", {len(waiting)} of whose pods {verb} for budgets" if waiting else ""
        return f"drain {names(nodes)}{left}"

    @singledispatchmethod
    def _do(self, step: PlanStep) -> str:
        raise TypeError(f"{type(step).__name__} is not a step")

    @_do.register
    def _(self, step: CordonNodes | UncordonNodes) -> str:
        nodes, is_on = self._names(step.nodes), isinstance(step, CordonNodes)
        for name in nodes:
            self._cluster.cordon(name, on=is_on)
        return f"{'' if is_on else 'un'}cordon {names(nodes)}"

    @_do.register
    def _(self, step: RemoveNodes) -> str:
        nodes = self._names(step.nodes)
        pods = self._remove(nodes)
        return f"remove {names(nodes)} with {count(pods, 'pod')}"

    @_do.register
    def _(self, step: LoseZone) -> str:
        nodes = self._nodes_of_zone(step.zone)
        pods = self._remove(nodes)
        return f"lose zone {step.zone}: {count(len(nodes), 'node')} with {count(pods, 'pod')}"

    def _nodes_of_zone(self, wanted: str) -> list[str]:
        nodes = self._cluster.server.all(Node)
        zones = grouped_by(nodes, lambda node: node.metadata.labels.get(ZONE, ""))
        zones.pop("", None)
        if wanted not in zones:
            raise QuestionError(no_such("zone", wanted, sorted(zones)))
        return [node.metadata.name for node in zones[wanted]]

    def _remove(self, nodes: Sequence[str]) -> int:
        self._removed_nodes.update(nodes)
        for name in nodes:
            # No replacement is placed on a node that is about to be removed.
            self._cluster.cordon(name)
        return sum(len(self._cluster.remove_node(name)) for name in nodes)

    @_do.register
    def _(self, step: AddNodes) -> str:
        shape = step.shape()
        if shape is None:
            [node] = self._nodes(self._names((step.like,)))
            shape = shape_of(node)
        nodes = new_nodes(shape.model, step.count, names_of(self._cluster))
        self._cluster.add_nodes(nodes, shape.like)
        like = f"like {step.like}" if step.like else f"of {step.template}"
        return f"add {count(step.count, 'node')} {like}"

    @_do.register
    def _(self, step: LabelNodes) -> str:
        nodes = self._names(step.nodes)
        there = {name for node in self._nodes(nodes) for name in node.metadata.labels}
        _check_there("label", step.remove, there)
        for node in self._nodes(nodes):
            labels = {**node.metadata.labels, **step.set}
            for name in step.remove:
                labels.pop(name, None)
            self._cluster.write_node(replace(node, metadata=replace(node.metadata, labels=labels)))
        return f"label {names(nodes)}"

    @_do.register
    def _(self, step: TaintNodes) -> str:
        nodes = self._names(step.nodes)
        added = step.taints()
        there = {taint for node in self._nodes(nodes) for taint in node.spec.taints}
        _check_there("taint", step.remove, {form for taint in there for form in _forms(taint)})
        for node in self._nodes(nodes):
            replaced = {(taint.key, taint.effect) for taint in added}
            kept = [
                taint
                for taint in node.spec.taints
                if (taint.key, taint.effect) not in replaced
                and _forms(taint).isdisjoint(step.remove)
            ]
            taints = (*kept, *added)
            self._cluster.write_node(replace(node, spec=replace(node.spec, taints=taints)))
        evicted = 0
        for name in nodes:
            for pod in self._cluster.pods_on(name):
                lasting = [one for one in pod.spec.tolerations if one.toleration_seconds is None]
                if find_untolerated(added, lasting, (NO_EXECUTE,)) is not None:
                    # A DaemonSet has no pod on a node whose taints its pods do not tolerate.
                    self._cluster.delete_pod(pod, for_good=is_daemon(pod))
                    evicted += 1
        effect = f", which evicts {count(evicted, 'pod')}" if evicted else ""
        return f"taint {names(nodes)}{effect}"

    @_do.register
    def _(self, step: ResizeNodes) -> str:
        nodes = self._names(step.nodes)
        given = {name: str(amount) for name, amount in step.capacity.items()}
        for node in self._nodes(nodes):
            status = replace(
                node.status,
                capacity={**node.status.capacity, **given},
                allocatable={**node.status.allocatable, **given},
            )
            self._cluster.write_node(replace(node, status=status))
        size = ", ".join(f"{name} {amount}" for name, amount in given.items())
        return f"resize {names(nodes)} to {size}"

    def _nodes(self, wanted: Sequence[str]) -> list[Node]:
        return [self._cluster.node(name) for name in wanted]

    def _names(self, written: Names) -> list[str]:
        """Return the nodes that a step names; raises QuestionError if one does not exist."""
        existing = names_of(self._cluster)
        if isinstance(written, str) and not _SELECTOR_SIGNS.isdisjoint(written):
            return selected_nodes(self._cluster, written)
        wanted = list(
            dict.fromkeys(map(node_name, (written,) if isinstance(written, str) else written))
        )
        known = frozenset(existing)
        for name in wanted:
            if name in self._removed_nodes - known:
                raise QuestionError(f"{name}: an earlier step has removed this node")
            if name not in known:
                raise QuestionError(no_such("node", name, sorted(existing)))
        return wanted

    # Workloads.

    @_do.register
    def _(self, step: ScaleWorkload) -> str:
        pods = self._pods_of(step)
        item = self._workload(step)
        before = len(pods) if item is None else replicas_of(item)
        if isinstance(item, StatefulSet):
            end = item.spec.ordinals.start + step.replicas
            beyond = [pod for pod in pods if ordinal_of(pod) >= end]
            self._shrink("StatefulSet", beyond, len(beyond))
            pods = [pod for pod in pods if ordinal_of(pod) < end]
        missing = step.replicas - len(pods)
        if item is not None and (not pods or (missing > 0 and isinstance(item, StatefulSet))):
            # The pods of a StatefulSet are not copies: each has claims of its own.
            create_workload(self._cluster, item, step.replicas, pods)
        elif missing > 0:
            self._grow(step, pods, missing)
        else:
            self._shrink(step.kind_and_name[0], pods, -missing)
        if item is not None:
            self._cluster.add(scaled(item, step.replicas))
        return f"scale {step.workload} from {before} to {step.replicas}"

    def _shrink(self, kind: str, pods: Iterable[Pod], number: int) -> None:
        if kind == "StatefulSet":
            ordered = sorted(pods, key=ordinal_of, reverse=True)
        else:
            ordered = sorted(pods, key=deletion_rank)
        for pod in ordered[:number]:
            self.removed.add(uid_of(pod))
            self._cluster.delete_pod(pod, for_good=True)

    def _grow(self, step: ScaleWorkload, pods: list[Pod], number: int) -> None:
        """Create further pods like the existing ones."""
        model = next(filter(None, map(replacement_of, pods)), None)
        if model is None:
            raise self._no_pods(step)
        if model.metadata.name:
            # Those of a StatefulSet have names and claims of their own.
            item = stateful_set_of(pods, self._cluster.server.all(PersistentVolumeClaim))
            create_pods(self._cluster, new_pods(item, number, [pod.metadata.name for pod in pods]))
            return
        for _ in range(number):
            self._cluster.create_pod(model)

    @_do.register
    def _(self, step: SetPriority) -> str:
        pods = self._existing_pods_of(step)
        given: dict[str, object] = {"priority": step.priority}
        if step.priority is None:
            found = self._class_named(step.class_name)
            given = {"priority": found.value, "preemption_policy": found.preemption_policy}
        for pod in pods:
            spec = replace(pod.spec, priority_class_name=step.class_name, **given)
            self._cluster.change_pod(replace(pod, spec=spec))
        return f"give {count(len(pods), 'pod')} of {step.workload} the priority {given['priority']}"

    def _class_named(self, name: str) -> PriorityClass:
        classes = self._cluster.server.all(PriorityClass)
        found = PriorityClasses(classes).named(name)
        if found is None:
            known = sorted(one.metadata.name for one in classes)
            raise QuestionError(no_such("PriorityClass", name, known))
        return found

    def _no_pods(self, step: OfWorkload) -> QuestionError:
        kind, name = step.kind_and_name
        pods = [pod for pod in self._cluster.server.all(Pod) if belongs_to(pod, kind, name)]
        others = sorted({pod.metadata.namespace for pod in pods} - {step.namespace})
        remedy = "; name another one, or apply its manifest"
        if others:
            remedy = f", but {names(others)} {'has' if len(others) == 1 else 'have'}"
        text = f"{step.workload}: namespace {step.namespace} has no pods of it{remedy}"
        return QuestionError(text)

    def _pods_of(self, step: OfWorkload) -> list[Pod]:
        kind, name = step.kind_and_name
        return [
            pod
            for pod in self._cluster.server.all(Pod)
            if pod.metadata.namespace == step.namespace
            and is_active(pod)
            and belongs_to(pod, kind, name)
        ]

    def _existing_pods_of(self, step: OfWorkload) -> list[Pod]:
        pods = self._pods_of(step)
        if not pods:
            raise self._no_pods(step)
        return pods

    def _workload(self, step: OfWorkload) -> Scaled | None:
        kind, name = step.kind_and_name
        if kind == "DaemonSet":
            raise QuestionError(f"{step.workload}: a DaemonSet has one pod per node")
        type_: type[Scaled] = next(one for one in get_args(Scaled) if one.__name__ == kind)
        return self._cluster.server.find(type_, step.namespace, name)

    # Other objects.

    @_do.register
    def _(self, step: SetBudget) -> str:
        known = self._cluster.server.find(PodDisruptionBudget, step.namespace, step.name)
        name = f"{step.namespace}/{step.name}"
        if known is None and (step.delete or not step.match_labels):
            budgets = [one.metadata.key for one in self._cluster.server.all(PodDisruptionBudget)]
            problem = no_such("budget", name, sorted(budgets))
            remedy = "" if step.delete else "; to add one, write matchLabels"
            raise QuestionError(f"{problem}{remedy}")
        if step.delete and known is not None:
            self._cluster.remove_budget(known)
            return f"delete the budget {name}"
        spec = PodDisruptionBudgetSpec() if known is None else known.spec
        if step.match_labels:
            spec = replace(spec, selector=LabelSelector(match_labels=step.match_labels))
        least, most = step.min_available, step.max_unavailable
        changed = replace(spec, min_available=least, max_unavailable=most)
        metadata = ObjectMeta(name=step.name, namespace=step.namespace)
        self._cluster.add(PodDisruptionBudget(metadata=metadata, spec=changed))
        amount = f"maxUnavailable {most}" if least is None else f"minAvailable {least}"
        return f"set the budget {name} to {amount}"

    @_do.register
    def _(self, step: ApplyManifest) -> str:
        for one in create_all(self._cluster, self._manifests[step.file], {}):
            surplus = len(one.existing) - one.wanted
            # Each run of a CronJob has pods of its own.
            if surplus > 0 and not isinstance(one.item, CronJob):
                pods = filter(None, map(self._cluster.pod, one.existing))
                self._shrink(type(one.item).__name__, pods, surplus)
        return f"apply {step.file}"


def _forms(taint: Taint) -> set[str]:
    """Return what a plan may write for a taint that it removes."""
    return {taint.key, f"{taint.key}:{taint.effect}", taint_text(taint)}


def _check_there(noun: str, removed: Iterable[str], there: Iterable[str]) -> None:
    """Raise QuestionError if none of a step's nodes has what it removes."""
    existing = sorted(there)
    for name in removed:
        if name not in existing:
            raise QuestionError(no_such(noun, name, existing))


@contextmanager
def _at(path: str) -> Iterator[None]:
    """Add to an error the step's path in the plan."""
    try:
        yield
    except QuestionError as error:
        raise QuestionError(f"{path}: {error}") from error
