"""Scoring chooses among the feasible rows: pre_score, score, normalize, weigh, add, choose.

Upstream: pkg/scheduler/schedule_one.go, prioritizeNodes; framework/runtime, RunScorePlugins (v1.36)
Differs:  ties are broken with the run's seed; upstream takes the first that its parallel search
          happened to find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PreScorePlugin, ScorePlugin
from kubesched.scheduler import plugin_failure as failures
from kubesched.scheduler.answers import Answers
from kubesched.scheduler.phase_timer import PRE_SCORE, SCORE
from kubesched.scheduler.plugin_failure import PluginFailure, failure_of
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.select_host import select_host
from kubesched.scheduler.trace import ScoreTrace, Trace
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class Scoring:
    """The PreScore and Score plugins of a profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def choose(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        known: Answers,
        feasible: NDArray[np.bool_] | None,
        count: int,
        trace: Trace | None,
    ) -> int:
        """Return a row with the largest total; ties are broken at random.

        `feasible` has `count` rows; None stands for the rows known to be feasible.
        """
        if not self._profile.score_plugins:
            if trace is not None:
                trace.totals = np.ones(count, np.int64)
            return select_host(known.mutable_totals(feasible, pod), self._profile.random)
        timer, plan = self._profile.timer, known.plan
        timer.enter(PRE_SCORE)
        mask = known.feasible if feasible is None else feasible
        for plugin in plan.pre_scores:
            self._ask_pre_score(cycle, pod, snapshot, mask, plugin, trace)
        if plan.score_states_to_make:
            self._profile.make_score_states(plan.score_states_to_make, cycle, pod, snapshot, mask)
        timer.leave()
        timer.pre_scored(cycle)
        timer.scored(cycle, count)
        timer.enter(SCORE)
        plugins = [plugin for plugin in plan.scores if plugin.name not in cycle.skip_score]
        if feasible is None and not plugins and trace is None:
            row = known.select(pod, self._profile.random)
        else:
            totals = known.mutable_totals(feasible, pod)
            if plan.knows_any and trace is None:
                plugins = self._add_plain_scores(totals, plugins, cycle, pod, snapshot.nodes)
            if plugins:
                rows = known.feasible_rows if feasible is None else np.flatnonzero(feasible)
                self._add_scores(totals, plugins, cycle, pod, snapshot, rows, plan.knows_any, trace)
            row = select_host(totals, self._profile.random)
            if trace is not None:
                trace.totals = totals[mask]
        timer.leave()
        return row

    def _add_plain_scores(
        self,
        totals: NDArray[np.int64],
        plugins: Sequence[ScorePlugin[object]],
        cycle: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
    ) -> list[ScorePlugin[object]]:
        """Add the scores of plugins that do not normalize, and return the other plugins.

        They score all rows, which is cheaper than selecting the feasible ones. The totals of other
        rows stay far below.

        Raises:
            PluginFailure: if a plugin fails on any row, so that the cycle has to ask every plugin.
        """
        others: list[ScorePlugin[object]] = []
        for plugin in plugins:
            if plugin.normalizes or plugin.survivors_only:
                others.append(plugin)
                continue
            scores = self._ask_score(cycle, pod, nodes, plugin)
            failures.check_scores(plugin.name, scores)
            weight = self._profile.score_weights[plugin.name]
            totals += scores if weight == 1 else scores * weight
        return others

    def _add_scores(
        self,
        totals: NDArray[np.int64],
        plugins: list[ScorePlugin[object]],
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        asks_everywhere: bool,
        trace: Trace | None,
    ) -> None:
        """Add the scores of plugins for the feasible rows to `totals`.

        With `asks_everywhere` plugins may score all rows: cheaper than selecting some.
        """
        nodes: NodeTable = snapshot.nodes
        every = len(rows) == len(nodes)
        feasible = nodes if every else nodes.take(rows)

        def ask(plugin: ScorePlugin[object]) -> NDArray[np.int64]:
            if every or not asks_everywhere or plugin.survivors_only:
                return self._ask_score(cycle, pod, feasible, plugin)
            return self._ask_score(cycle, pod, nodes, plugin).take(rows)

        gains = self._ask_scores(plugins, ask, cycle, pod, rows, trace)
        if every:
            totals += gains
        else:
            totals[rows] += gains

    def score(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        nodes: NodeTable,
    ) -> NDArray[np.int64]:
        """Return the totals of all plugins for `nodes`, the table of the feasible rows."""
        timer = self._profile.timer
        timer.enter(PRE_SCORE)
        feasible = np.zeros(len(snapshot.nodes), np.bool_)
        feasible[rows] = True
        for plugin in self._profile.pre_score_plugins:
            self._ask_pre_score(cycle, pod, snapshot, feasible, plugin, None)
        self._profile.make_score_states(
            self._profile.scores_without_pre_score, cycle, pod, snapshot, feasible
        )
        timer.leave()
        timer.pre_scored(cycle)
        timer.scored(cycle, len(rows))
        timer.enter(SCORE)
        plugins = [p for p in self._profile.score_plugins if p.name not in cycle.skip_score]
        totals = self._ask_scores(
            plugins, lambda p: self._ask_score(cycle, pod, nodes, p), cycle, pod, rows, None
        )
        timer.leave()
        return totals

    def _ask_scores(
        self,
        plugins: Sequence[ScorePlugin[object]],
        ask: Callable[[ScorePlugin[object]], NDArray[np.int64]],
        cycle: CycleState,
        pod: PodInfo,
        rows: NDArray[np.intp],
        trace: Trace | None,
    ) -> NDArray[np.int64]:
        """Return the sum of the weighted, normalized scores per feasible row."""
        totals: NDArray[np.int64] | None = None
        # As upstream, all plugins score before the first is normalized; this decides which failure
        # counts.
        asked = [(plugin, ask(plugin)) for plugin in plugins]
        normalized = [
            (plugin, raw, self._normalize(cycle, pod, plugin, raw, rows)) for plugin, raw in asked
        ]
        for plugin, raw, scores in normalized:
            failures.check_scores(plugin.name, scores)
            weight = self._profile.score_weights[plugin.name]
            gained = scores * weight
            totals = gained if totals is None else np.add(totals, gained, out=totals)
            if trace is not None:
                trace.scores.append(ScoreTrace(plugin.name, weight, raw, scores))
        return np.zeros(len(rows), np.int64) if totals is None else totals

    def _ask_score(
        self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, plugin: ScorePlugin[object]
    ) -> NDArray[np.int64]:
        state = cycle.score_states.get(plugin.name)
        return self._profile.ask_score(plugin, state, pod, nodes)

    def _normalize(
        self,
        cycle: CycleState,
        pod: PodInfo,
        plugin: ScorePlugin[object],
        raw: NDArray[np.int64],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        if not plugin.normalizes:
            return raw
        state = cycle.score_states.get(plugin.name)
        return self._profile.ask(
            failures.NORMALIZE, plugin, plugin.normalize_score, state, pod, raw, rows
        )

    def _ask_pre_score(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        feasible: NDArray[np.bool_],
        plugin: PreScorePlugin[object],
        trace: Trace | None,
    ) -> None:
        result = self._profile.ask(
            failures.PRE_SCORE, plugin, plugin.pre_score, cycle, pod, snapshot, feasible
        )
        if trace is not None:
            trace.pre_score[plugin.name] = result.status
        cycle.score_states[plugin.name] = result.state
        if result.status.is_skip:
            cycle.skip_score.add(plugin.name)
        elif not result.status.is_success:
            text = result.status.message
            raise PluginFailure(failure_of(failures.PRE_SCORE, plugin.name, text))
