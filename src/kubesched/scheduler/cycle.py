"""The scheduling cycle: which nodes can take the pod, which of them is best, what if none can.

Sync, no I/O, no clock: values in, a decision out.

Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/framework/runtime/framework.go (v1.36)
Differs:  among nodes with the same best total one is drawn from the run's seed; upstream takes
          the first that its parallel search happened to find.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import (
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status, unresolvable
from kubesched.scheduler import profile as wording
from kubesched.scheduler.decision import NO_NODES, Decision, Failed, Placed, Rejected
from kubesched.scheduler.memory import Memory, Remembered
from kubesched.scheduler.missing_states import make_filter_states, make_score_states
from kubesched.scheduler.post_filter_verdict import PostFilterVerdict
from kubesched.scheduler.profile import (
    PluginFailure,
    Profile,
    failure_of,
    relevant_nominated_pods,
)
from kubesched.scheduler.row_answers import RowAnswers
from kubesched.scheduler.sampling import NodeSampler, feasible_nodes_to_find
from kubesched.scheduler.search import Search
from kubesched.scheduler.trace import FilterTrace, ScoreTrace, Trace
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_SLICE_ROWS: Final = 512


class Feasible(msgspec.Struct, frozen=True):
    """The rows that can take the pod, in ascending order, and how many were looked at."""

    rows: NDArray[np.intp]
    evaluated: int


class SchedulingCycle:
    """Schedules pods of one profile, one at a time.

    Attributes:
        profile: The plugins.
        sampler: Where the next search starts; shared by all profiles.
        memory: Answers remembered from earlier cycles; None remembers nothing.
    """

    def __init__(self, profile: Profile, sampler: NodeSampler, *, remembers: bool = True) -> None:
        self.profile = profile
        self.sampler = sampler
        self.memory = Memory(profile) if remembers else None

    def schedule_one(
        self, pod: PodInfo, snapshot: Snapshot, trace: Trace | None = None
    ) -> Decision:
        """Decide where `pod` goes in the cluster of `snapshot`; record the story in `trace`."""
        if not len(snapshot.nodes):
            return Failed(pod, unresolvable(NO_NODES))
        try:
            if self.memory is not None and trace is None:
                decision = self._decide_remembered(self.memory, pod, snapshot)
                if decision is not None:
                    return decision
            return self._schedule(pod, snapshot, trace)
        except PluginFailure as failure:
            return Failed(pod, failure.status)

    def _schedule(self, pod: PodInfo, snapshot: Snapshot, trace: Trace | None) -> Decision:
        cycle = CycleState()
        if trace is not None:
            trace.cycle = cycle
        found = self._find_feasible(cycle, pod, snapshot, trace)
        if isinstance(found, Diagnosis):
            return self.reject(cycle, pod, snapshot, found, trace)
        rows = found.rows
        if trace is not None:
            trace.feasible_rows = rows
        row = int(rows[0])
        if len(rows) > 1:
            totals = self._prioritize(cycle, pod, snapshot, rows, trace)
            row = int(rows[select_host(totals, self.profile.random)])
        return Placed(pod, snapshot.nodes.names[row], row, cycle, len(rows), found.evaluated)

    # The short way, with remembered answers.

    def _decide_remembered(
        self, memory: Memory, pod: PodInfo, snapshot: Snapshot
    ) -> Decision | None:
        """Decide from remembered answers; None where the plain path must tell the story."""
        try:
            remembered = self._recall(memory, pod, snapshot)
            if remembered is None:
                return None
            return self._schedule_remembered(pod, snapshot, remembered)
        except PluginFailure:
            # Remembered plugins are asked about more rows than they would be: whether somebody
            # had met this failure, only the plain path knows.
            return None

    def _recall(self, memory: Memory, pod: PodInfo, snapshot: Snapshot) -> Remembered | None:
        if pod.pod.status.nominated_node_name:
            return None
        percentage = self.profile.percentage_of_nodes_to_score
        if feasible_nodes_to_find(len(snapshot.nodes), percentage) < len(snapshot.nodes):
            return None
        return memory.recall(pod, snapshot)

    def _schedule_remembered(
        self, pod: PodInfo, snapshot: Snapshot, remembered: Remembered
    ) -> Decision | None:
        """Decide from remembered answers; None where the plain path must tell the story."""
        cycle = remembered.new_cycle()
        for plugin in remembered.fresh_pre_filters:
            result = self.profile.ask(
                wording.PRE_FILTER, plugin, plugin.pre_filter, cycle, pod, snapshot
            )
            cycle.filter_states[plugin.name] = result.state
            if result.status.is_skip:
                cycle.skip_filter.add(plugin.name)
            elif not result.status.is_success or result.node_names is not None:
                return None
        make_filter_states(remembered.fresh_filter_states, cycle, pod, snapshot)
        fewer = self._feasible_fresh(cycle, pod, snapshot, remembered)
        if fewer is None:
            feasible, count = remembered.feasible, remembered.feasible_count
        else:
            feasible, count = fewer, int(np.count_nonzero(fewer))
        nodes = snapshot.nodes
        if count == 0:
            answers = self._filter_fresh(cycle, pod, snapshot, remembered)
            statuses = (answers or remembered.answers).copy().statuses()
            diagnosis = Diagnosis.of_filter(tuple(nodes.names), statuses)
            return self.reject(cycle, pod, snapshot, diagnosis)
        if count == 1:
            row = int(feasible.argmax())
        else:
            totals = self._prioritize_fresh(cycle, pod, snapshot, remembered, fewer)
            row = select_host(totals, self.profile.random)
        return Placed(pod, nodes.names[row], row, cycle, count, len(nodes))

    def _feasible_fresh(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, remembered: Remembered
    ) -> NDArray[np.bool_] | None:
        """Return bool per row: whether it is feasible; None if the remembered rows are the ones.

        Who rejected a row, and why, does not matter as long as some row is feasible.
        """
        asked = [
            plugin for _, plugin in remembered.fresh_filters if plugin.name not in cycle.skip_filter
        ]
        if not asked and not snapshot.nominated:
            return None
        if snapshot.nominated or any(plugin.survivors_only for plugin in asked):
            answers = self._filter_fresh(cycle, pod, snapshot, remembered)
            return None if answers is None else answers.passed
        feasible: NDArray[np.bool_] | None = None
        for plugin in asked:
            state = cycle.filter_states.get(plugin.name)
            found = self.profile.ask_filter(plugin, state, pod, snapshot.nodes)
            if not all(status.is_rejected for status in found.statuses[1:]):
                answers = self._filter_fresh(cycle, pod, snapshot, remembered)
                return None if answers is None else answers.passed
            if found.index.any():
                passed = found.passed
                feasible = passed & (remembered.feasible if feasible is None else feasible)
        return feasible

    def _filter_fresh(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, remembered: Remembered
    ) -> RowAnswers | None:
        """Ask what is not remembered; None if that changes nothing."""
        answers: RowAnswers | None = None
        changed = False
        for position, plugin in remembered.fresh_filters:
            if plugin.name not in cycle.skip_filter:
                answers = answers or remembered.answers.copy()
                changed |= self.profile.add_filter(
                    answers, position, plugin, cycle, pod, snapshot.nodes
                )
        if snapshot.nominated:
            for name in snapshot.nominated.node_names():
                row = snapshot.nodes.row_of.get(name)
                nominated = relevant_nominated_pods(pod, snapshot, name)
                if row is not None and nominated:
                    answers = answers or remembered.answers.copy()
                    self._ask_with(nominated, cycle, pod, snapshot.nodes, row, answers)
                    changed = True
        return answers if changed else None

    def _prioritize_fresh(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        remembered: Remembered,
        feasible: NDArray[np.bool_] | None,
    ) -> NDArray[np.int64]:
        """Return the total per row; `feasible` is None where the remembered rows are the ones."""
        mask = remembered.feasible if feasible is None else feasible
        for plugin in remembered.fresh_pre_scores:
            self._ask_pre_score(cycle, pod, snapshot, mask, plugin, None)
        make_score_states(remembered.fresh_score_states, cycle, pod, snapshot, mask)
        scores = [p for p in remembered.fresh_scores if p.name not in cycle.skip_score]
        if feasible is None:
            totals = remembered.masked_totals(pod)
        else:
            totals = remembered.totals_where(feasible, pod)
        if not scores:
            return totals
        totals = totals.copy()
        rows = remembered.feasible_rows if feasible is None else np.flatnonzero(feasible)
        for score in scores:
            gain = self._score_rows(cycle, pod, snapshot.nodes, score, rows)
            if len(rows) == len(totals):
                totals += gain
            else:
                totals[rows] += gain
        return totals

    def _score_rows(
        self,
        cycle: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        score: ScorePlugin[object],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        """Return what one plugin adds to the total of each of `rows`."""
        every = len(rows) == len(nodes)
        some = nodes.take(rows) if score.survivors_only and not every else nodes
        raw = self._ask_score(cycle, pod, some, score)
        known = raw if len(raw) == len(rows) else raw[rows]
        scores = self._normalize(cycle, pod, score, known, rows)
        wording.check_scores(score.name, scores)
        return scores * self._weight(score)

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
        if nominated is None:
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
        rows = search.candidates(nodes)
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
        search.take_in(rows, answers)
        self.sampler.advance(search.evaluated, len(nodes))
        if trace is not None:
            trace.tried_rows = np.flatnonzero(search.tried)
            trace.statuses = search.answers.statuses()
        return np.sort(rows[answers.passed])

    def _filter_nominated(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> RowAnswers | None:
        """Ask about the pod's own nominated node; a failure there only costs it the first try."""
        try:
            return self._filter(cycle, pod, snapshot, rows, None)
        except PluginFailure:
            return None

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
        make_filter_states(self.profile.filters_without_pre_filter, cycle, pod, snapshot)
        if trace is not None:
            trace.pre_filter_status = outcome
            trace.restricted_to = names
            trace.restricting_plugins = tuple(contributors)
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
                    self._ask_with(nominated, cycle, pod, nodes, row, answers)
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

    def _ask_with(
        self,
        nominated: list[PodInfo],
        cycle: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        row: int,
        answers: RowAnswers,
    ) -> None:
        status = self.profile.filter_with(nominated, cycle, pod, nodes, row)
        if not status.is_success:
            if not status.is_rejected:
                raise PluginFailure(status)
            answers.override(row, status)

    # Scoring.

    def _prioritize(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        trace: Trace | None,
    ) -> NDArray[np.int64]:
        """Return the total score per feasible row; 1 if there is nobody to score."""
        if not self.profile.score_plugins:
            totals = np.ones(len(rows), np.int64)
            if trace is not None:
                trace.totals = totals
            return totals
        nodes: NodeTable = snapshot.nodes
        if len(rows) < len(nodes):
            nodes = nodes.take(rows)
        return self._score(cycle, pod, snapshot, rows, nodes, trace)

    def _score(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        nodes: NodeTable,
        trace: Trace | None,
    ) -> NDArray[np.int64]:
        """Return what the plugins make of `nodes`, the table of the feasible rows."""
        self._pre_score(cycle, pod, snapshot, rows, trace)
        totals = np.zeros(len(rows), np.int64)
        plugins = [p for p in self.profile.score_plugins if p.name not in cycle.skip_score]
        # All are asked before the first is normalized: whoever fails is met in that order.
        asked = [(plugin, self._ask_score(cycle, pod, nodes, plugin)) for plugin in plugins]
        normalized = [
            (plugin, raw, self._normalize(cycle, pod, plugin, raw, rows)) for plugin, raw in asked
        ]
        for plugin, raw, scores in normalized:
            wording.check_scores(plugin.name, scores)
            weight = self._weight(plugin)
            totals += scores * weight
            if trace is not None:
                trace.scores.append(ScoreTrace(plugin.name, weight, raw, scores))
        if trace is not None:
            trace.totals = totals
        return totals

    def _weight(self, plugin: ScorePlugin[object]) -> int:
        return self.profile.score_weights[plugin.name]

    def _ask_score(
        self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, plugin: ScorePlugin[object]
    ) -> NDArray[np.int64]:
        state = cycle.score_states.get(plugin.name)
        return self.profile.ask_score(plugin, state, pod, nodes)

    def _normalize(
        self,
        cycle: CycleState,
        pod: PodInfo,
        plugin: ScorePlugin[object],
        raw: NDArray[np.int64],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        scores = raw
        if plugin.normalizes:
            state = cycle.score_states.get(plugin.name)
            scores = self.profile.ask(
                wording.NORMALIZE, plugin, plugin.normalize_score, state, pod, raw, rows
            )
        return scores

    def _pre_score(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        trace: Trace | None,
    ) -> None:
        feasible = np.zeros(len(snapshot.nodes), np.bool_)
        feasible[rows] = True
        for plugin in self.profile.pre_score_plugins:
            self._ask_pre_score(cycle, pod, snapshot, feasible, plugin, trace)
        plugins = self.profile.scores_without_pre_score
        make_score_states(plugins, cycle, pod, snapshot, feasible)

    def _ask_pre_score(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        feasible: NDArray[np.bool_],
        plugin: PreScorePlugin[object],
        trace: Trace | None,
    ) -> None:
        result = self.profile.ask(
            wording.PRE_SCORE, plugin, plugin.pre_score, cycle, pod, snapshot, feasible
        )
        if trace is not None:
            trace.pre_score[plugin.name] = result.status
        cycle.score_states[plugin.name] = result.state
        if result.status.is_skip:
            cycle.skip_score.add(plugin.name)
        elif not result.status.is_success:
            text = result.status.message
            raise PluginFailure(failure_of(wording.PRE_SCORE, plugin.name, text))

    # When nothing is feasible.

    def reject(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        diagnosis: Diagnosis,
        trace: Trace | None = None,
    ) -> Rejected:
        """Ask the PostFilter plugins and put the outcome into words."""
        nodes = len(snapshot.nodes)
        if not self.profile.post_filter_plugins:
            return Rejected(pod, diagnosis, diagnosis.fit_error(nodes), cycle)
        statuses = diagnosis.status_per_row(nodes)
        result = self._post_filter(cycle, pod, snapshot, statuses, trace)
        diagnosis = diagnosis.with_post_filter_message(result.status.message)
        return Rejected(pod, diagnosis, diagnosis.fit_error(nodes), cycle, result)

    def _post_filter(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        statuses: NodeToStatus,
        trace: Trace | None,
    ) -> PostFilterResult:
        verdict = PostFilterVerdict()
        for plugin in self.profile.post_filter_plugins:
            result = self._ask_post_filter(cycle, pod, snapshot, statuses, plugin)
            if trace is not None:
                trace.post_filters[plugin.name] = result
            outcome = verdict.add(plugin.name, result)
            if outcome is not None:
                return outcome
        return verdict.outcome()

    def _ask_post_filter(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        statuses: NodeToStatus,
        plugin: PostFilterPlugin,
    ) -> PostFilterResult:
        try:
            return self.profile.ask(
                wording.POST_FILTER, plugin, plugin.post_filter, cycle, pod, snapshot, statuses
            )
        except PluginFailure as failure:
            # A failing PostFilter never changes the outcome of the cycle; it is only reported.
            return PostFilterResult(failure.status)


def select_host(totals: NDArray[np.int64], random: Random) -> int:
    """Return the position of a largest total; ties are drawn."""
    first = int(totals.argmax())
    best = totals == totals.item(first)
    ties = np.count_nonzero(best)
    return first if ties == 1 else _position_of(best, int(random.random() * ties))


def _position_of(mask: NDArray[np.bool_], number: int) -> int:
    """Return where the true entry with that number is; much cheaper than listing them all."""
    start, stop = 0, len(mask)
    while stop - start > _SLICE_ROWS:
        middle = (start + stop) // 2
        before = int(np.count_nonzero(mask[start:middle]))
        if number < before:
            stop = middle
        else:
            start, number = middle, number - before
    return start + int(mask[start:stop].nonzero()[0][number])


def _nothing_left(contributors: list[str]) -> Status:
    if len(contributors) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {contributors[0]}")
    listed = " ".join(sorted(contributors))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")
