"""The scheduling cycle: filter nodes for a pod, score them and choose one, or reject the pod.

Synchronous, without I/O or clock: values in, a decision out. A cycle starts with the answers that
`scheduler.memory` remembers and runs only the other plugins.

Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/framework/runtime/framework.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status, unresolvable
from kubesched.scheduler import plugin_failure as failures
from kubesched.scheduler.answers import Answers
from kubesched.scheduler.decision import NO_NODES, Decision, Failed, Placed, Rejected
from kubesched.scheduler.memory import Memory
from kubesched.scheduler.nominated_rows import NominatedRows
from kubesched.scheduler.phase_timer import FILTER, PRE_FILTER
from kubesched.scheduler.plan import Plan
from kubesched.scheduler.plugin_failure import PluginFailure, failure_of
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.rejecting import Rejecting
from kubesched.scheduler.rejection_memory import RejectionMemory
from kubesched.scheduler.row_answers import Filtering, RowAnswers
from kubesched.scheduler.sampling import NodeSampler, Restriction, feasible_nodes_to_find
from kubesched.scheduler.scoring import Scoring
from kubesched.scheduler.search import Search
from kubesched.scheduler.trace import FilterTrace, Trace
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class AskEveryPlugin(Exception):  # noqa: N818 - control flow, not an error
    """The remembered answers cannot be used for this pod: run every plugin."""


class Feasible(msgspec.Struct, frozen=True, gc=False):
    """The rows that can take the pod.

    Attributes:
        known: The answers that the cycle started with.
        count: Number of feasible rows.
        evaluated: Number of rows evaluated.
        everywhere: Bool per row of the table if all were evaluated; None for those known to be
            feasible.
        some: The feasible rows, ascending, if not all were evaluated; else None.
    """

    known: Answers
    count: int
    evaluated: int
    everywhere: NDArray[np.bool_] | None = None
    some: NDArray[np.intp] | None = None

    @property
    def first(self) -> int:
        """The first feasible row."""
        if self.some is not None:
            return self.some.item(0)
        return int((self.known.feasible if self.everywhere is None else self.everywhere).argmax())

    @property
    def rows(self) -> NDArray[np.intp]:
        """The feasible rows, ascending."""
        if self.some is not None:
            return self.some
        if self.everywhere is None:
            return self.known.feasible_rows
        return np.flatnonzero(self.everywhere)

    def mask(self, nodes: NodeTable) -> NDArray[np.bool_] | None:
        """Return bool per row of the table; None for the rows that were known to be feasible."""
        if self.some is None:
            return self.everywhere
        mask = np.zeros(len(nodes), np.bool_)
        mask[self.some] = True
        return mask


class SchedulingCycle:
    """Schedules pods of one profile, one at a time.

    Attributes:
        profile: The profile whose plugins run.
        sampler: Keeps where the next search starts; shared by all profiles.
        scoring: Scores feasible rows.
        rejecting: Runs PostFilter when no row is feasible.
        restriction: The nodes and PostFilter plugins that are left out at the moment.
    """

    def __init__(self, profile: Profile, sampler: NodeSampler, *, remembers: bool = True) -> None:
        self.profile = profile
        self.sampler = sampler
        self.scoring = Scoring(profile)
        self.restriction = Restriction()
        self.rejecting = Rejecting(profile, self.restriction)
        self._memory = Memory(profile) if remembers else None
        profile.remembers = remembers
        self._rejections = RejectionMemory(profile)
        self._nominated_rows = NominatedRows(profile)
        self._nothing = Answers(profile, Plan(profile))

    def schedule_one(
        self, pod: PodInfo, snapshot: Snapshot, trace: Trace | None = None
    ) -> Decision:
        """Decide where `pod` goes in the cluster of `snapshot`; record each answer in `trace`."""
        if not self.restriction.count(snapshot.nodes):
            return Failed(pod, unresolvable(NO_NODES))
        timer = self.profile.timer
        timer.begin_cycle()
        try:
            if trace is None and self._memory is not None:
                return self._schedule_remembering(pod, snapshot, self._memory)
            return self._schedule(pod, snapshot, self._no_answers(snapshot), trace)
        except PluginFailure as failure:
            return Failed(pod, failure.status)
        finally:
            timer.end_cycle()

    def recall_rejection(self, pod: PodInfo, snapshot: Snapshot) -> Rejected | None:
        """Return what `schedule_one` would return, if it is known; else None."""
        return self._rejections.recall(pod, snapshot) if self._recalls else None

    def is_of_all(self, rejected: Rejected) -> bool:
        """Whether all pods of the template have this rejection until the cluster changes."""
        return self._recalls and self._rejections.is_of_all(rejected)

    @property
    def _recalls(self) -> bool:
        """Whether rejections are kept and recalled."""
        restriction = self.restriction
        is_restricted = restriction.rows is not None or restriction.skips_post_filters
        return self._memory is not None and not is_restricted

    def _schedule_remembering(self, pod: PodInfo, snapshot: Snapshot, memory: Memory) -> Decision:
        if self.restriction.rows is not None:
            return self._schedule(pod, snapshot, self._no_answers(snapshot), None)
        recalled = self.recall_rejection(pod, snapshot)
        if recalled is not None:
            self.rejecting.count_again(recalled)
            return recalled
        decision = self._schedule_from_memory(pod, snapshot, memory)
        if decision is None:
            self.profile.timer.begin_again()
            decision = self._schedule(pod, snapshot, self._no_answers(snapshot), None)
        if self._recalls and isinstance(decision, Rejected) and not self.rejecting.used_random:
            self._rejections.keep(decision, snapshot)
        return decision

    def _schedule_from_memory(
        self, pod: PodInfo, snapshot: Snapshot, memory: Memory
    ) -> Decision | None:
        """Decide with remembered answers; None if every plugin has to run."""
        is_hinted = False
        try:
            known, is_hinted = memory.recall(pod, snapshot)
            if known is not None:
                return self._schedule(pod, snapshot, known, None)
        except (PluginFailure, AskEveryPlugin):
            # Remembered plugins run on more rows than a fresh cycle would use. Only a run of every
            # plugin in order shows whether it would reach the row that failed.
            pass
        if is_hinted:
            self.profile.timer.hint_not_used()
        return None

    def _no_answers(self, snapshot: Snapshot) -> Answers:
        rows = len(snapshot.nodes)
        if len(self._nothing.feasible) != rows:
            self._nothing.begin(rows)
        return self._nothing

    def _schedule(
        self, pod: PodInfo, snapshot: Snapshot, known: Answers, trace: Trace | None
    ) -> Decision:
        cycle = known.plan.new_cycle()
        if trace is not None:
            trace.cycle = cycle
        found = self._find_feasible(cycle, pod, snapshot, known, trace)
        if isinstance(found, Diagnosis):
            return self.rejecting.reject(cycle, pod, snapshot, found, trace)
        if trace is not None:
            trace.feasible_rows = found.rows
        if found.count == 1:
            row = found.first
        else:
            mask = found.mask(snapshot.nodes)
            row = self.scoring.choose(cycle, pod, snapshot, known, mask, found.count, trace)
        return Placed(pod, snapshot.nodes.names[row], row, cycle, found.count, found.evaluated)

    # Finding feasible rows.

    def _find_feasible(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        known: Answers,
        trace: Trace | None,
    ) -> Feasible | Diagnosis:
        status, names, contributors = self._pre_filter(cycle, pod, snapshot, known.plan, trace)
        if known is not self._nothing and not status.is_success:
            # Plugins after the one that rejects the pod must not have left a state.
            raise AskEveryPlugin
        if not status.is_success:
            return Diagnosis.of_pre_filter(status, contributors)
        known.names_nodes |= names is not None
        search = Search(snapshot.nodes, names, contributors)
        if pod.pod.status.nominated_node_name:
            nominated = self._try_nominated(cycle, pod, snapshot, known, search, trace)
            if nominated is not None:
                return nominated
        if known is not self._nothing and names is None:
            # What is known is known of all rows, and the pod may go to any.
            filtering = self._filter(cycle, pod, snapshot, known, None, None)
            found = self._found_everywhere(cycle, known, filtering)
            if found.count:
                return found
            search.add_all(filtering)
            return search.diagnosis(self.rejecting.last_diagnosis(pod))
        found = self._search(cycle, pod, snapshot, known, search, trace)
        return found if found.count else search.diagnosis()

    def _try_nominated(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        known: Answers,
        search: Search,
        trace: Trace | None,
    ) -> Feasible | None:
        """Return the pod's nominated node if it passes the filters."""
        nominated = snapshot.nodes.row_of.get(pod.pod.status.nominated_node_name)
        if nominated is None or not self.restriction.allows(nominated):
            return None
        rows = np.array([nominated], np.intp)
        answers = self._filter_nominated(cycle, pod, snapshot, known, rows)
        if answers is None:
            return None
        if not answers.passed[0]:
            search.add(rows, answers)
            return None
        if trace is not None:
            trace.nominated_hit = True
            trace.tried_rows = rows
        return Feasible(known, 1, 1, some=rows)

    def _filter_nominated(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        known: Answers,
        rows: NDArray[np.intp],
    ) -> RowAnswers | None:
        """Filter the pod's nominated node; after a failure the search goes on with all nodes."""
        timer = self.profile.timer
        if known is self._nothing:
            known = Answers(self.profile, known.plan, len(rows))
        try:
            answers = self._filter(cycle, pod, snapshot, known, rows, None).answers()
        except PluginFailure:
            timer.leave(Code.ERROR)
            return None
        timer.filtered(cycle, answers.failed_at)
        return answers

    def _search(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        known: Answers,
        search: Search,
        trace: Trace | None,
    ) -> Feasible:
        """Return the rows that pass the filters."""
        nodes = snapshot.nodes
        rows = self.restriction.narrow(search.candidates())
        try:
            filtering = self._filter(cycle, pod, snapshot, known, rows, trace)
        except PluginFailure:
            if trace is not None and trace.failed_filters is not None:
                _trace_failed_filters(trace, rows, nodes)
            raise
        size = len(filtering.passed)
        limit = feasible_nodes_to_find(size, self.profile.percentage_of_nodes_to_score)
        if rows is None and limit == size:
            found = self._found_everywhere(cycle, known, filtering)
            search.add_all(filtering)
        else:
            rows = np.arange(size) if rows is None else rows
            answers, passed = filtering.answers(), filtering.passed
            if limit < size:
                rows, answers = self._sample(nodes, rows, answers, limit)
                passed = answers.passed
            self.profile.timer.filtered(cycle, answers.failed_at)
            search.add(rows, answers)
            evaluated = search.evaluated
            self.sampler.advance(evaluated, self.restriction.count(nodes))
            some = rows[passed]
            found = Feasible(known, len(some), evaluated, some=some)
        if trace is not None:
            trace.tried_rows = np.flatnonzero(search.tried)
            trace.statuses = search.answers().statuses()
        return found

    def _found_everywhere(
        self, cycle: CycleState, known: Answers, filtering: Filtering
    ) -> Feasible:
        """Return the rows that passed where all were looked at."""
        self.profile.timer.filtered(cycle, filtering.answers_so_far.failed_at)
        passed = filtering.passed
        if passed is known.feasible:
            return Feasible(known, known.feasible_count, len(passed))
        return Feasible(known, int(np.count_nonzero(passed)), len(passed), everywhere=passed)

    def _sample(
        self, nodes: NodeTable, rows: NDArray[np.intp], answers: RowAnswers, limit: int
    ) -> tuple[NDArray[np.intp], RowAnswers]:
        """Keep only the rows that a search for `limit` feasible nodes would evaluate, ascending."""
        place = np.full(len(nodes), -1, np.intp)
        place[rows] = np.arange(len(rows))
        order = self._order(nodes)
        order = order[place[order] >= 0]
        passed = answers.passed
        tried = np.sort(self.sampler.tried(order, passed[place[order]], limit))
        return tried, answers.take(place[tried])

    @staticmethod
    def _order(nodes: NodeTable) -> NDArray[np.intp]:
        order = getattr(nodes, "snapshot_order", None)
        return np.arange(len(nodes)) if order is None else order

    def _pre_filter(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        plan: Plan,
        trace: Trace | None,
    ) -> tuple[Status, frozenset[str] | None, tuple[str, ...]]:
        """Run PreFilter; return status, allowed node names and the plugins that restricted them."""
        timer = self.profile.timer
        timer.enter(PRE_FILTER)
        outcome, names, contributors = self._ask_pre_filters(cycle, pod, snapshot, plan, trace)
        if plan.filter_states_to_make:
            self.profile.make_filter_states(plan.filter_states_to_make, cycle, pod, snapshot)
        timer.leave(outcome.code)
        timer.pre_filtered(cycle)
        if trace is not None:
            trace.pre_filter_status = outcome
            trace.restricted_to = names
            trace.restricting_plugins = contributors
        return outcome, names, contributors

    def _ask_pre_filters(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        plan: Plan,
        trace: Trace | None,
    ) -> tuple[Status, frozenset[str] | None, tuple[str, ...]]:
        outcome = SUCCESS
        names: frozenset[str] | None = None
        contributors: list[str] = []
        for plugin in plan.pre_filters:
            result = self.profile.ask(
                failures.PRE_FILTER, plugin, plugin.pre_filter, cycle, pod, snapshot
            )
            status = result.status
            if trace is not None:
                trace.pre_filter[plugin.name] = status.by(plugin.name)
            cycle.filter_states[plugin.name] = result.state
            if status.is_skip:
                cycle.skip_filter.add(plugin.name)
                continue
            if not status.is_success:
                status = status.by(plugin.name)
                if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    outcome, names, contributors = status, None, []
                    break
                if status.code is Code.UNSCHEDULABLE:
                    outcome = status
                    continue
                raise PluginFailure(failure_of(failures.PRE_FILTER, plugin.name, status.message))
            if result.node_names is None:
                continue
            contributors.append(plugin.name)
            names = result.node_names if names is None else names & result.node_names
            if not names:
                outcome = _no_allowed_node(contributors)
                break
        return outcome, names, tuple(contributors)

    def _filter(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        known: Answers,
        rows: NDArray[np.intp] | None,
        trace: Trace | None,
    ) -> Filtering:
        """Filter `rows` (None for all), including the second pass for nominated pods."""
        timer = self.profile.timer
        timer.enter(FILTER)
        nodes: NodeTable = snapshot.nodes
        if rows is None or len(rows) == len(nodes):
            filtering = Filtering(known.rejections, known.feasible)
        else:
            nodes = nodes.row_view(int(rows[0])) if len(rows) == 1 else nodes.take(rows)
            if len(known.feasible) == len(rows):
                filtering = Filtering(known.rejections, known.feasible)
            else:
                filtering = Filtering(known.rejections.take(rows), known.feasible[rows])
        if trace is None:
            for position, plugin in known.plan.filters:
                if plugin.name not in cycle.skip_filter:
                    self.profile.add_filter(filtering, position, plugin, cycle, pod, nodes)
        else:
            asked = np.arange(len(nodes)) if rows is None else rows
            self._ask_filters_for(trace, filtering, cycle, pod, nodes, asked)
        if snapshot.nominated:
            rejections = self._nominated_rows.rejections(cycle, pod, snapshot, known, nodes)
            if rejections:
                # A rejection in this pass counts.
                filtering.mutable_answers().override(rejections)
                filtering.changed()
        timer.leave()
        return filtering

    def _ask_filters_for(
        self,
        trace: Trace,
        filtering: Filtering,
        cycle: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        rows: NDArray[np.intp],
    ) -> None:
        """Run all filters for a trace, including those after one that failed."""
        first: PluginFailure | None = None
        for position, plugin in enumerate(self.profile.filter_plugins):
            if plugin.name in cycle.skip_filter:
                continue
            found = None
            if trace.all_filters:
                found = self._ask_filter_everywhere(cycle, pod, nodes, rows, plugin, trace)
            try:
                if found is None:
                    self.profile.add_filter(filtering, position, plugin, cycle, pod, nodes)
                else:
                    self.profile.add_answers(filtering, position, plugin, found)
            except PluginFailure as failure:
                # The cycle fails; the trace still needs the other filters.
                filtering.mutable_answers().fail(position, failure.status)
                filtering.changed()
                first = first or failure
        if first is not None:
            trace.failed_filters = filtering.answers().statuses()
            raise first

    def _ask_filter_everywhere(
        self,
        cycle: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        rows: NDArray[np.intp],
        plugin: FilterPlugin[object],
        trace: Trace,
    ) -> NodeToStatus | None:
        state = cycle.filter_states.get(plugin.name)
        try:
            found = self.profile.ask_filter(plugin, state, pod, nodes)
        except PluginFailure as failure:
            # It may have failed on a row that an earlier filter rejected and a normal cycle skips.
            everywhere = NodeToStatus.everywhere(len(nodes), failure.status)
            trace.filters.append(FilterTrace(plugin.name, rows, everywhere))
            return None
        trace.filters.append(FilterTrace(plugin.name, rows, found))
        return found


def _trace_failed_filters(trace: Trace, rows: NDArray[np.intp] | None, nodes: NodeTable) -> None:
    assert trace.failed_filters is not None, "a filter has failed"
    rows = np.arange(len(nodes)) if rows is None else rows
    statuses = [SUCCESS] * len(nodes)
    for at, row in enumerate(rows.tolist()):
        statuses[row] = trace.failed_filters[at]
    trace.statuses = NodeToStatus.of(statuses)
    trace.tried_rows = rows


def _no_allowed_node(contributors: list[str]) -> Status:
    if len(contributors) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {contributors[0]}")
    listed = " ".join(sorted(contributors))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")
