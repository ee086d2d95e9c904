"""Eligibility: which pods may preempt others, and which pods may be victims.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, PodEligibleToPreemptOthers (v1.36)
Reads:    pod.spec.preemptionPolicy, pod.status.nominatedNodeName; pods on the nominated node
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.conditions import find_condition
from kubesched.api.core import Pod
from kubesched.framework.status import Code, NodeToStatus
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

POLICY_NEVER: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_TERMINATE: Final = "not eligible due to a terminating pod on the nominated node."


def why_not_eligible(pod: PodInfo, nodes: NodeTable, statuses: NodeToStatus) -> str:
    """Return why the pod may not preempt others, or "" if it may."""
    if pod.spec.preemption_policy == "Never":
        return POLICY_NEVER
    row = nodes.row_of.get(pod.pod.status.nominated_node_name)
    if row is None or statuses[row].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    for victim in lower_priority_pods(pod, nodes, row):
        if is_terminating_by_preemption(victim.pod):
            return VICTIMS_TERMINATE
    return ""


def lower_priority_pods(pod: PodInfo, nodes: NodeTable, row: int) -> list[PodInfo]:
    """Return the pods on a row that `pod` may preempt, in order of arrival."""
    priority = pod.priority
    return [victim for victim in nodes.pods[row].values() if victim.priority < priority]


def has_lower_priority_pods(pod: PodInfo, nodes: NodeColumns) -> bool:
    """Whether any node has a pod that `pod` may preempt."""
    least = nodes.groups.least_priority
    return least is not None and least < pod.priority


def is_terminating_by_preemption(pod: Pod) -> bool:
    """Whether the pod is being deleted because a scheduler preempted it."""
    return pod.metadata.deletion_timestamp is not None and is_preempted(pod)


def is_preempted(pod: Pod) -> bool:
    """Whether a scheduler has marked the pod as preempted."""
    target = find_condition(pod.status.conditions, "DisruptionTarget")
    return (
        target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"
    )
