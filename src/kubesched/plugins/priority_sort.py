"""PrioritySort: order pods by priority, then by waiting time.

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
    signs_base: ClassVar = True

    def sort_key(self, queued: QueuedPodInfo) -> tuple[int | float, ...]:
        """Return the negative priority, and when the pod last entered a queue, in seconds."""
        return (-queued.pod_info.priority, queued.timestamp)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return no events, because the plugin never rejects a pod."""
        return ()

    def sign(self, pod: PodInfo) -> Hashable:
        """Return None, because the plugin does not evaluate nodes."""
        return None
