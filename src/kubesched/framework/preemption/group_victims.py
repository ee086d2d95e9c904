"""Chooses the victims for a pod group: removes all pods of lower priority, then returns them.

Pods return one unit at a time, single pods or all pods of a group, as long as the preemptor still
fits. The rest are the victims.

Upstream: pkg/scheduler/framework/preemption/{types,podgrouppreemption}.go (v1.36)
Reads:    PodGroup spec.priority, spec.disruptionMode; pod.spec.schedulingGroup, preemptionPolicy,
          priority, status.startTime; PodDisruptionBudgets
Rejects:  Unschedulable if a pod of the group may not preempt; UnschedulableAndUnresolvable if no
          pod has a lower priority; otherwise with the status of the group's failed what-if.
Differs:  units of equal importance stay in node order, where upstream's order is arbitrary; a pod
          that has not started is younger than every pod that has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kubesched.api.scheduling import PodGroup
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.pod_groups import PodGroupTrial, pod_group_of
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.eligibility import POLICY_NEVER, start_time_nanoseconds
from kubesched.framework.status import SUCCESS, unresolvable, unschedulable
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

# Units.

TOGETHER: Final = "PodGroup"
"""The disruption mode of a group whose pods are evicted together."""


class VictimUnit(msgspec.Struct, frozen=True):
    """Pods that are evicted together or not at all.

    Attributes:
        pods: The pods, in node order.
        priority: The group's priority, or the single pod's.
    """

    pods: tuple[PodInfo, ...]
    priority: int

    @property
    def importance(self) -> tuple[int, bool, int, int]:
        """Sort key; the smallest is kept first: high priority, groups, large groups, early start.

        As upstream, a pod in a group counts as a group even if it is evicted alone, and the start
        of a group is that of its first pod in node order.
        """
        first = self.pods[0]
        is_group = first.pod.spec.scheduling_group is not None
        size = len(self.pods) if is_group else 1
        return -self.priority, not is_group, -size, start_time_nanoseconds(first)


def group_priority(group: PodGroup) -> int:
    """Return the priority of a group; 0 if it has none."""
    return group.spec.priority or 0


def victim_units(nodes: NodeColumns, objects: Objects) -> list[VictimUnit]:
    """Return all units of the cluster, in the order of their first pods."""
    units: dict[str, tuple[list[PodInfo], int]] = {}
    for row in nodes.snapshot_order.tolist():
        for pod in nodes.pods[row].values():
            group = _leaves_with(pod, objects)
            if group is None:
                units[pod.uid] = [pod], pod.priority
            else:
                unit = units.setdefault(group.metadata.uid, ([], group_priority(group)))
                unit[0].append(pod)
    return [VictimUnit(tuple(pods), priority) for pods, priority in units.values()]


def by_importance(units: Iterable[VictimUnit]) -> list[VictimUnit]:
    """Return the units with the most important first."""
    return sorted(units, key=lambda unit: unit.importance)


def pods_of(units: Sequence[VictimUnit]) -> tuple[PodInfo, ...]:
    """Return the pods of all units, unit by unit."""
    return tuple(pod for unit in units for pod in unit.pods)


def _leaves_with(pod: PodInfo, objects: Objects) -> PodGroup | None:
    """Return the group whose pods are evicted with this one, or None."""
    group = pod_group_of(pod, objects)
    return group if group is not None and group.spec.disruption_mode == TOGETHER else None


# The choice.

NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"


async def choose_group_victims(
    group: PodGroup, pods: Sequence[PodInfo], snapshot: Snapshot, trial: PodGroupTrial
) -> PostFilterResult:
    """Return the pods of the whole cluster to evict so that the group fits.

    `pods` are those of the group that have no node. In the trial, the victims remain removed at the
    end.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return PostFilterResult(unschedulable(POLICY_NEVER))
    priority = group_priority(group)
    units = [u for u in victim_units(snapshot.nodes, snapshot.objects) if u.priority < priority]
    if not units:
        return PostFilterResult(unresolvable(NO_VICTIMS))
    trial.remove(pods_of(units))
    status = await trial.schedule()
    if not status.is_success:
        return PostFilterResult(status)
    budgets = DisruptionBudgets(snapshot.objects)
    victims = [
        unit
        for unit in _most_protected_first(by_importance(units), budgets)
        if not await _reprieve(unit, trial)
    ]
    return PostFilterResult(SUCCESS, victims=pods_of(by_importance(victims)))


def _most_protected_first(
    units: Sequence[VictimUnit], budgets: DisruptionBudgets
) -> list[VictimUnit]:
    protected = budgets.protects([unit.pods for unit in units])
    order = sorted(range(len(units)), key=lambda at: not protected[at])
    return [units[at] for at in order]


async def _reprieve(unit: VictimUnit, trial: PodGroupTrial) -> bool:
    """Put a unit back if the group fits beside it; return whether it stays."""
    trial.put_back(unit.pods)
    status = await trial.schedule()
    if not status.is_success:
        trial.remove(unit.pods)
    return status.is_success
