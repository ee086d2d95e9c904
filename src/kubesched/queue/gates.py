"""Gates asks PreEnqueue plugins whether a pod may be tried at all.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, runPreEnqueuePlugins (v1.36)
Differs:  plugins are asked in the order of the profile; upstream asks in the order of a map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Status
from kubesched.queue.hinting import QueueingHints, scheduler_name_of
from kubesched.queue.rejection_counts import RejectionCounts
from kubesched.snapshot.pod_info import PodInfo

PreEnqueue = Callable[[PodInfo], Status]
"""What asks one PreEnqueue plugin; it does not raise, a failure is a status like any other."""

_NO_PLUGINS: Final[Mapping[str, PreEnqueue]] = {}


class GateTimer:
    """Measures how long the PreEnqueue plugins take; this one measures nothing."""

    def begin_gates(self) -> float:
        """They are to be asked about a pod; return the time, seconds."""
        return 0.0

    def asked_gates(self, scheduler_name: str, started: float) -> None:
        """They have been asked since `started`."""


class Gates:
    """The PreEnqueue plugins of all profiles.

    Attributes:
        timer: Measures how long they take; by default nothing.
    """

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
        self.timer = GateTimer()

    def ask(self, queued: QueuedPodInfo) -> None:
        """Set `queued.gating_plugin`: to the first plugin that says no, or to nothing.

        The plugin that has held the pod back so far is asked first. One that says no also counts as
        having rejected the pod, and stays in that set when the gate opens.
        """
        started = self.timer.begin_gates()
        self._ask(queued)
        self.timer.asked_gates(scheduler_name_of(queued.pod_info), started)

    def _ask(self, queued: QueuedPodInfo) -> None:
        info, gating = queued.pod_info, queued.gating_plugin
        plugins = self._pre_enqueue.get(scheduler_name_of(info), _NO_PLUGINS)
        if gating in plugins and not plugins[gating](info).is_success:
            self._close(gating, queued)
            return
        for name, pre_enqueue in plugins.items():
            if name != gating and not pre_enqueue(info).is_success:
                self._close(name, queued)
                return
        queued.gating_plugin = ""

    def _close(self, plugin: str, queued: QueuedPodInfo) -> None:
        if plugin not in queued.rejecting_plugins:
            self._rejections.add(plugin, queued)
        queued.unschedulable_plugins |= {plugin}
        queued.gating_plugin = plugin
        queued.gating_plugin_events = self._hints.events_of(plugin)
