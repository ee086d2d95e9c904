"""PlacementSearch generates and scores placements, the sets of nodes to try for a pod group.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunPlacementGeneratePlugins and
          RunPlacementScorePlugins; pkg/scheduler/schedule_one_podgroup.go, findBestPlacement
          (v1.36)
Rejects:  Unschedulable if there is no placement to try.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.cache.cache import Cache
from kubesched.framework.phase_timer import PLACEMENT_GENERATE, PLACEMENT_SCORE
from kubesched.framework.plugin import NODE_SCORE_MAX, NODE_SCORE_MIN
from kubesched.framework.pod_groups import (
    GeneratedPlacements,
    Placement,
    PlacementScorePlugin,
    PodGroupAssignments,
)
from kubesched.framework.status import Status, failure, unschedulable
from kubesched.scheduler.plugin_failure import PluginFailure, prefix_of
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.select_host import select_host

NO_PLACEMENTS: Final = "no feasible placements found"


class PlacementSearch:
    """The placements of one pod group."""

    def __init__(self, cache: Cache, profile: Profile, namespace: str, name: str) -> None:
        """Set up for the group with this namespace and name."""
        self._snapshot = cache.snapshot()
        self._profile = profile
        self._namespace = namespace
        self._name = name

    def generate(self) -> GeneratedPlacements:
        """Return the placements to try; without generating plugins, one with all nodes."""
        with self._profile.timer.phases[PLACEMENT_GENERATE] as phase:
            found = self._generate()
            phase.code = found.status.code
        return found

    def _generate(self) -> GeneratedPlacements:
        everything = Placement("", tuple(self._snapshot.nodes.snapshot_order.tolist()))
        if not self._profile.placement_generate_plugins:
            return GeneratedPlacements((everything,))
        plugin = self._profile.placement_generate_plugins[0]
        try:
            found = self._profile.ask(
                plugin,
                plugin.generate_placements,
                self._namespace,
                self._name,
                everything,
                self._snapshot,
            )
        except PluginFailure as raised:
            return GeneratedPlacements(status=raised.status)
        if not found.status.is_success:
            return GeneratedPlacements(status=found.status.by(plugin.name))
        if not found.placements:
            return GeneratedPlacements(status=unschedulable(NO_PLACEMENTS).by(plugin.name))
        return found

    def rows_of(self, placement: Placement) -> NDArray[np.intp] | None:
        """Return the rows of a placement, ascending; None for all rows."""
        if len(placement.rows) == len(self._snapshot.nodes):
            return None
        return np.sort(np.array(placement.rows, np.intp))

    def best(self, assignments: Sequence[PodGroupAssignments]) -> int | Status:
        """Return the index of the best placement, at random among equals, or a failure."""
        with self._profile.timer.phases[PLACEMENT_SCORE] as phase:
            found = self._totals(assignments)
            if isinstance(found, Status):
                phase.code = found.code
                return found
        return select_host(found, self._profile.random)

    def _totals(self, assignments: Sequence[PodGroupAssignments]) -> NDArray[np.int64] | Status:
        totals = np.zeros(len(assignments), np.int64)
        try:
            scores = {
                plugin.name: self._scores(plugin, assignments)
                for plugin in self._profile.placement_score_plugins
            }
            for plugin in self._profile.placement_score_plugins:
                scores[plugin.name] = self._normalized(plugin, scores[plugin.name])
        except PluginFailure as raised:
            return raised.status
        for name, found in scores.items():
            invalid = [s for s in found if not NODE_SCORE_MIN <= s <= NODE_SCORE_MAX]
            if invalid:
                return failure(
                    f'applying score defaultWeights on PlacementScore plugins: plugin "{name}" '
                    f"returns an invalid score {invalid[0]}, it should in the range of "
                    f"[{NODE_SCORE_MIN}, {NODE_SCORE_MAX}] after normalizing"
                )
            weight = self._profile.placement_score_weights[name]
            totals += np.array(found, np.int64) * np.int64(weight)
        return totals

    def _scores(
        self, plugin: PlacementScorePlugin, assignments: Sequence[PodGroupAssignments]
    ) -> list[int]:
        scores: list[int] = []
        for each in assignments:
            score, status = self._profile.ask(
                plugin,
                plugin.score_placement,
                self._namespace,
                self._name,
                each,
                self._snapshot,
            )
            _raise_failure("score_placement", plugin, status)
            scores.append(score)
        return scores

    def _normalized(self, plugin: PlacementScorePlugin, scores: list[int]) -> list[int]:
        if not plugin.normalizes_placements:
            return scores
        found, status = self._profile.ask(plugin, plugin.normalize_placement_scores, scores)
        _raise_failure("normalize_placement_scores", plugin, status)
        return found


def _raise_failure(method: str, plugin: PlacementScorePlugin, status: Status) -> None:
    """Raise unless `status` is success; a rejection is a failure here, too."""
    if not status.is_success:
        raise PluginFailure(
            failure(prefix_of(method, plugin.name) + (status.error or status.message))
        )
