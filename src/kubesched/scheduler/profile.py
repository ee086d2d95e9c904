"""Profile holds the plugins of one scheduler name in order, and is the one place that calls them.

Upstream: pkg/scheduler/framework/runtime/framework.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from random import Random
from typing import Final, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import NDArray

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import ProfileConfiguration
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import FilterReads
from kubesched.framework.phase_timer import PhaseTimer
from kubesched.framework.plugin import (
    OF_SUMS,
    UNSIGNED,
    BindPlugin,
    FilterPlugin,
    NoState,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from kubesched.framework.plugin_answers import AnswerChecks, check_sort_key
from kubesched.framework.plugin_error import PluginError, error_text, extension_point_of, is_in_tree
from kubesched.framework.pod_groups import PlacementGeneratePlugin, PlacementScorePlugin
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.registry import Registry
from kubesched.framework.services import Services, services_for
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status
from kubesched.scheduler.first_rejections import PASSED, Filtering
from kubesched.scheduler.plugin_failure import PluginFailure, failed_with, failure_of, reported
from kubesched.scheduler.profile_plugins import ProfilePlugins, build_plugins
from kubesched.snapshot.node_table import NodeTable, SelectedRows
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

Arguments = TypeVarTuple("Arguments")
R = TypeVar("R")

_FIRST_ROW: Final = np.zeros(1, np.intp)


class Profile:
    """The plugins of one scheduler name.

    Attributes:
        scheduler_name: The name that pods carry in `spec.schedulerName`.
        feature_gates: Which features are on.
        random_asked: How often `random` was asked for, which a plugin does for each draw.
        plugins_keep_random: Whether a plugin asked for it at its construction.
        services: The services for plugins; all but the observer are shared by all profiles.
        objects, waiting_pods, pod_group_states: Taken from the services.
        remembers: Whether answers may be kept for equal pods.
        timer: Measures phases and plugins; the default measures nothing.
        known_error: The text of an exception that is not reported again, because a cycle asks every
            plugin once more after it; "" if none.
        nominates_for_expectation: Whether a pod is nominated to its node before Permit or PreBind
            takes time.
        percentage_of_nodes_to_score: 1 to 100; 0 looks at all nodes.
        plugins: Plugin name -> plugin, in the order of their construction.
        signed_kinds: The kinds of objects that their signs read.
        filters_without_pre_filter, scores_without_pre_score: Plugins whose state the profile
            creates, because their own PreFilter or PreScore is disabled.
        score_weights: Score plugin name -> weight.
        placement_score_weights: PlacementScore plugin name -> weight.
    """

    def __init__(
        self,
        configuration: ProfileConfiguration,
        registry: Registry,
        feature_gates: FeatureGates,
        *,
        random: Random,
        percentage_of_nodes_to_score: int = 0,
        path: str = "profile",
        services: Services | None = None,
    ) -> None:
        self.scheduler_name = configuration.scheduler_name
        self.feature_gates = feature_gates
        self._random = random
        self.random_asked = 0
        self.services = services = services or services_for(feature_gates)
        self.objects = services.objects
        self.waiting_pods = services.waiting_pods
        self.pod_group_states = services.pod_group_states
        self.timer = PhaseTimer()
        self.known_error = ""
        self.remembers = True
        self.nominates_for_expectation = feature_gates.enabled("NominatedNodeNameForExpectation")
        own = configuration.percentage_of_nodes_to_score
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score if own is None else own
        self._set_extension_points(build_plugins(configuration, registry, self, path))
        self.plugins_keep_random = self.random_asked > 0

    @property
    def random(self) -> Random:
        """The run's random source."""
        self.random_asked += 1
        return self._random

    def _set_extension_points(self, built: ProfilePlugins) -> None:
        self.plugins = built.plugins
        self.signed_kinds = tuple(
            dict.fromkeys(kind for one in built.plugins.values() for kind in one.signed_kinds)
        )
        # In-tree plugins are not checked.
        self._checks: dict[Plugin, AnswerChecks] = {
            plugin: AnswerChecks(
                plugin.name,
                self.services.now,
                needs_clone=isinstance(plugin, PreFilterExtensions),
            )
            for plugin in built.plugins.values()
            if not is_in_tree(type(plugin))
        }
        self.score_weights = built.score_weights
        self.placement_score_weights = built.placement_score_weights
        at = built.at
        self.pre_enqueue_plugins = at(PreEnqueuePlugin)
        self.queue_sort_plugin = at(QueueSortPlugin)[0]
        self.pre_filter_plugins: tuple[PreFilterPlugin[object], ...] = at(PreFilterPlugin)
        self.filter_plugins: tuple[FilterPlugin[object], ...] = at(FilterPlugin)
        self.post_filter_plugins = at(PostFilterPlugin)
        self.pre_score_plugins: tuple[PreScorePlugin[object], ...] = at(PreScorePlugin)
        self.score_plugins: tuple[ScorePlugin[object], ...] = at(ScorePlugin)
        self.reserve_plugins = at(ReservePlugin)
        self.permit_plugins = at(PermitPlugin)
        self.pre_bind_plugins = at(PreBindPlugin)
        self.bind_plugins = at(BindPlugin)
        self.post_bind_plugins = at(PostBindPlugin)
        self.placement_generate_plugins = at(PlacementGeneratePlugin)
        self.placement_score_plugins = at(PlacementScorePlugin)
        preempts_for_groups = self.feature_gates.enabled("WorkloadAwarePreemption")
        self.pod_group_post_filter_plugins = (
            built.pod_group_post_filters() if preempts_for_groups else ()
        )
        self.pre_filter_extensions = tuple(
            plugin for plugin in self.pre_filter_plugins if isinstance(plugin, PreFilterExtensions)
        )
        self.filters_without_pre_filter: tuple[FilterPlugin[object], ...]
        self.filters_without_pre_filter = built.unprepared(
            FilterPlugin, PreFilterPlugin, "filter_state"
        )
        self.scores_without_pre_score: tuple[ScorePlugin[object], ...]
        self.scores_without_pre_score = built.unprepared(ScorePlugin, PreScorePlugin, "score_state")

    @property
    def samples(self) -> bool:
        """Whether searches of large clusters end before they have looked at all nodes."""
        return self.percentage_of_nodes_to_score not in (0, 100)

    def signs_by_template(self, plugin: Plugin) -> bool:
        """Whether the plugin gives all pods of a template the same sign.

        An out-of-tree plugin may read more of a pod, such as its name or an annotation.
        """
        return plugin.signs_base or plugin.per_template or plugin not in self._checks

    # The wrappers through which all plugins are called.

    def ask(self, plugin: Plugin, question: Callable[[*Arguments], R], *args: *Arguments) -> R:
        """Call a plugin; an exception becomes a PluginFailure with upstream's message."""
        timed = question
        if self.timer.is_sampling:
            timed = self.timer.timed(plugin, question)
        try:
            checks = self._checks.get(plugin)
            if checks is None:
                return timed(*args)
            method = question.__name__
            if method not in checks.timed:
                return checks.ask(method, timed, *args)
            answer = timed(*args)
            checks.check(method, answer, args)
        except PluginFailure:
            raise
        except (Exception, SystemExit) as error:
            raise self._raised(plugin, question, args, error) from error
        else:
            return answer

    def _raised(
        self,
        plugin: Plugin,
        question: Callable[..., object],
        args: Sequence[object],
        error: BaseException,
    ) -> PluginFailure:
        """Report an exception of a plugin and return it as a PluginFailure.

        An exception in `sign` is not reported here: the memory logs it once.
        """
        text, method = "", getattr(question, "__name__", "")
        if question is not sign:
            pods = (each.key for each in args if isinstance(each, PodInfo))
            text = self.report(plugin, extension_point_of(question), next(pods, ""), error)
        return PluginFailure(failure_of(method, plugin.name, error_text(error)), text)

    def report(self, plugin: Plugin, extension_point: str, pod: str, error: BaseException) -> str:
        """Report an exception of a plugin that is not in-tree; return its text, "" if it is."""
        found = PluginError(plugin.name, extension_point, pod, error, type(plugin))
        text = str(found) if found.places else ""
        if text and text != self.known_error:
            self.services.report_plugin_error(found)
        return text

    def notify(
        self, plugin: Plugin, method: Callable[[*Arguments], None], *args: *Arguments
    ) -> None:
        """Call a method whose result does not matter; an exception is logged."""
        try:
            self.ask(plugin, method, *args)
        except PluginFailure as failure:
            if not failure.reported:
                point = extension_point_of(method)
                log.exception("Plugin %s failed in %s", plugin.name, point)

    async def ask_async(
        self,
        extension_point: str,
        plugin: Plugin,
        question: Callable[[*Arguments], Awaitable[R]],
        *args: *Arguments,
    ) -> R:
        """Await a plugin; an exception becomes a PluginFailure with upstream's message."""
        timer, is_sampled = self.timer, self.timer.is_sampling
        began, code = timer.now(), Code.ERROR
        try:
            checks = self._checks.get(plugin)
            answer = await (question(*args) if checks is None else checks.ask_async(question, args))
            code = answer.code if isinstance(answer, Status) else Code.SUCCESS
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                # The binding itself is cancelled, not what the plugin awaits.
                raise
            raise self._raised(plugin, question, args, error) from error
        else:
            return answer
        finally:
            if is_sampled:
                timer.answered(extension_point, plugin.name, code, began)

    def sort_key(self, queued: QueuedPodInfo) -> tuple[int | float, ...]:
        """Return the key of the QueueSort plugin.

        Raises PluginError if the plugin raises, or what it returns is not a key: no order is left.
        """
        plugin = self.queue_sort_plugin
        try:
            key = plugin.sort_key(queued)
            check_sort_key(key)
        except Exception as error:
            raise PluginError(plugin.name, "QueueSort", queued.key, error, type(plugin)) from error
        return key

    def ask_sign(self, plugin: Plugin, pod: PodInfo) -> Hashable:
        """Return the plugin's sign of a pod, which is hashable."""
        return self.ask(plugin, sign, plugin, pod)

    def sign_or_unsigned(self, plugin: Plugin, pod: PodInfo) -> Hashable:
        """Return the plugin's sign of a pod; UNSIGNED if it fails."""
        try:
            return self.ask_sign(plugin, pod)
        except PluginFailure:
            return UNSIGNED

    def ask_pre_enqueue(self, plugin: PreEnqueuePlugin, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Run a PreEnqueue plugin; a failure holds the pod back and is logged."""
        try:
            status = self.ask(plugin, plugin.pre_enqueue, pod, snapshot)
        except PluginFailure as failure:
            status = failure.status
        if status is SUCCESS:
            return status
        if not (status.is_success or status.is_rejected):
            # The log is the only place to show it: the pod gets neither event nor condition.
            log.error("Unexpected error for pod %s: %s", pod.key, status.message)
        return status.by(plugin.name)

    def ask_still_gates(
        self, plugin: PreEnqueuePlugin, pods: Sequence[PodInfo], snapshot: Snapshot
    ) -> Sequence[bool]:
        """Return, for each of some pods that a PreEnqueue plugin gates, whether it still does."""
        try:
            return self.ask(plugin, plugin.still_gates, pods, snapshot)
        except PluginFailure:
            # The failure may be due to one of the pods.
            asked = (self.ask_pre_enqueue(plugin, pod, snapshot) for pod in pods)
            return [not status.is_success for status in asked]

    def ask_filter(
        self, plugin: FilterPlugin[object], state: object, pod: PodInfo, nodes: NodeTable
    ) -> NodeToStatus:
        """Run a filter on all rows of `nodes`; without a state they all get the same status."""
        if isinstance(state, NoState):
            return NodeToStatus.everywhere(len(nodes), state.status)
        return self.ask(plugin, plugin.filter, state, pod, nodes)

    def ask_score(
        self, plugin: ScorePlugin[object], state: object, pod: PodInfo, nodes: NodeTable
    ) -> NDArray[np.int64]:
        """Return a plugin's raw scores, int64 per row of `nodes`.

        Raises PluginFailure if the plugin fails, or has no state.
        """
        if isinstance(state, NoState):
            raise PluginFailure(failed_with("score", plugin.name, state.status))
        return self.ask(plugin, plugin.score, state, pod, nodes)

    def make_filter_states(
        self,
        plugins: Iterable[FilterPlugin[object]],
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
    ) -> None:
        """Create the states of filters whose `pre_filter` the profile does not run."""
        for plugin in plugins:
            state = self._make_state(plugin, plugin.filter_state, cycle, pod, snapshot)
            cycle.filter_states[plugin.name] = state

    def make_score_states(
        self,
        plugins: Iterable[ScorePlugin[object]],
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        feasible: NDArray[np.bool_],
    ) -> None:
        """Create the states of score plugins whose `pre_score` the profile does not run."""
        for plugin in plugins:
            state = self._make_state(plugin, plugin.score_state, cycle, pod, snapshot, feasible)
            cycle.score_states[plugin.name] = state

    def _make_state(
        self, plugin: Plugin, question: Callable[[*Arguments], object], *args: *Arguments
    ) -> object:
        """Return a plugin's state, or why there is none: the cycle may end before it is needed."""
        try:
            return self.ask(plugin, question, *args)
        except PluginFailure as failure:
            return NoState(failure.status)

    def add_filter(
        self,
        filtering: Filtering,
        position: int,
        plugin: FilterPlugin[object],
        cycle: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
    ) -> None:
        """Run one filter on the rows of `nodes` and add its answers to `filtering`.

        Raises PluginFailure if it failed on a row that no earlier filter rejected.
        """
        state = cycle.filter_states.get(plugin.name)
        if not plugin.survivors_only or np.count_nonzero(filtering.passed) == len(nodes):
            found = self.ask_filter(plugin, state, pod, nodes)
        else:
            rows = np.flatnonzero(filtering.answers().failed_at > position)
            if not len(rows):
                return
            of_rows = self.ask_filter(plugin, state, pod, nodes.take(rows))
            index = np.zeros(len(nodes), np.int32)
            index[rows] = of_rows.index
            found = NodeToStatus(index, of_rows.statuses)
        filtering.add(position, plugin.name, found)

    # What plugins may call: framework.handle.Handle.

    def activate(self, pods: Sequence[PodInfo]) -> None:
        """Make the queue try these pods now."""
        self.services.activate(pods)

    def filter_rows(
        self, cycle: CycleState, pod: PodInfo, nodes: SelectedRows, *, counts: bool = True
    ) -> NodeToStatus:
        """Run all filters on many rows, without nominated pods.

        A filter's failure on a row becomes the status of that row.
        """
        filtering = Filtering.all_passed(len(nodes))
        for position, plugin in enumerate(self.filter_plugins):
            if plugin.name in cycle.skip_filter:
                continue
            try:
                self.add_filter(filtering, position, plugin, cycle, pod, nodes)
            except PluginFailure:
                return NodeToStatus.of(
                    [
                        self._filter_row(cycle, pod, nodes.take(np.array([row])))
                        for row in range(len(nodes))
                    ]
                )
        answers = filtering.answers()
        if counts:
            self.timer.filtered(cycle, answers.failed_at)
        return answers.statuses()

    def count_filters(self, cycle: CycleState, times: int, rejected_by: str = "") -> None:
        """Count evaluations of all filters, or of those up to the one that rejected the pod."""
        failed_at = PASSED
        if rejected_by:
            names = [plugin.name for plugin in self.filter_plugins]
            failed_at = names.index(rejected_by) if rejected_by in names else PASSED
        self.timer.filtered_one(cycle, failed_at, times)

    def reads_of_filters(self, cycle: CycleState, pod: PodInfo) -> FilterReads:
        """Return what the answers of `filter_rows` depend on."""
        scopes: dict[str, Scope] = {}
        versions: list[Hashable] = []
        screening: dict[str, bool] = {}
        # An extension of a user's plugin may fail for a pod, which is then the verdict on its node.
        extended = {plugin.name: plugin for plugin, _ in self._extensions(cycle)}
        screens = self.remembers and self._checks.keys().isdisjoint(extended.values())
        for plugin in self.filter_plugins:
            if plugin.name in cycle.skip_filter:
                continue
            of_sums = plugin.scope in OF_SUMS and plugin.name not in extended
            screens = screens and (of_sums or plugin.fewer_pods_help)
            if screens:
                screening[plugin.name] = of_sums
            scopes[plugin.name] = Scope.CLUSTER
            if not self.remembers or plugin.scope is Scope.CLUSTER:
                continue
            signed = self.sign_or_unsigned(plugin, pod)
            if signed is not UNSIGNED:
                scopes[plugin.name] = plugin.scope
                versions += map(self.objects.version, plugin.signed_kinds)
                if not self.signs_by_template(plugin):
                    versions.append(signed)
        return FilterReads(scopes, tuple(versions), screening)

    def ignoring(
        self, filters: Collection[str], cycle: CycleState, pod: PodInfo
    ) -> Callable[[PodInfo], bool]:
        """Return a function that says whether another pod is ignored; without memory, none is."""
        names = {*filters, *(plugin.name for plugin, _ in self._extensions(cycle))}
        asked = [plugin for plugin in self.filter_plugins if plugin.name in names]
        is_known, states = self.remembers and len(asked) == len(names), cycle.filter_states

        def is_ignored(other: PodInfo) -> bool:
            try:
                return is_known and all(
                    self.ask(each, each.ignores, states.get(each.name), pod, other)
                    for each in asked
                )
            except PluginFailure:
                return False

        return is_ignored

    def filter_with_nominated_pods(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, node: SelectedRows
    ) -> Status:
        """Run all filters on the one row of `node`: with pods nominated to it, then without."""
        nominated = snapshot.nominated.ahead_of(pod, node.names[0])
        if nominated:
            status = self.filter_with(nominated, cycle, pod, node.take(_FIRST_ROW))
            if not status.is_success:
                return status
        return self._filter_row(cycle, pod, node)

    def filter_with(
        self,
        nominated: Sequence[PodInfo],
        cycle: CycleState,
        pod: PodInfo,
        node: SelectedRows,
        passing: Iterable[str] = (),
    ) -> Status:
        """Add `nominated` to the one row of `node`, and run all filters on it.

        `passing` are filters that are known to pass; they count as evaluated.
        """
        supposed = cycle.skipping_filters(passing)
        for added in nominated:
            status = self.add_pod(supposed, pod, added, node)
            if not status.is_success:
                return status
        status, failed_at = self._first_rejection(supposed, pod, node)
        self.timer.filtered_one(cycle, failed_at)
        return status

    def _filter_row(self, cycle: CycleState, pod: PodInfo, node: SelectedRows) -> Status:
        status, failed_at = self._first_rejection(cycle, pod, node)
        self.timer.filtered_one(cycle, failed_at)
        return status

    def _first_rejection(
        self, cycle: CycleState, pod: PodInfo, node: SelectedRows
    ) -> tuple[Status, int]:
        for position, plugin in enumerate(self.filter_plugins):
            if plugin.name in cycle.skip_filter:
                continue
            state = cycle.filter_states.get(plugin.name)
            try:
                status = self.ask_filter(plugin, state, pod, node)[0]
            except PluginFailure as failure:
                return failure.status, position
            if not status.is_success:
                return reported("filter", plugin.name, status), position
        return SUCCESS, PASSED

    def add_pod(
        self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: SelectedRows
    ) -> Status:
        """Put `added` on the one row of `node` and into the states of `cycle`."""
        node.add_pod(added)
        for plugin, state in self._extensions(cycle):
            status = self.ask(plugin, plugin.add_pod, state, pod, added, node)
            if not status.is_success:
                return failed_with("add_pod", plugin.name, status)
        return SUCCESS

    def remove_pod(
        self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: SelectedRows
    ) -> Status:
        """Take `removed` off the one row of `node` and out of the states of `cycle`."""
        node.remove_pod(removed)
        for plugin, state in self._extensions(cycle):
            status = self.ask(plugin, plugin.remove_pod, state, pod, removed, node)
            if not status.is_success:
                return failed_with("remove_pod", plugin.name, status)
        return SUCCESS

    def _extensions(self, cycle: CycleState) -> list[tuple[PreFilterExtensions[object], object]]:
        """Return the plugins whose states change with the pods on nodes, and the states."""
        states, skipped = cycle.filter_states, cycle.skip_filter
        return [
            (plugin, states[plugin.name])
            for plugin in self.pre_filter_extensions
            if plugin.name not in skipped and plugin.name in states
        ]


def sign(plugin: Plugin, pod: PodInfo) -> Hashable:
    """Return a plugin's sign of a pod, which is hashable."""
    found = plugin.sign(pod)
    hash(found)
    return found
