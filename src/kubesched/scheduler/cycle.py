"""The scheduling cycle: filter nodes for a pod, score them and choose one, or reject the pod.

Synchronous, without I/O or clock: values in, a decision out. A cycle starts with the answers that
`scheduler.memory` remembers and runs only the other plugins.

Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/framework/runtime/framework.go (v1.36)
Differs:  a pod goes to the best node of its own cycle. With the gate OpportunisticBatching,
          upstream reuses the scores of the pod before for up to half a second, if both are equal
          and fill their nodes; where scores depend on the set of feasible nodes, as those of
          NodeAffinity and TaintToleration do, its node may no longer be the best.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.phase_timer import FILTER, PRE_FILTER
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status, unresolvable
from kubesched.scheduler.answers import Answers
from kubesched.scheduler.decision import NO_NODES, Decision, Failed, Placed, Rejected
from kubesched.scheduler.first_rejections import Filtering
from kubesched.scheduler.memory import Memory
from kubesched.scheduler.nominated_rows import NominatedRows
from kubesched.scheduler.plan import Plan
from kubesched.scheduler.plugin_failure import PluginFailure, failed_with
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.rejecting import Rejecting
from kubesched.scheduler.rejection_memory import RejectionMemory
from kubesched.scheduler.sampling import NodeSampler, Restriction, feasible_nodes_to_find
from kubesched.scheduler.scoring import Scoring
from kubesched.scheduler.search import Attempt, Feasible, Search
from kubesched.scheduler.trace import FilterTrace, Trace
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class AskEveryPlugin(Exception):  # noqa: N818 - control flow, not an error
    """The remembered answers cannot be used for this pod: run every plugin."""


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
        if self.profile.samples:
            # Upstream orders the nodes as each cycle begins, also if no search follows.
            _ = snapshot.nodes.snapshot_order
        timer, memory = self.profile.timer, self._memory
        timer.begin_cycle()
        try:
            if memory is None or trace is not None or self.restriction.rows is not None:
                return self._schedule(self._new_attempt(pod, snapshot, trace))
            return self._schedule_remembering(pod, snapshot, memory)
        except PluginFailure as failure:
            return Failed(pod, failure.status)
        finally:
            timer.end_cycle()

    def holds_for_template(self, rejected: Rejected) -> bool:
        """Whether all pods of the template have this rejection until the cluster changes."""
        return self._recalls and self._rejections.holds_for_template(rejected)

    @property
    def _recalls(self) -> bool:
        """Whether rejections are kept and recalled."""
        restriction = self.restriction
        is_restricted = restriction.rows is not None or restriction.skips_post_filters
        return self._memory is not None and not is_restricted

    def _schedule_remembering(self, pod: PodInfo, snapshot: Snapshot, memory: Memory) -> Decision:
        recalls = self._recalls
        recalled = self._rejections.recall(pod, snapshot) if recalls else None
        if recalled is not None:
            self.rejecting.count_again(recalled)
            return recalled
        draws, start = self.profile.random_asked, self.sampler.next_start
        decision = self._schedule_from_memory(pod, snapshot, memory)
        if decision is None:
            self.profile.timer.begin_again()
            # The search that failed may have moved it.
            self.sampler.next_start = start
            try:
                decision = self._schedule(self._new_attempt(pod, snapshot))
            finally:
                self.profile.known_error = ""
        if recalls and isinstance(decision, Rejected):
            may_have_drawn = self.profile.plugins_keep_random or self.profile.random_asked > draws
            # The next pod of the template would move it again, and the samples of later pods with
            # it.
            has_moved = self.sampler.next_start != start and self.profile.samples
            if not (may_have_drawn or has_moved):
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
                plan = memory.plan_for(pod, known)
                attempt = Attempt(pod, snapshot, known, plan, plan.new_cycle())
                decision = self._schedule(attempt)
                if is_hinted and attempt.skips:
                    memory.keep_skips(pod, attempt.skips)
                return decision
        except PluginFailure as failure:
            # Remembered plugins run on more rows than a fresh cycle would use. Only a run of every
            # plugin in order shows whether it would reach the row that failed.
            self.profile.known_error = failure.reported
        except AskEveryPlugin:
            pass
        if is_hinted:
            self.profile.timer.hint_not_used()
        return None

    def _new_attempt(self, pod: PodInfo, snapshot: Snapshot, trace: Trace | None = None) -> Attempt:
        """Return an attempt that starts with no answers, so that every plugin runs."""
        nothing = self._nothing
        if len(nothing.feasible) != len(snapshot.nodes):
            nothing.begin(len(snapshot.nodes))
        plan = nothing.plan
        attempt = Attempt(pod, snapshot, nothing, plan, plan.new_cycle(), trace)
        if trace is not None:
            trace.cycle = attempt.cycle
        return attempt

    def _schedule(self, attempt: Attempt) -> Decision:
        found = self._find_feasible(attempt)
        if isinstance(found, Diagnosis):
            return self.rejecting.reject(attempt, found)
        if attempt.trace is not None:
            attempt.trace.feasible_rows = found.rows
        row = found.first if found.count == 1 else self.scoring.choose(attempt, found)
        name = attempt.snapshot.nodes.names[row]
        return Placed(attempt.pod, name, row, attempt.cycle, found.count, found.evaluated)

    # Finding feasible rows.

    def _find_feasible(self, attempt: Attempt) -> Feasible | Diagnosis:
        known = attempt.known
        search = self._pre_filter(attempt)
        if isinstance(search, Diagnosis):
            if known is not self._nothing:
                # Plugins after the one that rejects the pod must not have left a state.
                raise AskEveryPlugin
            return search
        known.names_nodes |= search.names is not None
        if attempt.pod.pod.status.nominated_node_name:
            nominated = self._try_nominated(attempt, search)
            if nominated is not None:
                return nominated
        found = self._search(attempt, search)
        return (
            found if found.count else search.diagnosis(self.rejecting.last_diagnosis(attempt.pod))
        )

    def _try_nominated(self, attempt: Attempt, search: Search) -> Feasible | None:
        """Return the pod's nominated node if it passes the filters."""
        row = attempt.snapshot.nodes.row_of.get(attempt.pod.pod.status.nominated_node_name)
        if row is None or not self.restriction.allows(row):
            return None
        rows = np.array([row], np.intp)
        try:
            answers = self._filter(attempt, rows, traces=False).answers()
        except PluginFailure:
            # The search continues with all nodes.
            return None
        self.profile.timer.filtered(attempt.cycle, answers.failed_at)
        if not answers.passed[0]:
            search.add(rows, answers)
            search.contributors += (answers.statuses()[0].plugin,)
            return None
        if attempt.trace is not None:
            attempt.trace.nominated_hit = True
            attempt.trace.tried_rows = rows
        return Feasible(1, 1, some=rows)

    def _search(self, attempt: Attempt, search: Search) -> Feasible:
        """Return the rows that pass the filters."""
        nodes = attempt.snapshot.nodes
        rows = self.restriction.narrow(search.candidates())
        size = len(nodes) if rows is None else len(rows)
        limit = feasible_nodes_to_find(size, self.profile.percentage_of_nodes_to_score)
        if rows is None and limit == size:
            filtering = self._filter(attempt, None)
            found = self._found_everywhere(attempt, filtering)
            search.add_all(filtering)
        else:
            if limit < size:
                some = self._sample(attempt, search, rows, limit)
            else:
                rows = np.arange(size) if rows is None else rows
                answers = self._filter(attempt, rows).answers()
                self.profile.timer.filtered(attempt.cycle, answers.failed_at)
                search.add(rows, answers)
                some = rows[answers.passed]
            evaluated = search.evaluated
            self.sampler.advance(evaluated, self.restriction.count(nodes))
            found = Feasible(len(some), evaluated, some=some)
        if attempt.trace is not None:
            attempt.trace.tried_rows = np.flatnonzero(search.tried)
            attempt.trace.statuses = search.answers().statuses()
        return found

    def _sample(
        self, attempt: Attempt, search: Search, rows: NDArray[np.intp] | None, limit: int
    ) -> NDArray[np.intp]:
        """Filter rows until `limit` of them have passed, and return these, ascending.

        As upstream's, the search ends at the next feasible row; the rows before that count as
        evaluated.
        """
        found: list[NDArray[np.intp]] = []
        missing = limit
        for part in self.sampler.parts(attempt.snapshot.nodes, rows, limit):
            answers = self._filter(attempt, part).answers()
            end = int(np.searchsorted(np.cumsum(answers.passed), missing + 1))
            tried, answers = part[:end], answers.take(slice(end))
            self.profile.timer.filtered(attempt.cycle, answers.failed_at)
            search.add(tried, answers)
            found.append(tried[answers.passed])
            missing -= len(found[-1])
            if end < len(part):
                break
        return np.sort(np.concatenate(found))

    def _found_everywhere(self, attempt: Attempt, filtering: Filtering) -> Feasible:
        """Return the rows that passed a search of all rows."""
        self.profile.timer.filtered(attempt.cycle, filtering.answers_so_far.failed_at)
        known, passed = attempt.known, filtering.passed
        is_known = passed is known.feasible
        count = known.feasible_count if is_known else int(np.count_nonzero(passed))
        return Feasible(count, len(passed), passed)

    def _pre_filter(self, attempt: Attempt) -> Search | Diagnosis:
        """Run PreFilter; return a search of the rows it allows, or why it rejects the pod."""
        timer, plan, cycle = self.profile.timer, attempt.plan, attempt.cycle
        with timer.phases[PRE_FILTER] as phase:
            status, names, contributors = self._ask_pre_filters(attempt)
            if plan.filter_states_to_make:
                self.profile.make_filter_states(
                    plan.filter_states_to_make, cycle, attempt.pod, attempt.snapshot
                )
            phase.code = status.code
        timer.pre_filtered(cycle)
        if attempt.trace is not None:
            attempt.trace.pre_filter_status = status
            attempt.trace.restricted_to = names
            attempt.trace.restricting_plugins = contributors
        if not status.is_success:
            return Diagnosis.of_pre_filter(status, contributors)
        return Search(attempt.snapshot.nodes, names, contributors)

    def _ask_pre_filters(
        self, attempt: Attempt
    ) -> tuple[Status, frozenset[str] | None, tuple[str, ...]]:
        """Return the status, the allowed node names and the plugins that restricted them."""
        cycle, pod, snapshot = attempt.cycle, attempt.pod, attempt.snapshot
        outcome = SUCCESS
        names: frozenset[str] | None = None
        contributors: list[str] = []
        for plugin in attempt.plan.pre_filters:
            result = self.profile.ask(plugin, plugin.pre_filter, cycle, pod, snapshot)
            status = result.status
            if attempt.trace is not None:
                attempt.trace.pre_filter[plugin.name] = status.by(plugin.name)
            cycle.filter_states[plugin.name] = result.state
            if status.is_skip:
                cycle.skip_filter.add(plugin.name)
                if result.lasts:
                    attempt.skips.append((PRE_FILTER, plugin.name))
                continue
            if not status.is_success:
                status = status.by(plugin.name)
                if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    outcome, names, contributors = status, None, []
                    break
                if status.code is Code.UNSCHEDULABLE:
                    outcome = status
                    continue
                raise PluginFailure(failed_with("pre_filter", plugin.name, status))
            if result.node_names is None:
                continue
            contributors.append(plugin.name)
            names = result.node_names if names is None else names & result.node_names
            if not names:
                outcome = _no_allowed_node(contributors)
                break
        return outcome, names, tuple(contributors)

    def _filter(
        self, attempt: Attempt, rows: NDArray[np.intp] | None, *, traces: bool = True
    ) -> Filtering:
        """Filter `rows` (None for all), those with nominated pods first with and then without them.

        `traces` is whether the attempt's trace, if it has one, records the answers.
        """
        known, snapshot = attempt.known, attempt.snapshot
        nodes: NodeTable = snapshot.nodes
        with self.profile.timer.phases[FILTER]:
            if rows is None:
                filtering = Filtering(known.rejections, known.feasible)
            else:
                nodes = nodes.row_view(int(rows[0])) if len(rows) == 1 else nodes.take(rows)
                filtering = Filtering(known.rejections.take(rows), known.feasible[rows])
            if snapshot.nominated:
                rejections = self._nominated_rows.rejections(attempt, nodes)
                if rejections:
                    # Without the nominated pods, no filter is asked about these rows any more.
                    filtering.override(rejections)
            if traces and attempt.trace is not None:
                asked = np.arange(len(nodes)) if rows is None else rows
                self._ask_filters_for(attempt.trace, attempt, filtering, nodes, asked)
            else:
                cycle, pod = attempt.cycle, attempt.pod
                for position, plugin in attempt.plan.filters:
                    if plugin.name not in cycle.skip_filter:
                        self.profile.add_filter(filtering, position, plugin, cycle, pod, nodes)
        return filtering

    def _ask_filters_for(
        self,
        trace: Trace,
        attempt: Attempt,
        filtering: Filtering,
        nodes: NodeTable,
        rows: NDArray[np.intp],
    ) -> None:
        """Run all filters for a trace, including those after one that failed."""
        cycle, pod = attempt.cycle, attempt.pod
        first: PluginFailure | None = None
        for position, plugin in attempt.plan.filters:
            if plugin.name in cycle.skip_filter:
                continue
            found = None
            if trace.all_filters:
                found = self._ask_filter_everywhere(trace, attempt, plugin, nodes, rows)
            try:
                if found is None:
                    self.profile.add_filter(filtering, position, plugin, cycle, pod, nodes)
                else:
                    filtering.add(position, plugin.name, found)
            except PluginFailure as failure:
                # The cycle fails; the trace still needs the other filters.
                filtering.fail(position, failure.status)
                first = first or failure
        if first is not None:
            trace.failed_filters = failed = filtering.answers().statuses()
            index = np.zeros(len(attempt.snapshot.nodes), np.int32)
            index[rows] = failed.index
            trace.statuses = NodeToStatus(index, failed.statuses)
            trace.tried_rows = rows
            raise first

    def _ask_filter_everywhere(
        self,
        trace: Trace,
        attempt: Attempt,
        plugin: FilterPlugin[object],
        nodes: NodeTable,
        rows: NDArray[np.intp],
    ) -> NodeToStatus | None:
        state = attempt.cycle.filter_states.get(plugin.name)
        try:
            found = self.profile.ask_filter(plugin, state, attempt.pod, nodes)
        except PluginFailure as failure:
            # It may have failed on a row that an earlier filter rejected and a normal cycle skips.
            everywhere = NodeToStatus.everywhere(len(nodes), failure.status)
            trace.filters.append(FilterTrace(plugin.name, rows, everywhere))
            return None
        trace.filters.append(FilterTrace(plugin.name, rows, found))
        return found


def _no_allowed_node(contributors: list[str]) -> Status:
    if len(contributors) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {contributors[0]}")
    listed = " ".join(sorted(contributors))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")
