"""RememberedCycle takes the short way through a cycle: remembered answers, and only the rest asked.

It decides what `cycle` decides, or leaves the decision to it.

Upstream: nothing like it; the decisions are those of pkg/scheduler/schedule_one.go (v1.36)
Invariants: a decision made here equals the one the plain path makes (a property test compares).
Differs:  nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import ScorePlugin
from kubesched.scheduler import profile as wording
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.scheduler.memory import Memory
from kubesched.scheduler.missing_states import make_filter_states, make_score_states
from kubesched.scheduler.nominated import ask_with_nominated
from kubesched.scheduler.phase_timer import FILTER, PRE_FILTER, PRE_SCORE, SCORE, PhaseTimer
from kubesched.scheduler.profile import PluginFailure, Profile, relevant_nominated_pods
from kubesched.scheduler.rejecting import Rejecting
from kubesched.scheduler.remembered import Remembered
from kubesched.scheduler.row_answers import RowAnswers
from kubesched.scheduler.sampling import feasible_nodes_to_find
from kubesched.scheduler.scoring import Scoring, select_host
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class RememberedCycle:
    """Schedules pods whose siblings have been scheduled before."""

    def __init__(self, profile: Profile, scoring: Scoring, rejecting: Rejecting) -> None:
        self._profile = profile
        self._scoring = scoring
        self._rejecting = rejecting
        self._memory = Memory(profile)

    def schedule_one(self, pod: PodInfo, snapshot: Snapshot) -> Decision | None:
        """Decide from remembered answers; None where the plain path must tell the story."""
        timer = self._profile.timer
        if timer is not None:
            return self._schedule_timed(pod, snapshot, timer)
        try:
            remembered = self._recall(pod, snapshot)
            return None if remembered is None else self._schedule(pod, snapshot, remembered, 0.0)
        except PluginFailure:
            # Remembered plugins are asked about more rows than they would be: whether somebody
            # had met this failure, only the plain path knows.
            return None

    def _schedule_timed(
        self, pod: PodInfo, snapshot: Snapshot, timer: PhaseTimer
    ) -> Decision | None:
        began = timer.now()
        remembered: Remembered | None = None
        decision: Decision | None = None
        is_hinted = False
        try:
            try:
                remembered = self._recall(pod, snapshot)
            finally:
                recalled = timer.now() - began
                is_hinted = remembered is not None and remembered.were_kept()
                timer.got_node_hint(recalled, is_hinted=is_hinted)
            if remembered is not None:
                # Renewing what is remembered, filters and scores, counts as filtering.
                decision = self._schedule(pod, snapshot, remembered, recalled)
        except PluginFailure:
            # As above.
            decision = None
        if decision is None and is_hinted:
            timer.hint_not_used()
        return decision

    def _recall(self, pod: PodInfo, snapshot: Snapshot) -> Remembered | None:
        if pod.pod.status.nominated_node_name:
            return None
        percentage = self._profile.percentage_of_nodes_to_score
        if feasible_nodes_to_find(len(snapshot.nodes), percentage) < len(snapshot.nodes):
            return None
        return self._memory.recall(pod, snapshot)

    def _schedule(
        self, pod: PodInfo, snapshot: Snapshot, remembered: Remembered, recalled_seconds: float
    ) -> Decision | None:
        """Decide from remembered answers; None where the plain path must tell the story."""
        cycle = remembered.new_cycle()
        timer = self._profile.timer
        if timer is not None:
            timer.enter(PRE_FILTER)
        if not self._pre_filter(cycle, pod, snapshot, remembered):
            return None
        make_filter_states(self._profile, remembered.fresh_filter_states, cycle, pod, snapshot)
        if timer is not None:
            timer.leave()
            timer.enter(FILTER, recalled_seconds)
        fewer, answers = self._feasible(cycle, pod, snapshot, remembered)
        if fewer is None:
            feasible, count = remembered.feasible, remembered.feasible_count
        else:
            feasible, count = fewer, int(np.count_nonzero(fewer))
        if timer is not None:
            timer.leave()
        nodes = snapshot.nodes
        if count == 0:
            answers = answers or self._answers(cycle, pod, snapshot, remembered)
            return self._reject(cycle, pod, snapshot, answers)
        if count == 1:
            row = int(feasible.argmax())
        else:
            row = self._prioritize(cycle, pod, snapshot, remembered, fewer, count)
        if timer is not None:
            timer.pre_filtered(cycle)
            if answers is None and remembered.feasible_count == len(nodes):
                timer.all_passed(cycle, len(nodes))
            else:
                timer.filtered(cycle, (answers or remembered.answers).failed_at)
        return Placed(pod, nodes.names[row], row, cycle, count, len(nodes))

    def _pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, remembered: Remembered
    ) -> bool:
        """Ask what is not remembered; return whether the plugins let the pod and all nodes pass."""
        for plugin in remembered.fresh_pre_filters:
            result = self._profile.ask(
                wording.PRE_FILTER, plugin, plugin.pre_filter, cycle, pod, snapshot
            )
            cycle.filter_states[plugin.name] = result.state
            if result.status.is_skip:
                cycle.skip_filter.add(plugin.name)
            elif not result.status.is_success or result.node_names is not None:
                return False
        return True

    def _reject(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, answers: RowAnswers
    ) -> Rejected:
        if self._profile.timer is not None:
            self._profile.timer.pre_filtered(cycle)
            self._profile.timer.filtered(cycle, answers.failed_at)
        statuses = answers.copy().statuses()
        diagnosis = Diagnosis.of_filter(tuple(snapshot.nodes.names), statuses)
        return self._rejecting.reject(cycle, pod, snapshot, diagnosis)

    def _feasible(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, remembered: Remembered
    ) -> tuple[NDArray[np.bool_] | None, RowAnswers | None]:
        """Return bool per row: whether it is feasible; None if the remembered rows are the ones.

        Who rejected a row, and why, does not matter as long as some row is feasible. Where that is
        known nevertheless, it comes second.
        """
        asked = [
            plugin for _, plugin in remembered.fresh_filters if plugin.name not in cycle.skip_filter
        ]
        if not asked and not snapshot.nominated:
            return None, None
        if snapshot.nominated or any(plugin.survivors_only for plugin in asked):
            return self._known(remembered, self._answers(cycle, pod, snapshot, remembered))
        feasible: NDArray[np.bool_] | None = None
        for plugin in asked:
            state = cycle.filter_states.get(plugin.name)
            found = self._profile.ask_filter(plugin, state, pod, snapshot.nodes)
            if not all(status.is_rejected for status in found.statuses[1:]):
                return self._known(remembered, self._answers(cycle, pod, snapshot, remembered))
            if found.index.any():
                passed = found.passed
                feasible = passed & (remembered.feasible if feasible is None else feasible)
        return feasible, None

    @staticmethod
    def _known(
        remembered: Remembered, answers: RowAnswers
    ) -> tuple[NDArray[np.bool_] | None, RowAnswers]:
        return None if answers is remembered.answers else answers.passed, answers

    def _answers(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, remembered: Remembered
    ) -> RowAnswers:
        """Ask what is not remembered; return the remembered answers if that changes nothing."""
        answers: RowAnswers | None = None
        changed = False
        for position, plugin in remembered.fresh_filters:
            if plugin.name not in cycle.skip_filter:
                answers = answers or remembered.answers.copy()
                changed |= self._profile.add_filter(
                    answers, position, plugin, cycle, pod, snapshot.nodes
                )
        if snapshot.nominated:
            for name in snapshot.nominated.node_names():
                row = snapshot.nodes.row_of.get(name)
                nominated = relevant_nominated_pods(pod, snapshot, name)
                if row is not None and nominated:
                    answers = answers or remembered.answers.copy()
                    ask_with_nominated(
                        self._profile, nominated, cycle, pod, snapshot.nodes, row, answers
                    )
                    changed = True
        return answers if changed and answers is not None else remembered.answers

    def _prioritize(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        remembered: Remembered,
        feasible: NDArray[np.bool_] | None,
        count: int,
    ) -> int:
        """Return a row of the largest total; ties are drawn.

        `feasible`, with `count` rows, is None where the remembered rows are the ones.
        """
        timer = self._profile.timer if self._profile.score_plugins else None
        if timer is not None:
            timer.enter(PRE_SCORE)
        mask = remembered.feasible if feasible is None else feasible
        for plugin in remembered.fresh_pre_scores:
            self._scoring.ask_pre_score(cycle, pod, snapshot, mask, plugin, None)
        make_score_states(self._profile, remembered.fresh_score_states, cycle, pod, snapshot, mask)
        if timer is not None:
            timer.leave()
            timer.enter(SCORE)
        scores = [p for p in remembered.fresh_scores if p.name not in cycle.skip_score]
        if feasible is None and not scores:
            row = remembered.select(pod, self._profile.random)
        else:
            totals = self._totals(cycle, pod, snapshot, remembered, feasible, scores)
            row = select_host(totals, self._profile.random)
        if timer is not None:
            timer.leave()
            timer.pre_scored(cycle)
            timer.scored(cycle, count)
        return row

    def _totals(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        remembered: Remembered,
        feasible: NDArray[np.bool_] | None,
        scores: list[ScorePlugin[object]],
    ) -> NDArray[np.int64]:
        """Return the total per row, with what the plugins of `scores` add."""
        if feasible is None:
            totals, rows = remembered.masked_totals(pod).copy(), remembered.feasible_rows
        else:
            totals = remembered.totals_where(feasible, pod)
            if not scores:
                return totals
            rows = np.flatnonzero(feasible)
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
        raw = self._scoring.ask_score(cycle, pod, some, score)
        known = raw if len(raw) == len(rows) else raw[rows]
        scores = self._scoring.normalize(cycle, pod, score, known, rows)
        wording.check_scores(score.name, scores)
        return scores * self._scoring.weight(score)
