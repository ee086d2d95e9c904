"""Victim units are what preemption for a pod group evicts: single pods, or all of a group's pods.

Upstream: pkg/scheduler/framework/preemption/types.go, podgrouppreemption.go (v1.36)
Reads:    PodGroup spec.priority, spec.disruptionMode; pod.spec.schedulingGroup, priority,
          status.startTime
Differs:  units that are equal in importance stay in the order of the nodes, upstream's in any; a
          pod that has not started is younger than every pod that has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kubesched.api.scheduling import PodGroup
from kubesched.framework.pod_group_states import pod_group_name_of
from kubesched.framework.preemption.importance import start_time_nanoseconds
from kubesched.snapshot.node_table import NodeColumns
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo

TOGETHER: Final = "PodGroup"
"""The disruption mode of a group whose pods are evicted together."""


class VictimUnit(msgspec.Struct, frozen=True):
    """Pods that leave together, or not at all.

    Attributes:
        pods: The pods, in the order of the nodes.
        priority: The group's, or the single pod's.
    """

    pods: tuple[PodInfo, ...]
    priority: int

    @property
    def importance(self) -> tuple[int, bool, int, int]:
        """A smaller one is kept first: priority, groups, large groups, early ones.

        A pod counts as a group if it is in any, also where it leaves alone; and a group has
        started when the first of its pods in the order of the nodes has. Both as upstream.
        """
        first = self.pods[0]
        is_group = first.pod.spec.scheduling_group is not None
        size = len(self.pods) if is_group else 1
        return -self.priority, not is_group, -size, start_time_nanoseconds(first)


def group_priority(group: PodGroup) -> int:
    """Return the priority of a group, 0 if it has none."""
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
    """Sort: whoever is to be kept first comes first."""
    return sorted(units, key=lambda unit: unit.importance)


def pods_of(units: Sequence[VictimUnit]) -> tuple[PodInfo, ...]:
    """Return the pods of all units, unit by unit."""
    return tuple(pod for unit in units for pod in unit.pods)


def _leaves_with(pod: PodInfo, objects: Objects) -> PodGroup | None:
    """Return the group whose pods leave together with this one, None if it leaves alone."""
    name = pod_group_name_of(pod.pod)
    group = objects.get(PodGroup, name, pod.namespace) if name else None
    return group if group is not None and group.spec.disruption_mode == TOGETHER else None
