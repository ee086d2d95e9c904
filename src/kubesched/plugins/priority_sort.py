"""PrioritySort: the pod of higher priority first, then the one that has waited longer.

Upstream: pkg/scheduler/framework/plugins/queuesort (v1.36)
Reads:    pod.spec.priority; when the pod last entered a queue
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from kubesched.framework.cluster_event import ClusterEventWithHint
from kubesched.framework.plugin import QueueSortPlugin, Scope
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.snapshot.pod_info import PodInfo


class PrioritySort(QueueSortPlugin):
    """Order the active queue by priority and time."""

    name: ClassVar = "PrioritySort"
    scope: ClassVar = Scope.NODE

    def sort_key(self, queued: QueuedPodInfo) -> tuple[int | float, ...]:
        """Return priority, falling, and the time of the last entry."""
        return (-queued.pod_info.priority, queued.timestamp)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """It never rejects."""
        return ()

    def sign(self, pod: PodInfo) -> Hashable:
        """No node matters to the order."""
        return None
