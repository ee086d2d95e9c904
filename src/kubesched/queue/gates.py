"""Gates asks PreEnqueue plugins whether a pod may be tried at all.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, runPreEnqueuePlugins (v1.36)
Differs:  plugins are asked in the order of the profile; upstream asks in the order of a map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Status
from kubesched.queue.hinting import QueueingHints, scheduler_name_of
from kubesched.queue.rejection_counts import RejectionCounts
from kubesched.snapshot.pod_info import PodInfo

PreEnqueue = Callable[[PodInfo], Status]
"""What asks one PreEnqueue plugin; it does not raise, a failure is a status like any other."""


class Gates:
    """The PreEnqueue plugins of all profiles."""

    def __init__(
        self,
        pre_enqueue: Mapping[str, Mapping[str, PreEnqueue]],
        hints: QueueingHints,
        rejections: RejectionCounts,
    ) -> None:
        """Take profile -> plugin -> what asks it, in the order of asking."""
        self._pre_enqueue = pre_enqueue
        self._hints = hints
        self._rejections = rejections

    def ask(self, queued: QueuedPodInfo) -> None:
        """Set `queued.gating_plugin`: to the first plugin that says no, or to nothing.

        The plugin that has held the pod back so far is asked first. One that says no also counts as
        having rejected the pod, and stays in that set when the gate opens.
        """
        plugins = self._pre_enqueue.get(scheduler_name_of(queued.pod_info))
        if plugins:
            gating = queued.gating_plugin
            if gating in plugins and not self._passes(gating, plugins[gating], queued):
                return
            for name, pre_enqueue in plugins.items():
                if name != gating and not self._passes(name, pre_enqueue, queued):
                    return
        queued.gating_plugin = ""

    def _passes(self, plugin: str, pre_enqueue: PreEnqueue, queued: QueuedPodInfo) -> bool:
        if pre_enqueue(queued.pod_info).is_success:
            return True
        if plugin not in queued.unschedulable_plugins and plugin not in queued.pending_plugins:
            self._rejections.add(plugin, queued)
        queued.unschedulable_plugins |= {plugin}
        queued.gating_plugin = plugin
        queued.gating_plugin_events = self._hints.events_of(plugin)
        return False
