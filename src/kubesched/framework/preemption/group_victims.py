"""Chooses the victims for a pod group: removes all pods of lower priority, then returns them.

Pods return one unit at a time, as long as the group still fits. The rest are the victims.

Upstream: pkg/scheduler/framework/preemption/podgrouppreemption.go (v1.36)
Reads:    PodGroup spec.priority; pod.spec.preemptionPolicy, priority; PodDisruptionBudgets
Rejects:  Unschedulable if a pod of the group may not preempt; UnschedulableAndUnresolvable if
          no pod has a lower priority; otherwise with the status of the group's failed what-if.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.api.scheduling import PodGroup
from kubesched.framework.pod_group_plugin import PodGroupPostFilterResult, PodGroupTrial
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.eligibility import POLICY_NEVER
from kubesched.framework.preemption.victim_units import (
    VictimUnit,
    by_importance,
    group_priority,
    pods_of,
    victim_units,
)
from kubesched.framework.status import SUCCESS, unresolvable, unschedulable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"


async def choose_group_victims(
    group: PodGroup, pods: Sequence[PodInfo], snapshot: Snapshot, trial: PodGroupTrial
) -> PodGroupPostFilterResult:
    """Return the pods of the whole cluster to evict so that the group fits.

    `pods` are those of the group that have no node. In the trial, the victims remain removed at the
    end.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return PodGroupPostFilterResult(unschedulable(POLICY_NEVER))
    priority = group_priority(group)
    units = [u for u in victim_units(snapshot.nodes, snapshot.objects) if u.priority < priority]
    if not units:
        return PodGroupPostFilterResult(unresolvable(NO_VICTIMS))
    trial.remove(pods_of(units))
    status = await trial.schedule()
    if not status.is_success:
        return PodGroupPostFilterResult(status)
    budgets = DisruptionBudgets(snapshot.objects)
    victims = [
        unit
        for unit in _most_protected_first(by_importance(units), budgets)
        if not await _may_stay(unit, trial)
    ]
    return PodGroupPostFilterResult(SUCCESS, pods_of(by_importance(victims)))


def _most_protected_first(
    units: Sequence[VictimUnit], budgets: DisruptionBudgets
) -> list[VictimUnit]:
    protected = budgets.protects([unit.pods for unit in units])
    return [
        *(unit for unit, is_protected in zip(units, protected, strict=True) if is_protected),
        *(unit for unit, is_protected in zip(units, protected, strict=True) if not is_protected),
    ]


async def _may_stay(unit: VictimUnit, trial: PodGroupTrial) -> bool:
    trial.put_back(unit.pods)
    status = await trial.schedule()
    if not status.is_success:
        trial.remove(unit.pods)
    return status.is_success
