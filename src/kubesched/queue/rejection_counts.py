"""RejectionCounts is the number of queued pods that each plugin has rejected.

Upstream: pkg/scheduler/metrics, UnschedulableReason (v1.36)
Differs:  nothing; a pod that is deleted from activeQ or backoffQ stays counted, as upstream.
"""

from __future__ import annotations

from kubesched.framework.queued_pod_info import QueuedPodInfo


class RejectionCounts:
    """Pods by plugin and profile."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, plugin: str, queued: QueuedPodInfo) -> None:
        """Count one rejection."""
        self._change(plugin, queued, 1)

    def add_all(self, queued: QueuedPodInfo, pods: int = 1) -> None:
        """Count the pod, or this number of equal ones, for every plugin that rejected it."""
        for plugin in queued.rejecting_plugins:
            self._change(plugin, queued, pods)

    def remove_all(self, queued: QueuedPodInfo, pods: int = 1) -> None:
        """Uncount the pod, or this number of equal ones, for every plugin that rejected it."""
        for plugin in queued.rejecting_plugins:
            self._change(plugin, queued, -pods)

    def _change(self, plugin: str, queued: QueuedPodInfo, by: int) -> None:
        series = (plugin, queued.pod_info.scheduler_name)
        self._counts[series] = self._counts.get(series, 0) + by

    def series(self) -> tuple[tuple[str, str, int], ...]:
        """Return (plugin, profile, count), sorted; counts that fell to 0 are included."""
        return tuple(sorted((*series, count) for series, count in self._counts.items()))
