"""PodGroupPodsCount: prefer the placement that fits the most pods of the group.

Upstream: pkg/scheduler/framework/plugins/podgrouppodscount (v1.36)
Reads:    the group's scheduled pods
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from kubesched.framework.plugin import NODE_SCORE_MAX
from kubesched.framework.pod_groups import (
    PlacementScorePlugin,
    PodGroupAssignments,
    state_not_found,
)
from kubesched.framework.status import SUCCESS, Status, failure
from kubesched.snapshot.snapshot import Snapshot

NO_POD_ASSIGNED: Final = "no pods from pod group are assigned to any of the candidate placements"


class PodGroupPodsCount(PlacementScorePlugin):
    """Score by the number of pods that have a node or get one in the placement."""

    name: ClassVar = "PodGroupPodsCount"

    def score_placement(
        self, namespace: str, name: str, assignments: PodGroupAssignments, snapshot: Snapshot
    ) -> tuple[int, Status]:
        """Return the number of pods, and success."""
        state = self.handle.pod_group_states.get(namespace, name)
        if state is None:
            return 0, failure(state_not_found(namespace, name))
        return state.scheduled_pods_count + len(assignments.proposed), SUCCESS

    def normalize_placement_scores(self, scores: Sequence[int]) -> tuple[list[int], Status]:
        """Return each number in percent of the largest, rounded down, and success."""
        most = max((0, *scores))
        if most == 0:
            return [], failure(NO_POD_ASSIGNED)
        return [score * NODE_SCORE_MAX // most for score in scores], SUCCESS
