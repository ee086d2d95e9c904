"""Cluster answers questions about a cluster: the entry of the Python API.

    from kubesched import Cluster

    cluster = Cluster.from_files("cluster.json.gz")
    print(cluster.why("web-1").sentence)

Invariants: questions change nothing; the same question has the same answer.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

from msgspec.structs import replace

from kubesched.answers.cluster_view import ClusterView, cluster_view
from kubesched.answers.drain import (
    CompactReport,
    DrainReport,
    UpgradeReport,
    WatchNodes,
    compact,
    drain,
    upgrade,
)
from kubesched.answers.fit import FitReport, fit, parse_question
from kubesched.answers.plan import read_plan
from kubesched.answers.pod_explanation import (
    check_scheduler,
    explain_pod,
    extender_warnings,
    notes_on,
    placed_with_gang,
    sampling_notes,
)
from kubesched.answers.room import WatchPods
from kubesched.answers.top import TopReport, check_question, top
from kubesched.answers.trial_cluster import QuestionError, TrialCluster, WatchSteps, selected_nodes
from kubesched.answers.whatif import WhatIfReport, what_if
from kubesched.answers.why import PodState, WhyReport, state_of, why_pod, why_uncreated, with_gang
from kubesched.answers.workload_pods import (
    LackedPodsError,
    decoded,
    find_pod_among,
    more_pods,
    read_manifests,
)
from kubesched.api.codec import Skipped
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.config.args import exhaustive
from kubesched.explain.report import PodExplanation, PodOutcome
from kubesched.explain.sentences import count
from kubesched.framework.registry import SchedulerSetup
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.completed_input import ClusterInput, all_kinds, completed
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import (
    distinct_objects,
    load_checked_scheduler,
    pending_again,
    with_scheduler_name,
)
from kubesched.inputs.pod_names import find_nodes
from kubesched.inputs.sources import ClusterSource, SchedulerArguments, SchedulerOptions
from kubesched.simulator import virtual_loop
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.simulation import SimulationEnd, Watch, simulate_cluster
from kubesched.snapshot.pod_info import PodInfo

T = TypeVar("T")


class Cluster:
    """A cluster, and the scheduler that decides on it.

    Its questions raise PluginError if a plugin raises.

    Attributes:
        objects: All objects, with the API server's defaults.
        warnings: Warnings about the input, manifests included, one line each.
    """

    def __init__(
        self,
        given: ClusterInput,
        scheduler: SchedulerSetup,
        options: SchedulerOptions,
        warn: Callable[[Iterable[str]], object] | None = None,
    ) -> None:
        """Prepare to answer questions about what a `from_` method has read."""
        self._given = given
        self.objects = given.objects
        if options.profile is not None:
            self.objects = [
                with_scheduler_name(item, options.profile)
                if isinstance(item, Pod) and not item.spec.node_name
                else item
                for item in given.objects
            ]
        self._scheduler = scheduler
        self._options = options
        self.warnings: list[str] = []
        self._warn = self.warnings.extend if warn is None else warn
        self._warn([*given.warnings, *extender_warnings(scheduler.configuration)])

    def __repr__(self) -> str:
        """Return how large it is, and what it was read from."""
        size = f"{count(len(self.nodes), 'node')}, {count(len(self.pods), 'pod')}"
        return f"<Cluster of {size}, from {self.source}>"

    @classmethod
    def read(
        cls,
        source: ClusterSource,
        options: SchedulerOptions,
        warn: Callable[[Iterable[str]], object] | None = None,
        pod_files: Sequence[Path] = (),
        *,
        expects_pods: bool = False,
    ) -> Self:
        """Read a cluster as commands do; `warn` receives the warnings, by default they are kept.

        The other arguments are as for `read_cluster`.

        Raises:
            UserError: A file, plugin or profile is invalid, or a live cluster cannot be read.
            DecodeError, ConfigError, SetupError: A file cannot be used.
        """
        scheduler = load_checked_scheduler(options)
        given = read_cluster(source, pod_files, expects_pods=expects_pods)
        return cls(given, scheduler, options, warn)

    @classmethod
    def from_files(
        cls,
        *files: str | os.PathLike[str],
        complete: bool = False,
        **scheduler: Unpack[SchedulerArguments],
    ) -> Self:
        """Read files and directories: snapshots, output of kubectl, manifests.

        Args:
            *files: JSON or YAML, compressed or not.
            complete: Whether the files hold every object of the cluster; a snapshot knows that.
            **scheduler: See `SchedulerArguments`.

        Raises:
            UserError: A file, plugin or profile is invalid.
            DecodeError, ConfigError: A file cannot be used.
        """
        if not files:
            raise UserError("from_files: name at least one file")
        source = ClusterSource(files=tuple(map(Path, files)), complete=complete)
        return cls.read(source, SchedulerOptions.of(scheduler))

    @classmethod
    def from_snapshot(
        cls, file: str | os.PathLike[str], **scheduler: Unpack[SchedulerArguments]
    ) -> Self:
        """Read a file of `kubesched snapshot`. Raises as `from_files`."""
        return cls.from_files(file, **scheduler)

    @classmethod
    def from_kubeconfig(
        cls,
        file: str | os.PathLike[str] | None = None,
        context: str = "",
        **scheduler: Unpack[SchedulerArguments],
    ) -> Self:
        """Read a live cluster, once.

        Args:
            file: The kubeconfig; None for those that kubectl reads.
            context: "" for the current one.
            **scheduler: See `SchedulerArguments`.

        Raises:
            UserError: The cluster cannot be read, or a plugin or profile is invalid.
            SetupError: The kubeconfig or a certificate cannot be used.
        """
        source = ClusterSource(kubeconfig=None if file is None else Path(file), context=context)
        return cls.read(source, SchedulerOptions.of(scheduler))

    @classmethod
    def from_objects(
        cls,
        objects: Iterable[Mapping[str, Any]],
        *,
        complete: bool = True,
        **scheduler: Unpack[SchedulerArguments],
    ) -> Self:
        """Take objects as Kubernetes' JSON.

        Args:
            objects: Nodes, pods and others.
            complete: Whether they are every object of the cluster.
            **scheduler: See `SchedulerArguments`.

        Raises:
            UserError: An object is there twice, or invalid.
            DecodeError: An object cannot be decoded.
        """
        options = SchedulerOptions.of(scheduler)
        setup = load_checked_scheduler(options)
        given = distinct_objects(decoded(objects, Skipped()))
        found, warnings = completed(given, Skipped())
        kinds = all_kinds() if complete else ()
        return cls(ClusterInput(found, warnings, kinds, "objects"), setup, options)

    def with_scheduler(self, **scheduler: Unpack[SchedulerArguments]) -> Self:
        """Return the same cluster with another scheduler; by default it is kube-scheduler's.

        Raises:
            UserError: A file, plugin or profile is invalid.
        """
        return self.under(SchedulerOptions.of(scheduler))

    def under(self, options: SchedulerOptions) -> Self:
        """Return the same cluster with another scheduler, as commands name it."""
        return type(self)(self._given, load_checked_scheduler(options), options)

    @property
    def pods(self) -> list[Pod]:
        """All pods."""
        return [item for item in self.objects if isinstance(item, Pod)]

    @property
    def nodes(self) -> list[Node]:
        """All nodes."""
        return [item for item in self.objects if isinstance(item, Node)]

    @property
    def source(self) -> str:
        """The short name of the input, such as `cluster.json` or `context kind-dev`."""
        return self._given.source

    @property
    def namespace(self) -> str:
        """The namespace of the live context; "" for files."""
        return self._given.namespace

    def why(self, pod: str, namespace: str = "") -> WhyReport:
        """Answer why a pod is pending, with the smallest changes that make it fit.

        Args:
            pod: `NAME`, `NAMESPACE/NAME`, or a workload such as `deploy/NAME`.
            namespace: The namespace of names without one.

        Raises:
            UserError: There is no such pod, or several.
        """
        try:
            found, notes = self._find(pod, namespace)
        except LackedPodsError as error:
            return why_uncreated(error)
        return self._why(self._state(), found, notes)

    def why_page(
        self, pod: str, namespace: str = ""
    ) -> tuple[WhyReport, *tuple[PodExplanation | ClusterView, ...]]:
        """Return what the page of `why` shows; arguments and errors are the same.

        Returns:
            The answer; if the scheduler decides about the pod, then the explanation with every
            filter, and the view without causes.
        """
        try:
            asked, notes = self._find(pod, namespace)
        except LackedPodsError as error:
            return (why_uncreated(error),)
        cluster = self._state()
        if state_of(asked, cluster.profiles) is not None:
            return (self._why(cluster, asked, notes),)
        # The changes that are tried leave the pods of a node in another order.
        view = cluster_view(cluster, "", None)
        explanation = explain_pod(cluster, cluster.pending[PodInfo(asked).uid], all_filters=True)
        report = self._why(cluster, asked, notes, explanation)
        if report.state is PodState.GANG_UNSCHEDULABLE:
            explanation = replace(explanation, with_gang=report.sentence)
        return report, self._noted(explanation, asked), view

    def explain(
        self, pod: str, namespace: str = "", *, all_filters: bool = False
    ) -> PodExplanation:
        """Explain the decision for a pod; one that has a node is scheduled again without it.

        Args:
            pod: `NAME`, `NAMESPACE/NAME`, or a workload such as `deploy/NAME`.
            namespace: The namespace of names without one.
            all_filters: Run every filter for every node, not only up to the first rejection.

        Raises:
            UserError: There is no such pod, or several, or it belongs to another scheduler.
        """
        return self._explain(self._state(), pod, namespace, all_filters)

    def explain_page(
        self, pod: str, namespace: str = "", *, all_filters: bool = False
    ) -> tuple[PodExplanation, ClusterView]:
        """Return the answer of `explain`, and the view, without causes, that its page shows too.

        Arguments and errors are the same.
        """
        cluster = self._state()
        view = cluster_view(cluster, "", None)
        return self._explain(cluster, pod, namespace, all_filters), view

    def place(self, pod: Mapping[str, Any], *, all_filters: bool = False) -> PodExplanation:
        """Explain where one more pod would go.

        Args:
            pod: A Pod as Kubernetes' JSON.
            all_filters: Run every filter for every node, not only up to the first rejection.

        Raises:
            DecodeError: It is not a pod.
            UserError: It is invalid, or belongs to another scheduler.
        """
        (item,) = more_pods([pod], self.objects, self._options.profile)
        return self._decided(self._state(), item, all_filters=all_filters)

    def simulate(self, pods: Iterable[Mapping[str, Any]] = ()) -> SimulationReport:
        """Place all pending pods, and further ones given as Kubernetes' JSON.

        Raises:
            DecodeError: An object is not a pod.
            UserError: A pod is invalid.
        """
        return self.simulated(more_pods(pods, self.objects, self._options.profile)).report

    def simulated(self, pods: Iterable[Pod] = (), watch: Watch | None = None) -> SimulationEnd:
        """Return the report of `simulate`, and the nodes at the end.

        `watch` is called after every attempt. If it returns False, the report is partial.
        """
        return self._simulated([*self.objects, *pods], watch)

    def fit(
        self,
        *manifests: str | os.PathLike[str] | Mapping[str, Any],
        namespace: str = "",
        replicas: int | str | Mapping[str, int] | Iterable[str] = (),
        more: bool = False,
        node_templates: str | Sequence[str] = (),
        watch: WatchPods | None = None,
    ) -> FitReport:
        """Answer whether the workloads of manifests fit.

        Args:
            *manifests: Files, or objects as Kubernetes' JSON.
            namespace: Of workloads that name none.
            replicas: The number of pods of every workload, or of single ones by name; `NAME=N` too.
            more: Whether to find out how many more pods of the only workload fit.
            node_templates: Nodes that could be added: `cpu=8,memory=32Gi`, or a file with a Node.
            watch: Called after each scheduling cycle with the number of pods placed so far.

        Raises:
            DecodeError: A manifest cannot be decoded.
            UserError: A manifest has no workload, or an argument or something in it is wrong.
        """
        given = [one if isinstance(one, Mapping) else Path(one) for one in manifests]
        items, warnings = read_manifests(given, namespace or self.namespace or "default")
        question = parse_question(items, replicas, node_templates, more=more)
        self._warn(warnings)
        return self._asked(lambda cluster: fit(cluster, items, question, watch))

    def drain(
        self, *nodes: str, selector: str = "", watch: WatchSteps | None = None
    ) -> DrainReport:
        """Answer what happens to each pod when nodes are drained, in this order.

        Args:
            *nodes: Their names.
            selector: Their labels, such as `pool=a`, instead of names.
            watch: Called after each scheduling cycle with the numbers of nodes drained so far, of
                nodes to drain, and of cycles.

        Raises:
            UserError: A node does not exist, or none is named; the selector is wrong, or selects
                none; both are given.
        """
        if bool(nodes) == bool(selector):
            raise UserError("drain: give either the names of nodes or a selector")
        if selector:
            return self._asked_of_nodes(selector, partial(drain, watch=watch))
        found = find_nodes(nodes, [node.metadata.name for node in self.nodes])
        return self._asked(lambda cluster: drain(cluster, found, watch))

    def whatif(
        self, plan: str | os.PathLike[str] | Mapping[str, Any], watch: WatchSteps | None = None
    ) -> WhatIfReport:
        """Answer what a plan of changes does to the pods.

        Args:
            plan: As `kubesched whatif` reads it: a file, or plain values.
            watch: As for `drain`, with steps of the plan instead of nodes.

        Raises:
            DecodeError: A file that the plan applies cannot be decoded.
            UserError: The plan is wrong, or names something that does not exist.
        """
        found = read_plan(plan if isinstance(plan, Mapping) else Path(plan))
        self._warn(found.warnings)
        return self._asked(
            lambda cluster: what_if(cluster, found.steps, found.manifests, watch), found.place
        )

    def upgrade(
        self,
        selector: str = "",
        *,
        at_once: int = 1,
        force: bool = False,
        watch: WatchNodes | None = None,
    ) -> UpgradeReport:
        """Find an order in which the nodes of a pool can be upgraded.

        Args:
            selector: The labels of the nodes, such as `pool=a`; "" for all.
            at_once: How many nodes may be drained at a time.
            force: Whether pods without a controller may be lost.
            watch: Called after each node with the numbers of nodes tried so far, of all nodes to
                try, and of those that can be upgraded. Nodes that are blocked are tried again.

        Raises:
            UserError: The selector is wrong, or selects no node.
        """
        if at_once < 1:
            raise UserError(f"at_once: {at_once} nodes are too few; write 1 or more")
        question = partial(upgrade, at_once=at_once, may_lose=force, watch=watch)
        return self._asked_of_nodes(selector, question)

    def compact(
        self, selector: str = "", *, force: bool = False, watch: WatchNodes | None = None
    ) -> CompactReport:
        """Find nodes that can be removed so that every pod still has a place.

        Args:
            selector: The labels of the nodes that may be removed; "" for all.
            force: Whether pods without a controller may be lost.
            watch: Called after each node with the numbers of nodes tried so far, of all nodes to
                try, and of removable ones.

        Raises:
            UserError: The selector is wrong, or selects no node.
        """
        return self._asked_of_nodes(selector, partial(compact, may_lose=force, watch=watch))

    def top(
        self,
        group: str = "nodes",
        *,
        pool_label: str = "",
        sort_by: str = "cpu",
        room: str | None = None,
        room_like: str | None = None,
        watch: WatchPods | None = None,
    ) -> TopReport:
        """Add up what pods request.

        Args:
            group: `nodes`, `pools`, `zones`, `namespaces`, `priorities` or `owners`.
            pool_label: The label whose value is a node's pool; "" for a well-known one.
            sort_by: `name`, `room`, or a resource.
            room: Count how many more pods of this shape fit, such as `cpu=2,memory=4Gi`.
            room_like: Count how many more pods like this one fit.
            watch: With `room_like`, called now and then with the number that fit so far.

        Raises:
            UserError: A group, label, resource or pod does not exist, or arguments contradict each
                other.
        """
        rows = check_question(group, pool_label, sort_by, room, room_like)
        like = None
        if room_like is not None:
            like = with_scheduler_name(self._find(room_like, "")[0], self._options.profile)
        cluster = self._state(remembers=True)
        return top(cluster, rows, pool_label, sort_by, room, room_like, like, watch)

    def view(self, *, pool_label: str = "", causes: bool = True) -> ClusterView:
        """Return all nodes with what they hold, and the pending pods by cause.

        Args:
            pool_label: The label that names pools; "" for a well-known one.
            causes: Whether to find out why pods are pending.
        """
        cluster = self._state()
        found = cluster_view(cluster, pool_label, partial(why_pod, cluster) if causes else None)
        cluster.check_plugins()
        return found

    # Shared by the questions.

    def _asked(self, question: Callable[[TrialCluster], Awaitable[T]], place: str = "") -> T:
        """Ask a question about the cluster before it has settled; `place` begins error messages."""

        async def main() -> T:
            rehearsal = Rehearsal(self._scheduler, seed=self._options.seed)
            rehearsal.load(self.objects)
            rehearsal.scheduler.cache.declare_complete(self._given.complete)
            return await question(TrialCluster(rehearsal, self._options.profile))

        try:
            return virtual_loop.run(main())
        except QuestionError as error:
            raise UserError(f"{place}{error}") from error

    def _asked_of_nodes(
        self, selector: str, question: Callable[[TrialCluster, list[str]], Awaitable[T]]
    ) -> T:
        """Ask a question about the nodes that a label selector selects."""
        return self._asked(
            lambda cluster: question(cluster, selected_nodes(cluster, selector)),
            "--selector " if selector else "",
        )

    def _find(self, pod: str, namespace: str) -> tuple[Pod, tuple[str, ...]]:
        """Return a pod and notes on it; raises LackedPodsError, UserError."""
        preferred = namespace or self._given.namespace
        return find_pod_among(self.objects, pod, preferred, only=bool(namespace))

    def _simulated(
        self, objects: Iterable[KubeObject], watch: Watch | None = None
    ) -> SimulationEnd:
        seed, complete = self._options.seed, self._given.complete
        return simulate_cluster(self._scheduler, objects, seed=seed, complete=complete, watch=watch)

    def _why(
        self,
        cluster: ClusterState,
        pod: Pod,
        notes: tuple[str, ...],
        explanation: PodExplanation | None = None,
    ) -> WhyReport:
        info = PodInfo(pod)
        report = why_pod(cluster, cluster.pending.get(info.uid, info), explanation)
        cluster.check_plugins()
        if report.state in (PodState.FITS, PodState.UNSCHEDULABLE):
            found = placed_with_gang(cluster, pod, report.notes, self.objects, self._simulated)
            report = report if found is None else with_gang(report, found)
        return replace(report, notes=(*notes, *report.notes))

    def _explain(
        self, cluster: ClusterState, name: str, namespace: str, all_filters: bool
    ) -> PodExplanation:
        """Explain; the pod is taken from its node."""
        pod, notes = self._find(name, namespace)
        waiting = pending_again(pod)
        if waiting is not pod:
            cluster.delete([PodInfo(pod)])
        asked = with_scheduler_name(waiting, self._options.profile)
        report = self._decided(cluster, asked, all_filters=all_filters)
        if waiting is pod and report.outcome is PodOutcome.SCHEDULABLE:
            found = placed_with_gang(cluster, asked, report.notes, self.objects, self._simulated)
            if found is not None:
                report = replace(report, with_gang=found.sentence, notes=found.notes)
        return self._noted(report, pod, notes)

    def _decided(self, cluster: ClusterState, pod: Pod, *, all_filters: bool) -> PodExplanation:
        """Explain the decision for a pod that waits, or is added."""
        check_scheduler(pod, cluster)
        info = cluster.add_pending(pod)
        report = explain_pod(cluster, info, all_filters=all_filters)
        cluster.check_plugins()
        return report

    def _noted(
        self, report: PodExplanation, pod: Pod, notes: tuple[str, ...] = ()
    ) -> PodExplanation:
        sampling = sampling_notes(report, self._scheduler.configuration)
        notes = (*notes, *notes_on(pod), *sampling, *report.notes)
        return replace(report, bound_to=pod.spec.node_name, notes=notes)

    def _state(self, *, remembers: bool = False) -> ClusterState:
        every = exhaustive(self._scheduler.configuration)
        setup = self._scheduler._replace(configuration=every)
        cluster = ClusterState(setup, seed=self._options.seed, remembers=remembers)
        cluster.load(self.objects)
        cluster.cache.declare_complete(self._given.complete)
        return cluster
