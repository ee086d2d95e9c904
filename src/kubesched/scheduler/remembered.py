"""Remembered holds the answers for pods of one signature, and renews those of rows that changed.

Invariants: a remembered answer equals a fresh one (a property test compares them).
"""

from __future__ import annotations

from collections.abc import Hashable
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.normalize import NODE_SCORE_MAX, NODE_SCORE_MIN
from kubesched.framework.plugin import (
    UNSIGNED,
    FilterPlugin,
    NoState,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Scope,
    ScorePlugin,
)
from kubesched.framework.status import SUCCESS
from kubesched.scheduler import profile as wording
from kubesched.scheduler.best_rows import BestRows
from kubesched.scheduler.missing_states import make_filter_states, make_score_states
from kubesched.scheduler.one_by_one import OneByOne
from kubesched.scheduler.profile import PluginFailure, Profile, failure_of
from kubesched.scheduler.row_answers import PASSED, RowAnswers, StatusTable
from kubesched.snapshot.node_table import NodeColumns, NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_OUTCOMES_MAX: Final = 4096
_ROW_SCOPES: Final = (Scope.ROW, Scope.USAGE)
_RowOutcome = tuple[int, int, tuple[int, ...]]
"""The first filter to reject a row, its status' code, and the scores."""

_FIRST_ROW: Final = np.zeros(1, np.intp)
NOT_FEASIBLE: Final = np.iinfo(np.int64).min


class Remembered:
    """The answers for one signature.

    Attributes:
        usable: Whether remembering works for these pods at all.
        filter_states, skip_filter, score_states, skip_score: As in a cycle, of remembered plugins.
        fresh_pre_filters, fresh_filters, fresh_pre_scores, fresh_scores: Plugins to ask each time.
        fresh_filter_states, fresh_score_states: Plugins to ask for their state each time.
        answers: The first rejection per row, of remembered filters.
        feasible: Bool per row, of remembered filters.
        feasible_count: How many rows are feasible.
    """

    def __init__(self, profile: Profile, pod: PodInfo, snapshot: Snapshot) -> None:
        self._profile = profile
        self.usable = True
        self.filter_states: dict[str, object] = {}
        self.score_states: dict[str, object] = {}
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()
        self.fresh_pre_filters: list[PreFilterPlugin[object]] = []
        self.fresh_filter_states: list[FilterPlugin[object]] = []
        self.fresh_filters: list[tuple[int, FilterPlugin[object]]] = []
        self.fresh_pre_scores: list[PreScorePlugin[object]] = []
        self.fresh_score_states: list[ScorePlugin[object]] = []
        self.fresh_scores: list[ScorePlugin[object]] = []
        self._node_filters: list[tuple[int, FilterPlugin[object]]] = []
        self._row_filters: list[tuple[int, FilterPlugin[object]]] = []
        self._node_scorers: list[ScorePlugin[object]] = []
        self._row_scorers: list[ScorePlugin[object]] = []
        self._normalizers: list[ScorePlugin[object]] = []
        self._normalizing: list[ScorePlugin[object]] = []
        self._plan_filters(pod, snapshot)
        self._plan_scores(pod, snapshot)
        self._reads_usage_only = all(
            filter_.scope is Scope.USAGE for _, filter_ in self._row_filters
        ) and all(
            (scorer.score_scope or scorer.scope) is Scope.USAGE for scorer in self._row_scorers
        )
        self._one_by_one = OneByOne(may_pay=self._reads_usage_only)
        self._outcomes: dict[Hashable, _RowOutcome] = {}
        self._best = BestRows()
        self._epoch = -1
        self._position = 0
        self._asked_all = False

    # The plan: who is asked when. It depends on the signature alone.

    def _plan_filters(self, pod: PodInfo, snapshot: Snapshot) -> None:
        cycle = self.new_cycle()
        for plugin in self._profile.pre_filter_plugins:
            if not _is_remembered(plugin, plugin.scope, pod):
                self.fresh_pre_filters.append(plugin)
                continue
            result = self._profile.ask(
                wording.PRE_FILTER, plugin, plugin.pre_filter, cycle, pod, snapshot
            )
            self.filter_states[plugin.name] = result.state
            if result.status.is_skip:
                self.skip_filter.add(plugin.name)
            elif result.status != SUCCESS or result.node_names is not None:
                self.usable = False
        self._plan_filter_states(cycle, pod, snapshot)
        for position, filter_ in enumerate(self._profile.filter_plugins):
            if filter_.name in self.skip_filter:
                continue
            if not _is_remembered(filter_, filter_.scope, pod):
                self.fresh_filters.append((position, filter_))
            elif filter_.scope in _ROW_SCOPES:
                self._row_filters.append((position, filter_))
            else:
                self._node_filters.append((position, filter_))

    def _plan_filter_states(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> None:
        for plugin in self._profile.filters_without_pre_filter:
            if not _is_remembered(plugin, plugin.scope, pod):
                self.fresh_filter_states.append(plugin)
                continue
            make_filter_states(self._profile, [plugin], cycle, pod, snapshot)
            self.filter_states[plugin.name] = state = cycle.filter_states[plugin.name]
            # Who meets the lack of a state, the plain path finds out.
            self.usable &= not isinstance(state, NoState)

    def _plan_scores(self, pod: PodInfo, snapshot: Snapshot) -> None:
        if not self._profile.score_plugins:
            return
        cycle = self.new_cycle()
        everywhere = np.ones(len(snapshot.nodes), np.bool_)
        for plugin in self._profile.pre_score_plugins:
            if not _is_remembered(plugin, plugin.score_scope or plugin.scope, pod):
                self.fresh_pre_scores.append(plugin)
                continue
            result = self._profile.ask(
                wording.PRE_SCORE, plugin, plugin.pre_score, cycle, pod, snapshot, everywhere
            )
            self.score_states[plugin.name] = result.state
            if result.status.is_skip:
                self.skip_score.add(plugin.name)
            elif result.status != SUCCESS:
                self.usable = False
        self._plan_score_states(cycle, pod, snapshot, everywhere)
        for score in self._profile.score_plugins:
            scope = score.score_scope or score.scope
            if score.name in self.skip_score:
                continue
            if not _is_remembered(score, scope, pod):
                self.fresh_scores.append(score)
                continue
            (self._row_scorers if scope in _ROW_SCOPES else self._node_scorers).append(score)
            if score.normalizes:
                self._normalizers.append(score)

    def _plan_score_states(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, everywhere: NDArray[np.bool_]
    ) -> None:
        for plugin in self._profile.scores_without_pre_score:
            if not _is_remembered(plugin, plugin.score_scope or plugin.scope, pod):
                self.fresh_score_states.append(plugin)
                continue
            make_score_states(self._profile, [plugin], cycle, pod, snapshot, everywhere)
            self.score_states[plugin.name] = state = cycle.score_states[plugin.name]
            self.usable &= not isinstance(state, NoState)

    def new_cycle(self) -> CycleState:
        """Return a cycle that knows what remembered plugins know."""
        return CycleState.of(
            self.filter_states.copy(),
            self.score_states.copy(),
            self.skip_filter.copy(),
            self.skip_score.copy(),
        )

    # The answers.

    def refresh(self, pod: PodInfo, nodes: NodeColumns) -> None:
        """Renew the answers of the rows that changed since the last time."""
        try:
            self._catch_up(pod, nodes)
        except PluginFailure:
            # Half of the answers may be renewed: begin anew the next time.
            self._epoch = -1
            raise

    def were_kept(self) -> bool:
        """Return whether no `refresh` since the last call had to ask about all rows."""
        kept, self._asked_all = not self._asked_all, False
        return kept

    def _catch_up(self, pod: PodInfo, nodes: NodeColumns) -> None:
        if self._epoch != nodes.epoch:
            self._ask_all(pod, nodes)
            return
        start = self._position - nodes.changes_dropped
        if start < 0:
            self._ask_all(pod, nodes)
            return
        changes = nodes.changes[start:]
        if not changes:
            return
        rows = sorted(set(changes))
        if 4 * len(rows) > len(nodes):
            self._ask_all(pod, nodes)
            return
        self._position += len(changes)
        if len(rows) == 1:
            self._ask_row(pod, nodes, rows[0])
        elif self._one_by_one.pays(len(rows)):
            states = len(self._outcomes)
            for row in rows:
                self._ask_row(pod, nodes, row)
            self._one_by_one.was_done(len(rows), len(self._outcomes) - states)
        else:
            self._ask_rows(pod, nodes, np.array(rows, np.intp))

    def _ask_all(self, pod: PodInfo, nodes: NodeColumns) -> None:
        self._asked_all = True
        self._epoch = nodes.epoch
        self._position = nodes.changes_dropped + len(nodes.changes)
        rows = len(nodes)
        self._table = StatusTable()
        self._by_node = RowAnswers.nothing_asked(rows, self._table)
        self._ask_filters(self._node_filters, self._by_node, pod, nodes)
        self.answers = self._by_node.copy()
        self._ask_filters(self._row_filters, self.answers, pod, nodes)
        self.feasible = self.answers.passed
        self.feasible_count = int(np.count_nonzero(self.feasible))
        self._raw: dict[str, NDArray[np.int64]] = {}
        self._plain = np.zeros(rows, np.int64)
        for plugin in (*self._node_scorers, *self._row_scorers):
            # A copy, because rows are renewed in place and a plugin may hand out its own column.
            self._raw[plugin.name] = raw = self._score(plugin, pod, nodes).copy()
            if not plugin.normalizes:
                self._check(raw)
                self._plain += raw * self._profile.score_weights[plugin.name]
        self._normalizing = [p for p in self._normalizers if not self._is_settled(p, pod)]
        self._row_scores = [
            (plugin, self._profile.score_weights[plugin.name], self._raw[plugin.name])
            for plugin in self._row_scorers
        ]
        self._outcomes.clear()
        self._masked: NDArray[np.int64] | None = None
        self._feasible_rows: NDArray[np.intp] | None = None

    def _is_settled(self, plugin: ScorePlugin[object], pod: PodInfo) -> bool:
        """Whether all rows rate the same for good, so that what it adds is known beforehand."""
        raw = self._raw[plugin.name]
        if plugin in self._row_scorers or not len(raw) or raw.min() != raw.max():
            return False
        self._plain += self._normalized(plugin, pod, _FIRST_ROW).item(0)
        return True

    def _ask_row(self, pod: PodInfo, nodes: NodeColumns, row: int) -> None:
        """Renew one row: what binding a pod leaves to do, so without arrays."""
        failed_at, code, scores = self._answers_for(pod, nodes, row)
        failed_before = self._by_node.failed_at.item(row)
        if failed_before < failed_at:
            failed_at, code = failed_before, self._by_node.index.item(row)
        was_feasible = self.feasible.item(row)
        if was_feasible != (failed_at == PASSED):
            self._masked = self._feasible_rows = None
            self.feasible[row] = not was_feasible
            self.feasible_count += -1 if was_feasible else 1
        self.answers.failed_at[row] = failed_at
        self.answers.index[row] = code
        for (scorer, weight, raw), score in zip(self._row_scores, scores, strict=True):
            known = raw.item(row)
            if score != known:
                raw[row] = score
                self._gain(scorer, row, weight * (score - known), score)
        if self._masked is not None:
            self._best.changed(self._masked, row)

    def _answers_for(self, pod: PodInfo, nodes: NodeColumns, row: int) -> _RowOutcome:
        """Return what the plugins that look at pods say of a row."""
        if not self._reads_usage_only:
            return self._ask_about(pod, nodes.row_view(row))
        # Rows that offer and have given away the same are the same to these plugins, and most
        # rows have been in this state before.
        usage = nodes.usage(row)
        outcome = self._outcomes.get(usage)
        if outcome is None:
            if len(self._outcomes) >= _OUTCOMES_MAX:
                self._outcomes.clear()
            outcome = self._outcomes[usage] = self._ask_about(pod, nodes.row_view(row))
        return outcome

    def _ask_about(self, pod: PodInfo, view: NodeTable) -> _RowOutcome:
        failed_at, code = self._filter_row(pod, view)
        scores: list[int] = []
        for scorer in self._row_scorers:
            state = self.score_states.get(scorer.name)
            try:
                scores.append(scorer.score(state, pod, view).item(0))
            except Exception as error:
                failed = self._profile.raised
                raise failed(wording.SCORE, scorer, scorer.score, pod.key, error) from error
        return failed_at, code, tuple(scores)

    def _filter_row(self, pod: PodInfo, view: NodeTable) -> tuple[int, int]:
        """Return the first filter that rejects the row, and the code of its status."""
        for position, plugin in self._row_filters:
            state = self.filter_states.get(plugin.name)
            try:
                found = plugin.filter(state, pod, view)
            except Exception as error:
                failed = self._profile.raised
                raise failed(wording.FILTER, plugin, plugin.filter, pod.key, error) from error
            if found.index.item(0):
                status = found[0]
                if not status.is_rejected:
                    raise PluginFailure(failure_of(wording.FILTER, plugin.name, status.message))
                return position, self._table.code(status.by(plugin.name))
        return PASSED, 0

    def _gain(self, plugin: ScorePlugin[object], row: int, gain: int, score: int) -> None:
        if plugin.normalizes:
            self._masked = None
            return
        if not NODE_SCORE_MIN <= score <= NODE_SCORE_MAX:
            self.usable = False
        self._plain[row] += gain
        if self._masked is not None and self.feasible.item(row):
            self._masked[row] += gain

    def _ask_rows(self, pod: PodInfo, nodes: NodeColumns, rows: NDArray[np.intp]) -> None:
        some = nodes.take(rows)
        found = RowAnswers(self._by_node.failed_at[rows], self._by_node.index[rows], self._table)
        self._ask_filters(self._row_filters, found, pod, some)
        self.answers.failed_at[rows] = found.failed_at
        self.answers.index[rows] = found.index
        self.feasible[rows] = found.failed_at == PASSED
        self.feasible_count = int(np.count_nonzero(self.feasible))
        for plugin, weight, raw in self._row_scores:
            scores = self._score(plugin, pod, some)
            if not plugin.normalizes:
                self._check(scores)
                self._plain[rows] += weight * (scores - raw[rows])
            raw[rows] = scores
        self._masked = self._feasible_rows = None

    def _ask_filters(
        self,
        filters: list[tuple[int, FilterPlugin[object]]],
        answers: RowAnswers,
        pod: PodInfo,
        nodes: NodeTable,
    ) -> None:
        for position, plugin in filters:
            state = self.filter_states.get(plugin.name)
            found = self._profile.ask_filter(plugin, state, pod, nodes)
            if answers.add(position, plugin.name, found):
                wording.raise_failures(answers, found, position, plugin.name)

    def _score(
        self, plugin: ScorePlugin[object], pod: PodInfo, nodes: NodeTable
    ) -> NDArray[np.int64]:
        state = self.score_states.get(plugin.name)
        return self._profile.ask_score(plugin, state, pod, nodes)

    def _check(self, raw: NDArray[np.int64]) -> None:
        # An invalid score fails the cycle only if its row is feasible: let the plain path decide.
        if raw.min(initial=0) < NODE_SCORE_MIN or raw.max(initial=0) > NODE_SCORE_MAX:
            self.usable = False

    # The totals.

    @property
    def feasible_rows(self) -> NDArray[np.intp]:
        """The rows that remembered filters pass, in ascending order."""
        if self._feasible_rows is None:
            self._feasible_rows = np.flatnonzero(self.feasible)
        return self._feasible_rows

    def masked_totals(self, pod: PodInfo) -> NDArray[np.int64]:
        """Return the weighted total per row, of remembered plugins; NOT_FEASIBLE where rejected."""
        if self._masked is None:
            self._masked = self.totals_where(self.feasible, pod)
        return self._masked

    def select(self, pod: PodInfo, random: Random) -> int:
        """Return a row with the largest of the masked totals; ties are drawn."""
        return self._best.select(self.masked_totals(pod), random)

    def totals_where(self, feasible: NDArray[np.bool_], pod: PodInfo) -> NDArray[np.int64]:
        """Return the same for other feasible rows."""
        totals = np.where(feasible, self._plain, NOT_FEASIBLE)
        if self._normalizing:
            rows = np.flatnonzero(feasible)
            for plugin in self._normalizing:
                totals[rows] += self._normalized(plugin, pod, rows)
        return totals

    def _normalized(
        self, plugin: ScorePlugin[object], pod: PodInfo, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Return what a plugin adds to `rows`, which are all that is feasible."""
        state = self.score_states.get(plugin.name)
        scores = self._profile.ask(
            wording.NORMALIZE,
            plugin,
            plugin.normalize_score,
            state,
            pod,
            self._raw[plugin.name][rows],
            rows,
        )
        wording.check_scores(plugin.name, scores)
        return scores * self._profile.score_weights[plugin.name]


def _is_remembered(plugin: Plugin, scope: Scope, pod: PodInfo) -> bool:
    return scope is not Scope.CLUSTER and plugin.sign(pod) is not UNSIGNED
