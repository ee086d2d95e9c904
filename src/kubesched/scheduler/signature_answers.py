"""SignatureAnswers holds the answers for pods of one signature and updates the rows that changed.

Invariants: a remembered answer equals a fresh one (a property test compares them).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.plugin import (
    NODE_SCORE_MAX,
    NODE_SCORE_MIN,
    FilterPlugin,
    Scope,
    ScorePlugin,
)
from kubesched.scheduler.answers import NOT_FEASIBLE, Answers, NodeAnswers
from kubesched.scheduler.first_rejections import PASSED, FirstRejections
from kubesched.scheduler.plan import ROW_SCOPES, Plan
from kubesched.scheduler.plugin_failure import PluginFailure, failed_with
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.select_host import BestRows
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

_OUTCOMES_MAX: Final = 1024
_ROWS_FEW: Final = 256
"""Up to this number of rows, it pays to look for repeated ones, and to score rejected ones too."""
_ONE_BY_ONE_MAX: Final = 12
"""Up to this number of rows, Python numbers are faster than arrays."""
_RowOutcome = tuple[int, int, int, tuple[int, ...]]
"""The position of the first filter that rejects the row, its status code, the sum of weighted
scores, and the raw scores of plugins that normalize; a rejected row has no scores."""


class SignatureAnswers(Answers):
    """The answers for one signature."""

    def __init__(self, profile: Profile, plan: Plan, node_answers: NodeAnswers) -> None:
        """Set up with a plan that knows plugins of scopes node and row.

        `node_answers` are those of scope node, which many signatures share.
        """
        super().__init__(profile, plan)
        self._node_answers = node_answers
        self._row_filters = [pair for pair in plan.known_filters if pair[1].scope in ROW_SCOPES]
        self._first_position = min([at for at, _ in self._row_filters], default=PASSED)
        self._row_scores = [
            score for score in plan.known_scores if (score.score_scope or score.scope) in ROW_SCOPES
        ]
        self._weighted = [
            (score, profile.score_weights[score.name])
            for score in self._row_scores
            if not score.normalizes
        ]
        self._normalizing = [score for score in self._row_scores if score.normalizes]
        scopes = [filter_.scope for _, filter_ in self._row_filters]
        scopes += [score.score_scope or score.scope for score in self._row_scores]
        self._reads_usage_only = all(scope is Scope.USAGE for scope in scopes)
        self._with_normalized: NDArray[np.int64] | None = None
        self._one_by_one_max = _ONE_BY_ONE_MAX if self._answers_rows() else 1
        self._outcomes: dict[Hashable, _RowOutcome] = {}
        self._best = BestRows()
        self._changed: ChangeReader[int] = ChangeReader()

    def _answers_rows(self) -> bool:
        """Whether all plugins answer for a row without arrays."""
        filters = [type(plugin).filter_row for _, plugin in self._row_filters]
        scores = [type(plugin).score_row for plugin in self._row_scores]
        return FilterPlugin.filter_row not in filters and ScorePlugin.score_row not in scores

    # The answers.

    def refresh(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        """Update the rows that changed; return whether all rows had to be recomputed.

        Raises PluginFailure if a plugin fails.
        """
        try:
            return self._catch_up(pod, nodes)
        except PluginFailure:
            # Some rows may be updated and others not: recompute all next time.
            self._changed.forget()
            raise

    def _catch_up(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        rows = self._rows_to_ask(nodes)
        if rows is None:
            self._ask_all(pod, nodes)
            return True
        if len(rows) <= self._one_by_one_max:
            for row in rows:
                self._ask_row(pod, nodes, row)
        else:
            self._ask_rows(pod, nodes, np.array(rows, np.intp))
        return False

    def _rows_to_ask(self, nodes: NodeColumns) -> Sequence[int] | None:
        """Return the rows that changed; None if it is cheaper to ask about all."""
        changed = self._changed.read(nodes.changes)
        if changed is None:
            return None
        few = len(nodes) // 4
        if _ROWS_FEW < len(changed) <= few:
            # It is cheaper to ask about a row twice than to find out that it is listed twice.
            return changed
        if len(changed) <= _ROWS_FEW:
            rows = [*dict.fromkeys(changed)]
        else:
            mask = np.zeros(len(nodes), np.bool_)
            mask[changed] = True
            rows = np.flatnonzero(mask).tolist()
        return rows if len(rows) <= few else None

    def _ask_all(self, pod: PodInfo, nodes: NodeColumns) -> None:
        known = self._node_answers
        known.refresh(pod, nodes)
        self._outcomes.clear()
        self._with_normalized = None
        self.copy_from(known)
        self.usable = self.plan.usable and known.usable
        self.add_filters(self._row_filters, pod, nodes)
        for plugin in self._row_scores:
            raw = self.ask_score(plugin, pod, nodes)
            # A copy, because rows are updated in place and a plugin may return its own column.
            self.add_score(plugin, raw.copy() if plugin.normalizes else raw)
        self.leave_out_infeasible()

    def _ask_row(self, pod: PodInfo, nodes: NodeColumns, row: int) -> None:
        """Update one row, the usual case after binding a pod, without arrays."""
        known = self._node_answers
        failed_before = known.rejections.failed_at.item(row)
        if failed_before < self._first_position:
            # Whatever pods the node has, an earlier filter rejects it.
            return
        failed_at, code, gained, raw = self._answers_for(pod, nodes, row)
        if failed_before < failed_at:
            failed_at, code = failed_before, known.rejections.index.item(row)
        passes, passed = failed_at == PASSED, self.feasible.item(row)
        self.rejections.failed_at[row] = failed_at
        self.rejections.index[row] = code
        before = self.plain.item(row)
        after = known.plain.item(row) + gained if passes else NOT_FEASIBLE
        if after != before:
            self.plain[row] = after
            self._best.changed(self.plain, row, before, after)
        if passes != passed:
            self.feasible[row] = passes
            self.feasible_count += 1 if passes else -1
            self._with_normalized = None
        elif self._with_normalized is not None and after != before:
            known_total = self._with_normalized.item(row)
            total = known_total + after - before
            self._with_normalized[row] = total
            self._best.changed(self._with_normalized, row, known_total, total)
        for plugin, score in zip(self._normalizing, raw, strict=False):
            if self.raw[plugin.name].item(row) != score:
                self.raw[plugin.name][row] = score
                self._with_normalized = None

    def _answers_for(self, pod: PodInfo, nodes: NodeColumns, row: int) -> _RowOutcome:
        """Return the outcome of row-scoped plugins for a row."""
        if not self._reads_usage_only:
            return self._ask_about(pod, nodes, row)
        # To these plugins, rows with equal allocatable and requested resources are equal, and most
        # rows have been in such a state before.
        usage = nodes.usage(row)
        outcome = self._outcomes.get(usage)
        if outcome is None:
            if len(self._outcomes) >= _OUTCOMES_MAX:
                self._outcomes.clear()
            outcome = self._outcomes[usage] = self._ask_about(pod, nodes, row)
        return outcome

    def _ask_about(self, pod: PodInfo, nodes: NodeColumns, row: int) -> _RowOutcome:
        failed_at, code = self._filter_row(pod, nodes, row)
        if failed_at != PASSED:
            return failed_at, code, 0, ()
        gained = 0
        for plugin, weight in self._weighted:
            score = self._score_row(plugin, pod, nodes, row)
            if not NODE_SCORE_MIN <= score <= NODE_SCORE_MAX:
                # The sum, which no cycle uses, may not fit into 64 bits.
                self.usable = False
                continue
            gained += weight * score
        raw = tuple([self._score_row(plugin, pod, nodes, row) for plugin in self._normalizing])
        return failed_at, code, gained, raw

    def _filter_row(self, pod: PodInfo, nodes: NodeColumns, row: int) -> tuple[int, int]:
        """Return the position of the first filter that rejects the row, and its status code."""
        for position, plugin in self._row_filters:
            state = self._filter_states.get(plugin.name)
            status = self._profile.ask(plugin, plugin.filter_row, state, pod, nodes, row)
            if not status.is_success:
                if not status.is_rejected:
                    raise PluginFailure(failed_with("filter", plugin.name, status))
                return position, self.rejections.code(status.by(plugin.name))
        return PASSED, 0

    def _score_row(
        self, plugin: ScorePlugin[object], pod: PodInfo, nodes: NodeColumns, row: int
    ) -> int:
        state = self._score_states.get(plugin.name)
        return self._profile.ask(plugin, plugin.score_row, state, pod, nodes, row)

    def _ask_rows(self, pod: PodInfo, nodes: NodeColumns, rows: NDArray[np.intp]) -> None:
        some = nodes.take(rows)
        found = self._node_answers.rejections.take(rows)
        self.ask_filters(self._row_filters, found, pod, some)
        passes = found.passed
        count = np.count_nonzero(passes)
        if count < len(rows) or np.count_nonzero(self.feasible[rows]) < len(rows):
            # Mostly no row was rejected and none is.
            self._write_rejections(rows, found, passes)
        if count < len(rows) and len(rows) > _ROWS_FEW:
            self.plain[rows] = NOT_FEASIBLE
            rows, passes = rows[passes], passes[passes]
            some = nodes.take(rows)
        if count:
            self._score_rows(pod, some, rows)
        if count < len(rows):
            self.plain[rows[~passes]] = NOT_FEASIBLE
        self._with_normalized = None
        self._best.forget()

    def _write_rejections(
        self, rows: NDArray[np.intp], found: FirstRejections, passes: NDArray[np.bool_]
    ) -> None:
        self.rejections.failed_at[rows] = found.failed_at
        self.rejections.index[rows] = found.index
        if np.count_nonzero(passes != self.feasible[rows]):
            self.feasible[rows] = passes
            self.feasible_count = int(np.count_nonzero(self.feasible))

    def _score_rows(self, pod: PodInfo, some: NodeTable, rows: NDArray[np.intp]) -> None:
        """Update the scores of rows; `some` is the table of these rows."""
        totals = self._node_answers.plain[rows]
        for plugin, weight in self._weighted:
            scores = self.ask_score(plugin, pod, some)
            self.check_scores(scores)
            totals += scores if weight == 1 else weight * scores
        for plugin in self._normalizing:
            self.raw[plugin.name][rows] = self.ask_score(plugin, pod, some)
        self.plain[rows] = totals

    # The totals.

    def totals(self, pod: PodInfo) -> NDArray[np.int64]:
        """Return the weighted total per row; callers must not write to it."""
        if not self.normalizing:
            return self.plain
        if self._with_normalized is None:
            self._with_normalized = self.totals_where(self.feasible, pod)
        return self._with_normalized

    def select(self, pod: PodInfo, random: Random) -> int:
        """Return a feasible row with the largest total; ties are broken at random."""
        return self._best.select(self.totals(pod), random)
