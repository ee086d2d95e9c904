"""Victim units: what preemption for a pod group evicts, single pods or all pods of a group.

Upstream: pkg/scheduler/framework/preemption/types.go, podgrouppreemption.go (v1.36)
Reads:    PodGroup spec.priority, spec.disruptionMode; pod.spec.schedulingGroup, priority,
          status.startTime
Differs:  units of equal importance stay in node order, where upstream's order is arbitrary; a pod
          that has not started is younger than every pod that has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kubesched.api.scheduling import PodGroup
from kubesched.framework.pod_group_states import pod_group_name_of
from kubesched.framework.preemption.importance import start_time_nanoseconds
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo

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
    name = pod_group_name_of(pod.pod)
    group = objects.get(PodGroup, name, pod.namespace) if name else None
    return group if group is not None and group.spec.disruption_mode == TOGETHER else None
