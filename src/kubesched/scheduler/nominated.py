"""The first of the two passes over a row with nominated pods: as if they were there already.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from kubesched.framework.cycle_state import CycleState
from kubesched.scheduler.profile import PluginFailure, Profile
from kubesched.scheduler.row_answers import Filtering
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo


def ask_with_nominated(
    profile: Profile,
    nominated: list[PodInfo],
    cycle: CycleState,
    pod: PodInfo,
    nodes: NodeTable,
    row: int,
    filtering: Filtering,
) -> None:
    """Ask the filters again as if `nominated` were on the row; their rejection is what counts.

    Raises:
        PluginFailure: if a filter failed.
    """
    status = profile.filter_with(nominated, cycle, pod, nodes, row)
    if not status.is_success:
        if not status.is_rejected:
            raise PluginFailure(status)
        filtering.own_answers().override(row, status)
        filtering.changed()
