"""Scoring rates the feasible rows: pre_score, score, normalize, weigh, add, choose.

Upstream: pkg/scheduler/schedule_one.go, prioritizeNodes; framework/runtime, RunScorePlugins (v1.36)
Differs:  among rows with the same best total one is drawn from the run's seed; upstream takes the
          first that its parallel search happened to find.
"""

from __future__ import annotations

from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PreScorePlugin, ScorePlugin
from kubesched.scheduler import profile as wording
from kubesched.scheduler.missing_states import make_score_states
from kubesched.scheduler.phase_timer import PRE_SCORE, SCORE
from kubesched.scheduler.profile import PluginFailure, Profile, failure_of
from kubesched.scheduler.trace import ScoreTrace, Trace
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_SLICE_ROWS: Final = 512


class Scoring:
    """The PreScore and Score plugins of a profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def prioritize(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        trace: Trace | None,
    ) -> NDArray[np.int64]:
        """Return the total score per feasible row; 1 if there is nobody to score."""
        if not self._profile.score_plugins:
            totals = np.ones(len(rows), np.int64)
            if trace is not None:
                trace.totals = totals
            return totals
        nodes: NodeTable = snapshot.nodes
        if len(rows) < len(nodes):
            nodes = nodes.take(rows)
        return self.score(cycle, pod, snapshot, rows, nodes, trace)

    def score(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        nodes: NodeTable,
        trace: Trace | None,
    ) -> NDArray[np.int64]:
        """Return what the plugins make of `nodes`, the table of the feasible rows."""
        timer = self._profile.timer
        if timer is not None:
            timer.enter(PRE_SCORE)
        self._pre_score(cycle, pod, snapshot, rows, trace)
        if timer is not None:
            timer.leave()
            timer.pre_scored(cycle)
            timer.scored(cycle, len(rows))
            timer.enter(SCORE)
        totals = np.zeros(len(rows), np.int64)
        plugins = [p for p in self._profile.score_plugins if p.name not in cycle.skip_score]
        # All are asked before the first is normalized: whoever fails is met in that order.
        asked = [(plugin, self.ask_score(cycle, pod, nodes, plugin)) for plugin in plugins]
        normalized = [
            (plugin, raw, self.normalize(cycle, pod, plugin, raw, rows)) for plugin, raw in asked
        ]
        for plugin, raw, scores in normalized:
            wording.check_scores(plugin.name, scores)
            weight = self.weight(plugin)
            totals += scores * weight
            if trace is not None:
                trace.scores.append(ScoreTrace(plugin.name, weight, raw, scores))
        if timer is not None:
            timer.leave()
        if trace is not None:
            trace.totals = totals
        return totals

    def weight(self, plugin: ScorePlugin[object]) -> int:
        """Return what the plugin's scores weigh."""
        return self._profile.score_weights[plugin.name]

    def ask_score(
        self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, plugin: ScorePlugin[object]
    ) -> NDArray[np.int64]:
        """Ask one plugin for the raw score per row."""
        state = cycle.score_states.get(plugin.name)
        return self._profile.ask_score(plugin, state, pod, nodes)

    def normalize(
        self,
        cycle: CycleState,
        pod: PodInfo,
        plugin: ScorePlugin[object],
        raw: NDArray[np.int64],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        """Let one plugin normalize its scores of the feasible rows."""
        scores = raw
        if plugin.normalizes:
            state = cycle.score_states.get(plugin.name)
            scores = self._profile.ask(
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
        for plugin in self._profile.pre_score_plugins:
            self.ask_pre_score(cycle, pod, snapshot, feasible, plugin, trace)
        plugins = self._profile.scores_without_pre_score
        make_score_states(self._profile, plugins, cycle, pod, snapshot, feasible)

    def ask_pre_score(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        feasible: NDArray[np.bool_],
        plugin: PreScorePlugin[object],
        trace: Trace | None,
    ) -> None:
        """Ask one PreScore plugin and keep what it says in `cycle`."""
        result = self._profile.ask(
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
