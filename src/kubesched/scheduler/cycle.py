"""The scheduling cycle: which nodes can take the pod, which of them is best, what if none can.

Sync, no I/O, no clock: values in, a decision out.

Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/framework/runtime/framework.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import (
    FilterPlugin,
)
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status, unresolvable
from kubesched.scheduler import profile as wording
from kubesched.scheduler.decision import NO_NODES, Decision, Failed, Placed
from kubesched.scheduler.missing_states import make_filter_states
from kubesched.scheduler.nominated import ask_with_nominated
from kubesched.scheduler.phase_timer import FILTER, PRE_FILTER
from kubesched.scheduler.profile import (
    PluginFailure,
    Profile,
    failure_of,
    relevant_nominated_pods,
)
from kubesched.scheduler.rejecting import Rejecting
from kubesched.scheduler.remembered_cycle import RememberedCycle
from kubesched.scheduler.restriction import Restriction
from kubesched.scheduler.row_answers import RowAnswers
from kubesched.scheduler.sampling import NodeSampler, feasible_nodes_to_find
from kubesched.scheduler.scoring import Scoring, select_host
from kubesched.scheduler.search import Search
from kubesched.scheduler.trace import FilterTrace, Trace
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class Feasible(msgspec.Struct, frozen=True):
    """The rows that can take the pod, in ascending order, and how many were looked at."""

    rows: NDArray[np.intp]
    evaluated: int


class SchedulingCycle:
    """Schedules pods of one profile, one at a time.

    Attributes:
        profile: The plugins.
        sampler: Where the next search starts; shared by all profiles.
        scoring: Rates feasible rows.
        rejecting: What follows when there is none.
        restriction: What is left out at the moment.
    """

    def __init__(self, profile: Profile, sampler: NodeSampler, *, remembers: bool = True) -> None:
        self.profile = profile
        self.sampler = sampler
        self.scoring = Scoring(profile)
        self.restriction = Restriction()
        self.rejecting = Rejecting(profile, self.restriction)
        self._remembered: RememberedCycle | None = None
        if remembers:
            self._remembered = RememberedCycle(profile, self.scoring, self.rejecting)

    def schedule_one(
        self, pod: PodInfo, snapshot: Snapshot, trace: Trace | None = None
    ) -> Decision:
        """Decide where `pod` goes in the cluster of `snapshot`; record the story in `trace`."""
        if not self.restriction.count(snapshot.nodes):
            return Failed(pod, unresolvable(NO_NODES))
        timer = self.profile.timer
        if timer is not None:
            timer.begin_cycle()
        try:
            if self._remembered is not None and trace is None and self.restriction.rows is None:
                decision = self._remembered.schedule_one(pod, snapshot)
                if decision is not None:
                    return decision
                if timer is not None:
                    timer.begin_again()
            return self._schedule(pod, snapshot, trace)
        except PluginFailure as failure:
            return Failed(pod, failure.status)
        finally:
            if timer is not None:
                timer.end_cycle()

    def _schedule(self, pod: PodInfo, snapshot: Snapshot, trace: Trace | None) -> Decision:
        cycle = CycleState()
        if trace is not None:
            trace.cycle = cycle
        found = self._find_feasible(cycle, pod, snapshot, trace)
        if isinstance(found, Diagnosis):
            return self.rejecting.reject(cycle, pod, snapshot, found, trace)
        rows = found.rows
        if trace is not None:
            trace.feasible_rows = rows
        row = int(rows[0])
        if len(rows) > 1:
            totals = self.scoring.prioritize(cycle, pod, snapshot, rows, trace)
            row = int(rows[select_host(totals, self.profile.random)])
        return Placed(pod, snapshot.nodes.names[row], row, cycle, len(rows), found.evaluated)

    # Finding feasible rows.

    def _find_feasible(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, trace: Trace | None
    ) -> Feasible | Diagnosis:
        search = self._begin_search(cycle, pod, snapshot, trace)
        if isinstance(search, Diagnosis):
            return search
        rows = self._try_nominated(cycle, pod, snapshot, search, trace)
        if rows is not None:
            return Feasible(rows, 1)
        rows = self._search(cycle, pod, snapshot, search, trace)
        if len(rows):
            return Feasible(rows, search.evaluated)
        return search.diagnosis(snapshot.nodes)

    def _begin_search(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, trace: Trace | None
    ) -> Search | Diagnosis:
        status, names, contributors = self._pre_filter(cycle, pod, snapshot, trace)
        if not status.is_success:
            return Diagnosis.of_pre_filter(status, contributors)
        return Search(len(snapshot.nodes), names, contributors)

    def _try_nominated(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        search: Search,
        trace: Trace | None,
    ) -> NDArray[np.intp] | None:
        """Return the row of the pod's own nominated node if it passes the filters."""
        nominated = snapshot.nodes.row_of.get(pod.pod.status.nominated_node_name or "")
        if nominated is None or not self.restriction.allows(nominated):
            return None
        rows = np.array([nominated], np.intp)
        answers = self._filter_nominated(cycle, pod, snapshot, rows)
        if answers is None:
            return None
        if not answers.passed[0]:
            search.take_in(rows, answers)
            return None
        if trace is not None:
            trace.nominated_hit = True
            trace.tried_rows = rows
        return rows

    def _search(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        search: Search,
        trace: Trace | None,
    ) -> NDArray[np.intp]:
        """Return the rows that pass the filters, ascending."""
        nodes = snapshot.nodes
        rows = self.restriction.narrow(search.candidates(nodes))
        try:
            answers = self._filter(cycle, pod, snapshot, rows, trace)
        except PluginFailure:
            if trace is not None and trace.failed_filters is not None:
                statuses = [SUCCESS] * len(nodes)
                for at, row in enumerate(rows.tolist()):
                    statuses[row] = trace.failed_filters[at]
                trace.statuses = NodeToStatus.of(statuses)
                trace.tried_rows = rows
            raise
        limit = feasible_nodes_to_find(len(rows), self.profile.percentage_of_nodes_to_score)
        if limit < len(rows):
            rows, answers = self._sample(nodes, rows, answers, limit)
        if self.profile.timer is not None:
            self.profile.timer.filtered(cycle, answers.failed_at)
        search.take_in(rows, answers)
        self.sampler.advance(search.evaluated, self.restriction.count(nodes))
        if trace is not None:
            trace.tried_rows = np.flatnonzero(search.tried)
            trace.statuses = search.answers.statuses()
        return np.sort(rows[answers.passed])

    def _filter_nominated(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> RowAnswers | None:
        """Ask about the pod's own nominated node; a failure there only costs it the first try."""
        timer = self.profile.timer
        try:
            answers = self._filter(cycle, pod, snapshot, rows, None)
        except PluginFailure:
            if timer is not None:
                timer.leave(Code.ERROR)
            return None
        if timer is not None:
            timer.filtered(cycle, answers.failed_at)
        return answers

    def _sample(
        self, nodes: NodeTable, rows: NDArray[np.intp], answers: RowAnswers, limit: int
    ) -> tuple[NDArray[np.intp], RowAnswers]:
        """Cut the answers down to the rows that a search for `limit` feasible ones looks at."""
        place = np.full(len(nodes), -1, np.intp)
        place[rows] = np.arange(len(rows))
        order = self._order(nodes)
        order = order[place[order] >= 0]
        passed = answers.passed
        tried = self.sampler.tried(order, passed[place[order]], limit)
        at = place[tried]
        return tried, RowAnswers(answers.failed_at[at], answers.index[at], answers.table)

    @staticmethod
    def _order(nodes: NodeTable) -> NDArray[np.intp]:
        order = getattr(nodes, "snapshot_order", None)
        return np.arange(len(nodes)) if order is None else order

    def _pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, trace: Trace | None
    ) -> tuple[Status, frozenset[str] | None, tuple[str, ...]]:
        """Ask the PreFilter plugins; return status, allowed node names, and who restricted them."""
        timer = self.profile.timer
        if timer is not None:
            timer.enter(PRE_FILTER)
        outcome, names, contributors = self._ask_pre_filters(cycle, pod, snapshot, trace)
        make_filter_states(
            self.profile, self.profile.filters_without_pre_filter, cycle, pod, snapshot
        )
        if timer is not None:
            timer.leave(outcome.code)
            timer.pre_filtered(cycle)
        if trace is not None:
            trace.pre_filter_status = outcome
            trace.restricted_to = names
            trace.restricting_plugins = contributors
        return outcome, names, contributors

    def _ask_pre_filters(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, trace: Trace | None
    ) -> tuple[Status, frozenset[str] | None, tuple[str, ...]]:
        outcome = SUCCESS
        names: frozenset[str] | None = None
        contributors: list[str] = []
        for plugin in self.profile.pre_filter_plugins:
            result = self.profile.ask(
                wording.PRE_FILTER, plugin, plugin.pre_filter, cycle, pod, snapshot
            )
            status = result.status.by(plugin.name)
            if trace is not None:
                trace.pre_filter[plugin.name] = status
            cycle.filter_states[plugin.name] = result.state
            if status.is_skip:
                cycle.skip_filter.add(plugin.name)
                continue
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                outcome, names, contributors = status, None, []
                break
            if status.code is Code.UNSCHEDULABLE:
                outcome = status
                continue
            if not status.is_success:
                raise PluginFailure(failure_of(wording.PRE_FILTER, plugin.name, status.message))
            if result.node_names is None:
                continue
            contributors.append(plugin.name)
            names = result.node_names if names is None else names & result.node_names
            if not names:
                outcome = _nothing_left(contributors)
                break
        return outcome, names, tuple(contributors)

    def _filter(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        trace: Trace | None,
    ) -> RowAnswers:
        """Ask the Filter plugins about `rows`, with the two passes where pods are nominated."""
        timer = self.profile.timer
        if timer is not None:
            timer.enter(FILTER)
        nodes: NodeTable = snapshot.nodes
        if len(rows) < len(nodes):
            nodes = nodes.take(rows)
        answers = self._ask_filters(cycle, pod, nodes, rows, trace)
        if snapshot.nominated:
            at = {name: row for row, name in enumerate(nodes.names)}
            for name in snapshot.nominated.node_names():
                row = at.get(name)
                if row is None:
                    continue
                nominated = relevant_nominated_pods(pod, snapshot, name)
                if nominated:
                    ask_with_nominated(self.profile, nominated, cycle, pod, nodes, row, answers)
        if timer is not None:
            timer.leave()
        return answers

    def _ask_filters(
        self,
        cycle: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        rows: NDArray[np.intp],
        trace: Trace | None,
    ) -> RowAnswers:
        if trace is None:
            return self.profile.run_filters(cycle, pod, nodes)
        answers = RowAnswers.nothing_asked(len(rows))
        first: PluginFailure | None = None
        for position, plugin in enumerate(self.profile.filter_plugins):
            if plugin.name in cycle.skip_filter:
                continue
            found = None
            if trace.all_filters:
                found = self._ask_filter_everywhere(cycle, pod, nodes, rows, plugin, trace)
            try:
                if found is None:
                    self.profile.add_filter(answers, position, plugin, cycle, pod, nodes)
                elif answers.add(position, plugin.name, found):
                    wording.raise_failures(answers, found, position, plugin.name)
            except PluginFailure as failure:
                # The cycle fails; for the story the other filters are asked about other rows.
                answers.fail(position, failure.status)
                first = first or failure
        if first is not None:
            trace.failed_filters = answers.statuses()
            raise first
        return answers

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
            # Perhaps on a row that an earlier filter rejected, where nobody would have asked.
            everywhere = NodeToStatus.everywhere(len(rows), failure.status)
            trace.filters.append(FilterTrace(plugin.name, rows, everywhere))
            return None
        trace.filters.append(FilterTrace(plugin.name, rows, found))
        return found


def _nothing_left(contributors: list[str]) -> Status:
    if len(contributors) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {contributors[0]}")
    listed = " ".join(sorted(contributors))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")
