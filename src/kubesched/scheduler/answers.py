"""Answers of plugins that a cycle starts with: rejections and total scores of all rows.

Invariants: a known answer equals a fresh one (a property test compares them).
"""

from __future__ import annotations

from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.plugin import FilterPlugin, Scope, ScorePlugin, are_valid_scores
from kubesched.scheduler.first_rejections import FirstRejections
from kubesched.scheduler.plan import Plan, only_adds
from kubesched.scheduler.plugin_failure import check_scores
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.select_host import select_host
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

_FIRST_ROW: Final = np.zeros(1, np.intp)
NOT_FEASIBLE: Final = np.iinfo(np.int64).min


class Answers:
    """The answers of a plan's known plugins; initially empty.

    Attributes:
        plan: Which plugins are known.
        usable: Whether the answers can be used; if not, every plugin must be asked.
        names_nodes: Whether PreFilter restricted a pod with these answers to some nodes. Keeping
            more answers, for all rows, would not pay for such pods.
        rejections: The first rejection per row by a known filter.
        feasible: Bool per row: whether all known filters pass it.
        feasible_count: Number of feasible rows.
        plain: int64 per row, the sum of weighted scores that need no normalizing; NOT_FEASIBLE
            where a known filter rejects the row.
        raw: Plugin name -> int64 per row, the scores that are yet to be normalized.
        normalizing: The plugins of `raw`.
    """

    def __init__(self, profile: Profile, plan: Plan) -> None:
        self._profile = profile
        self.plan = plan
        self._filter_states = plan.states.filter_states
        self._score_states = plan.states.score_states
        self.usable = plan.usable
        self.names_nodes = False
        self.begin(0)

    def begin(self, rows: int) -> None:
        """Drop all answers and start with a table of `rows` rows."""
        self.rejections = FirstRejections.all_passed(rows)
        self.feasible = np.ones(rows, np.bool_)
        self.feasible_count = rows
        self.plain = np.zeros(rows, np.int64)
        self.raw: dict[str, NDArray[np.int64]] = {}
        self.normalizing: list[ScorePlugin[object]] = []

    def copy_from(self, known: Answers) -> None:
        """Copy the answers of `known`; the others keep their values."""
        self.rejections = known.rejections.copy()
        self.feasible = known.feasible.copy()
        self.feasible_count = known.feasible_count
        self.plain = known.plain.copy()
        self.raw = known.raw.copy()
        self.normalizing = known.normalizing.copy()

    def passed_node_filters(self, row: int) -> list[str]:
        """Return the known filters that read only the Node object and were reached and passed."""
        failed_at = self.rejections.failed_at[row]
        return [
            plugin.name
            for position, plugin in self.plan.known_filters
            if plugin.scope is Scope.NODE and position < failed_at
        ]

    def select(self, pod: PodInfo, random: Random) -> int:
        """Return a feasible row with the largest total; ties are broken at random."""
        return select_host(self.totals(pod), random)

    def totals(self, pod: PodInfo) -> NDArray[np.int64]:
        """Return the weighted total of known scores per row; NOT_FEASIBLE where rejected.

        Callers must not write to it.
        """
        return self.totals_where(self.feasible, pod) if self.normalizing else self.plain

    def totals_where(self, feasible: NDArray[np.bool_], pod: PodInfo) -> NDArray[np.int64]:
        """Compute the weighted total per row."""
        totals = np.where(feasible, self.plain, NOT_FEASIBLE)
        if self.normalizing:
            rows = np.flatnonzero(feasible)
            totals[rows] = self.totals_at(rows, pod)
        return totals

    def totals_at(self, rows: NDArray[np.intp], pod: PodInfo) -> NDArray[np.int64]:
        """Compute the weighted totals of `rows`, which are the feasible rows."""
        totals = self.plain[rows]
        for plugin in self.normalizing:
            totals += self._normalized(plugin, pod, self.raw[plugin.name][rows], rows)
        return totals

    # Filling in.

    def add_filters(
        self, filters: list[tuple[int, FilterPlugin[object]]], pod: PodInfo, nodes: NodeTable
    ) -> None:
        """Run filters on all rows.

        Raises PluginFailure if a filter fails on a row that no earlier filter rejects.
        """
        if not filters:
            return
        self.ask_filters(filters, self.rejections, pod, nodes)
        self.feasible = self.rejections.passed
        self.feasible_count = int(np.count_nonzero(self.feasible))

    def ask_filters(
        self,
        filters: list[tuple[int, FilterPlugin[object]]],
        answers: FirstRejections,
        pod: PodInfo,
        nodes: NodeTable,
    ) -> None:
        """Add the results of filters on the rows of `nodes` to `answers`.

        Filters are left out if others before them reject every row. A filter after them, which was
        asked before, does not count. Raises PluginFailure if a filter fails on a row that no
        earlier filter rejects.
        """
        for position, plugin in filters:
            state = self._filter_states.get(plugin.name)
            found = self._profile.ask_filter(plugin, state, pod, nodes)
            is_first = answers.add(position, plugin.name, found)
            if is_first and not np.count_nonzero(answers.failed_at > position):
                return

    def add_score(self, plugin: ScorePlugin[object], raw: NDArray[np.int64]) -> None:
        """Add the raw scores of a plugin for all rows."""
        if plugin.normalizes:
            self.raw[plugin.name] = raw
            self.normalizing.append(plugin)
        else:
            self.check_scores(raw)
            self.plain += raw * self._profile.score_weights[plugin.name]

    def ask_score(
        self, plugin: ScorePlugin[object], pod: PodInfo, nodes: NodeTable
    ) -> NDArray[np.int64]:
        """Return a known plugin's raw score per row of `nodes`."""
        state = self._score_states.get(plugin.name)
        return self._profile.ask_score(plugin, state, pod, nodes)

    def leave_out_infeasible(self) -> None:
        """Finish `plain` after all scores were added."""
        np.putmask(self.plain, ~self.feasible, NOT_FEASIBLE)

    def check_scores(self, raw: NDArray[np.int64]) -> None:
        """Mark the answers unusable if a score that is not normalized is outside 0..100."""
        # An invalid score fails the cycle only if its row is feasible, which a full cycle finds
        # out.
        self.usable &= are_valid_scores(raw)

    def _normalized(
        self,
        plugin: ScorePlugin[object],
        pod: PodInfo,
        raw: NDArray[np.int64],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        """Return the weighted, normalized scores of `rows`, the feasible rows."""
        state = self._score_states.get(plugin.name)
        scores = self._profile.ask(plugin, plugin.normalize_score, state, pod, raw, rows)
        check_scores(plugin.name, scores)
        return scores * self._profile.score_weights[plugin.name]


class NodeAnswers(Answers):
    """The answers of plugins that read only Node objects; many signatures share them."""

    def __init__(self, profile: Profile, plan: Plan) -> None:
        super().__init__(profile, plan)
        self._epoch = -1
        self._of_others = self.plain

    def refresh(self, pod: PodInfo, nodes: NodeColumns) -> None:
        """Recompute if a node was added, changed or deleted.

        Raises PluginFailure if a plugin fails.
        """
        if self._epoch == nodes.epoch:
            return
        self._epoch = -1
        self.usable = self.plan.usable
        self.begin(len(nodes))
        self.add_filters(self.plan.known_filters, pod, nodes)
        for plugin in self.plan.known_scores:
            if only_adds(type(plugin)):
                continue
            raw = self.ask_score(plugin, pod, nodes)
            if plugin.normalizes and len(raw) and raw.min() == raw.max():
                # All rows have the same raw score, so the normalized score is known beforehand.
                one = raw[_FIRST_ROW]
                self.plain += self._normalized(plugin, pod, one, _FIRST_ROW).item(0)
            else:
                self.add_score(plugin, raw)
        self._of_others = self.plain
        self._add_to_others(pod, nodes)

    def alike(self, pod: PodInfo, nodes: NodeColumns) -> NodeAnswers | None:
        """Return the answers for a pod that differs only to `only_adds` plugins.

        No others are asked again. None if these answers are outdated or cannot be used. Raises
        PluginFailure if a plugin fails.
        """
        if self._epoch != nodes.epoch or not self.usable:
            return None
        answers = NodeAnswers(self._profile, self.plan)
        # None of them is written to before the next refresh.
        answers.rejections, answers.feasible = self.rejections, self.feasible
        answers.feasible_count = self.feasible_count
        answers.raw, answers.normalizing = self.raw, self.normalizing
        answers._of_others = self._of_others
        answers._add_to_others(pod, nodes)
        return answers

    def _add_to_others(self, pod: PodInfo, nodes: NodeColumns) -> None:
        """Add the scores of `only_adds` plugins to the totals of the others."""
        self.plain = self._of_others
        for plugin in self.plan.known_scores:
            if only_adds(type(plugin)):
                raw = self.ask_score(plugin, pod, nodes)
                self.check_scores(raw)
                if raw.any():
                    self.plain = self.plain + raw * self._profile.score_weights[plugin.name]
        self.leave_out_infeasible()
        self._epoch = nodes.epoch
