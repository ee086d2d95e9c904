"""Scoring chooses among the feasible rows: pre_score, score, normalize, weigh, add, choose.

Upstream: pkg/scheduler/schedule_one.go, prioritizeNodes; framework/runtime, RunScorePlugins (v1.36)
Differs:  ties are broken with the run's seed; upstream takes the first that its parallel search
          happened to find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.phase_timer import PRE_SCORE, SCORE
from kubesched.framework.plugin import PreScorePlugin, ScorePlugin
from kubesched.framework.plugin_answers import WrongAnswerError
from kubesched.framework.plugin_error import extension_point_of
from kubesched.scheduler.plugin_failure import PluginFailure, check_scores, failure_of
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.search import Attempt, Feasible
from kubesched.scheduler.select_host import select_host
from kubesched.scheduler.trace import ScoreTrace
from kubesched.snapshot.node_table import NodeTable


class Scoring:
    """The PreScore and Score plugins of a profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def choose(self, attempt: Attempt, found: Feasible) -> int:
        """Return a feasible row with the largest total; ties are broken at random."""
        profile, trace = self._profile, attempt.trace
        if not profile.score_plugins:
            totals = np.ones(found.count, np.int64)
            if trace is not None:
                trace.totals = totals
            return found.rows.item(select_host(totals, profile.random))
        if found.some is not None:
            return self._choose_among(attempt, found.some)
        pod, known, feasible = attempt.pod, attempt.known, found.passed
        is_known = feasible is known.feasible
        plugins = self._pre_score(attempt, feasible, found.count)
        with profile.timer.phases[SCORE]:
            if is_known and not plugins and trace is None:
                return known.select(pod, profile.random)
            totals = known.totals(pod).copy() if is_known else known.totals_where(feasible, pod)
            if attempt.plan.knows_any and trace is None:
                plugins = self._add_plain_scores(attempt, totals, plugins)
            if plugins:
                self._add_scores(attempt, totals, plugins, np.flatnonzero(feasible))
            if trace is not None:
                trace.totals = totals[feasible]
            return select_host(totals, profile.random)

    def _choose_among(self, attempt: Attempt, rows: NDArray[np.intp]) -> int:
        """Return one of some feasible rows with the largest total."""
        totals = attempt.known.totals_at(rows, attempt.pod)
        totals += self.score(attempt, rows, attempt.snapshot.nodes.take(rows))
        if attempt.trace is not None:
            attempt.trace.totals = totals
        return rows.item(select_host(totals, self._profile.random))

    def score(
        self, attempt: Attempt, rows: NDArray[np.intp], nodes: NodeTable
    ) -> NDArray[np.int64]:
        """Return the totals of all plugins for `nodes`, the table of the feasible rows."""
        feasible = np.zeros(len(attempt.snapshot.nodes), np.bool_)
        feasible[rows] = True
        plugins = self._pre_score(attempt, feasible, len(rows))
        with self._profile.timer.phases[SCORE]:
            return self._ask_scores(
                attempt, plugins, lambda plugin: self._ask_score(attempt, plugin, nodes), rows
            )

    def _pre_score(
        self, attempt: Attempt, feasible: NDArray[np.bool_], count: int
    ) -> list[ScorePlugin[object]]:
        """Run PreScore; return the plugins that then score the `count` feasible rows."""
        timer, plan, cycle = self._profile.timer, attempt.plan, attempt.cycle
        with timer.phases[PRE_SCORE]:
            for plugin in plan.pre_scores:
                self._ask_pre_score(attempt, feasible, plugin)
            if plan.score_states_to_make:
                self._profile.make_score_states(
                    plan.score_states_to_make, cycle, attempt.pod, attempt.snapshot, feasible
                )
        timer.scored(cycle, count)
        return [plugin for plugin in plan.scores if plugin.name not in cycle.skip_score]

    def _add_plain_scores(
        self,
        attempt: Attempt,
        totals: NDArray[np.int64],
        plugins: Sequence[ScorePlugin[object]],
    ) -> list[ScorePlugin[object]]:
        """Add the scores of plugins that do not normalize, and return the other plugins.

        They score all rows, which is cheaper than selecting the feasible ones. The totals of other
        rows stay far below. Raises PluginFailure if a plugin fails on any row, so that the cycle
        has to ask every plugin.
        """
        others: list[ScorePlugin[object]] = []
        for plugin in plugins:
            if plugin.normalizes or plugin.survivors_only:
                others.append(plugin)
                continue
            scores = self._ask_score(attempt, plugin, attempt.snapshot.nodes)
            check_scores(plugin.name, scores)
            weight = self._profile.score_weights[plugin.name]
            totals += scores if weight == 1 else scores * weight
        return others

    def _add_scores(
        self,
        attempt: Attempt,
        totals: NDArray[np.int64],
        plugins: Sequence[ScorePlugin[object]],
        rows: NDArray[np.intp],
    ) -> None:
        """Add the scores of plugins for the feasible rows to `totals`."""
        nodes: NodeTable = attempt.snapshot.nodes
        every = len(rows) == len(nodes)
        feasible = nodes if every else nodes.take(rows)

        def ask(plugin: ScorePlugin[object]) -> NDArray[np.int64]:
            if every or not attempt.plan.knows_any or plugin.survivors_only:
                return self._ask_score(attempt, plugin, feasible)
            # Scoring all rows is cheaper than selecting some.
            return self._ask_score(attempt, plugin, nodes).take(rows)

        gains = self._ask_scores(attempt, plugins, ask, rows)
        if every:
            totals += gains
        else:
            totals[rows] += gains

    def _ask_scores(
        self,
        attempt: Attempt,
        plugins: Sequence[ScorePlugin[object]],
        ask: Callable[[ScorePlugin[object]], NDArray[np.int64]],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        """Return the sum of the weighted, normalized scores per feasible row."""
        totals: NDArray[np.int64] | None = None
        # As upstream, all plugins score before the first is normalized; this decides which failure
        # counts.
        asked = [(plugin, ask(plugin)) for plugin in plugins]
        normalized = [
            (plugin, raw, self._normalize(attempt, plugin, raw, rows)) for plugin, raw in asked
        ]
        for plugin, raw, scores in normalized:
            self._check(attempt, plugin, scores)
            weight = self._profile.score_weights[plugin.name]
            gained = scores * weight
            totals = gained if totals is None else np.add(totals, gained, out=totals)
            if attempt.trace is not None:
                attempt.trace.scores.append(ScoreTrace(plugin.name, weight, raw, scores))
        return np.zeros(len(rows), np.int64) if totals is None else totals

    def _check(
        self, attempt: Attempt, plugin: ScorePlugin[object], scores: NDArray[np.int64]
    ) -> None:
        """Report a plugin with a score outside 0..100, and raise PluginFailure."""
        try:
            check_scores(plugin.name, scores)
        except PluginFailure as failure:
            method = plugin.normalize_score if plugin.normalizes else plugin.score
            found = f"{scores.min()} to {scores.max()}"
            error = WrongAnswerError(
                method.__name__, f"must give scores from 0 to 100, not {found}; scale them"
            )
            point = extension_point_of(method)
            text = self._profile.report(plugin, point, attempt.pod.key, error)
            raise PluginFailure(failure.status, text) from error

    def _ask_score(
        self, attempt: Attempt, plugin: ScorePlugin[object], nodes: NodeTable
    ) -> NDArray[np.int64]:
        state = attempt.cycle.score_states.get(plugin.name)
        return self._profile.ask_score(plugin, state, attempt.pod, nodes)

    def _normalize(
        self,
        attempt: Attempt,
        plugin: ScorePlugin[object],
        raw: NDArray[np.int64],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        if not plugin.normalizes:
            return raw
        state = attempt.cycle.score_states.get(plugin.name)
        return self._profile.ask(plugin, plugin.normalize_score, state, attempt.pod, raw, rows)

    def _ask_pre_score(
        self, attempt: Attempt, feasible: NDArray[np.bool_], plugin: PreScorePlugin[object]
    ) -> None:
        cycle, pod, snapshot = attempt.cycle, attempt.pod, attempt.snapshot
        result = self._profile.ask(plugin, plugin.pre_score, cycle, pod, snapshot, feasible)
        if attempt.trace is not None:
            attempt.trace.pre_score[plugin.name] = result.status
        cycle.score_states[plugin.name] = result.state
        if result.status.is_skip:
            cycle.skip_score.add(plugin.name)
            if result.lasts:
                attempt.skips.append((PRE_SCORE, plugin.name))
        elif not result.status.is_success:
            text = result.status.message
            raise PluginFailure(failure_of("pre_score", plugin.name, text))
