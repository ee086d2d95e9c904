"""Which waiting pods the event of an assigned pod concerned, before there were queueing hints.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, AssignedPodAdded and
          AssignedPodUpdated (v1.36)
Reads:    pod.metadata.labels; the waiting pods' required pod affinity
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.framework.cluster_event import POD, Action, ClusterEvent
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.snapshot.pod_info import PodInfo

PreCheck = Callable[[QueuedPodInfo], bool]
"""Whether an event may move this waiting pod at all; asked before anything moves."""

_POD_TOPOLOGY_SPREAD: Final = "PodTopologySpread"
_SCALE_DOWN: Final = ClusterEvent(POD, Action.UPDATE_POD_SCALE_DOWN)


def pre_check_of_assigned_pod(
    event: ClusterEvent, assigned: PodInfo, namespace_labels: Mapping[str, str]
) -> PreCheck | None:
    """Return the check for an assigned pod's Add or update; None if every pod may move.

    Only for a queue without queueing hints; hints say it better.

    Args:
        event: What happened to the assigned pod.
        assigned: The pod, as it is now.
        namespace_labels: Of its namespace.
    """
    if _SCALE_DOWN.matches(event):
        return None

    def is_concerned(queued: QueuedPodInfo) -> bool:
        waiting = queued.pod_info
        if (
            _POD_TOPOLOGY_SPREAD in queued.unschedulable_plugins
            and assigned.namespace == waiting.namespace
        ):
            return True
        affinity = waiting.template.affinity
        return affinity is not None and any(
            term.matches(assigned.namespace, assigned.labels, namespace_labels)
            for term in affinity.required_affinity
        )

    return is_concerned
