"""Eligibility: which pods may preempt others, which may be victims, and which are kept first.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, PodEligibleToPreemptOthers;
          pkg/scheduler/util/utils.go (v1.36)
Reads:    pod.spec.preemptionPolicy, priority; pod.status.nominatedNodeName, startTime; pods on the
          nominated node
Differs:  pods that started at the same time stay in order of arrival; upstream's sort is unstable
          for more than twelve pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.api.conditions import find_condition
from kubesched.api.core import Pod
from kubesched.framework.status import Code, NodeToStatus
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

POLICY_NEVER: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_TERMINATE: Final = "not eligible due to a terminating pod on the nominated node."
NOT_STARTED: Final = (1 << 63) - 1
"""The start time, in nanoseconds, of pods that have not started: the largest int64."""


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


def start_time_nanoseconds(pod: PodInfo) -> int:
    """Return when the pod started, in nanoseconds since the epoch; as int64, so by 2262."""
    started = pod.start_time
    return NOT_STARTED if started is None else max(-NOT_STARTED, min(started, NOT_STARTED))


def by_importance(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return the pods with the most important first: higher priority, then earlier start.

    Of pods that have not started, the last to arrive is the most important.
    """
    started: list[PodInfo] = []
    waiting: list[PodInfo] = []
    for pod in pods:
        (waiting if pod.start_time is None else started).append(pod)
    # Upstream takes the current time for a missing start time and reads the clock again for each
    # pod that it compares. So of two such pods the one it looks at first, the later one, is older.
    waiting.reverse()
    return sorted(started + waiting, key=lambda pod: (-pod.priority, start_time_nanoseconds(pod)))
