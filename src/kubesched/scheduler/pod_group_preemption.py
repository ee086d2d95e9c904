"""Preempts for a pod group as a whole: DefaultPreemption finds the victims.

Candidates are tried in the table itself; afterwards every row has its pods again, in order.

Upstream: pkg/scheduler/schedule_one_podgroup.go, runWorkloadAwarePreemption;
          pkg/scheduler/backend/cache/snapshot.go, BackupSnapshot (v1.36)
Reads:    PodGroup spec.schedulingConstraints
Rejects:  Unschedulable if the group has topology constraints, or DefaultPreemption does not run.
Invariants: the table is the same before and after, down to the order of the pods of a row.
Differs:  upstream tries in a copy of the nodes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from kubesched.api.scheduling import PodGroup
from kubesched.framework.phase_timer import POST_FILTER
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.group_victims import group_priority
from kubesched.framework.status import SUCCESS, Status, failure, unschedulable
from kubesched.scheduler.eviction import Preemption, Preemptor
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.pod_group_outcome import Outcome
from kubesched.scheduler.pod_scheduling import PodScheduling
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo

TARGET: Final = "cluster"
"""Used in place of a node name when a group preempts."""

NOT_REGISTERED: Final = (
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
HAS_CONSTRAINTS: Final = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


class Trial:
    """Removes pods from the table tentatively, to see whether the group would fit."""

    def __init__(self, nodes: NodeColumns, try_group: Callable[[], Awaitable[Outcome]]) -> None:
        self._nodes = nodes
        self._try_group = try_group
        self._before: dict[int, list[PodInfo]] = {}

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods from their rows."""
        for pod in pods:
            row = self._nodes.row_of[pod.node_name]
            self._before.setdefault(row, list(self._nodes.pods[row].values()))
            self._nodes.remove_pod(pod, row)

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Put removed pods back on their rows."""
        for pod in pods:
            self._nodes.add_pod(pod, self._nodes.row_of[pod.node_name])

    async def schedule(self) -> Status:
        """Try the group and return success if it would be scheduled."""
        return (await self._try_group()).status

    def restore(self) -> None:
        """Restore each row's pods in their original order."""
        for row, pods in self._before.items():
            for pod in list(self._nodes.pods[row].values()):
                self._nodes.remove_pod(pod, row)
            for pod in pods:
                self._nodes.add_pod(pod, row)
        self._before.clear()


async def preempt_for_group(
    steps: PodScheduling,
    profile: Profile,
    group: PodGroup,
    pods: Sequence[PodInfo],
    try_group: Callable[[], Awaitable[Outcome]],
) -> Status:
    """Evict the victims found; return success if the group then fits, else the rejection.

    `try_group` tries the group in the table as it is, and undoes that.
    """
    if not profile.pod_group_post_filter_plugins:
        return unschedulable(NOT_REGISTERED)
    constraints = group.spec.scheduling_constraints
    if constraints is not None and constraints.topology:
        return unschedulable(HAS_CONSTRAINTS)
    result = await _find_victims(steps, profile, group, pods, try_group)
    if not result.status.is_success:
        return result.status
    metadata, priority = group.metadata, group_priority(group)
    preemptor = Preemptor("podgroup", metadata.uid, metadata.key, priority, tuple(pods))
    preemption = Preemption(preemptor, TARGET, result.victims, profile.scheduler_name)
    error = await steps.evictions.carry_out(preemption)
    return failure(error) if error else SUCCESS


async def _find_victims(
    steps: PodScheduling,
    profile: Profile,
    group: PodGroup,
    pods: Sequence[PodInfo],
    try_group: Callable[[], Awaitable[Outcome]],
) -> PostFilterResult:
    plugin = profile.pod_group_post_filter_plugins[0]
    snapshot = steps.cache.snapshot(steps.queue.nominator)
    restriction = steps.cycles[profile.scheduler_name].restriction
    trial = Trial(steps.cache.nodes, try_group)
    try:
        with restriction.without_post_filters():
            return await profile.ask_async(
                POST_FILTER, plugin, plugin.pod_group_post_filter, group, pods, snapshot, trial
            )
    except PluginFailure as failed:
        return PostFilterResult(failed.status)
    finally:
        trial.restore()
