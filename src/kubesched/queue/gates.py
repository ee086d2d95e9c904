"""Gates runs PreEnqueue plugins, which may keep a pod out of activeQ.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, runPreEnqueuePlugins (v1.36)
Differs:  plugins run in the order of the profile; upstream runs them in map order. When an event
          concerns a gated pod, its gating plugin is asked first, and again if it opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Status
from kubesched.snapshot.pod_info import PodInfo

PreEnqueue = Callable[[PodInfo], Status]
"""Runs one PreEnqueue plugin; it does not raise, because an exception becomes a status."""

_NO_PLUGINS: Final[Mapping[str, PreEnqueue]] = {}


class GateTimer:
    """Measures the PreEnqueue plugins of one pod; this base class measures nothing."""

    def begin_gates(self) -> float:
        """Return the current time in seconds; called before the plugins run."""
        return 0.0

    def asked_gates(self, scheduler_name: str, started: float, pods: int) -> None:
        """Record the time since `started`; called after the plugins ran for this number of pods."""


class Gates:
    """The PreEnqueue plugins of all profiles; by default no timer measures them."""

    def __init__(
        self,
        pre_enqueue: Mapping[str, Mapping[str, PreEnqueue]],
        rejections: Counter[tuple[str, str]],
    ) -> None:
        """Set up gates; `pre_enqueue` is profile -> plugin -> function, in the order to run.

        `rejections` counts pods by plugin and profile.
        """
        self._pre_enqueue = pre_enqueue
        self._rejections = rejections
        self.timer = GateTimer()

    def ask(self, queued: QueuedPodInfo, pods: int = 1) -> None:
        """Set `queued.gating_plugin` to the first plugin that rejects the pod, or to "".

        If `pods` is more than 1, the pod stands for that many equal pods, which no plugin may
        reject.

        The plugin that gated the pod before runs first. A gating plugin also becomes one of
        `queued.unschedulable_plugins`, and remains so when it lets the pod pass.
        """
        started = self.timer.begin_gates()
        self._ask(queued)
        assert pods == 1 or not queued.is_gated, f"{queued.key} is gated, and those like it"
        self.timer.asked_gates(queued.pod_info.scheduler_name, started, pods)

    def stay_closed(self, queued: QueuedPodInfo) -> bool:
        """Return whether the plugin that gates the pod still rejects it; change nothing."""
        info = queued.pod_info
        gating = self._pre_enqueue.get(info.scheduler_name, _NO_PLUGINS).get(queued.gating_plugin)
        if gating is None:
            return False
        started = self.timer.begin_gates()
        if gating(info).is_success:
            return False
        self.timer.asked_gates(info.scheduler_name, started, 1)
        return True

    def _ask(self, queued: QueuedPodInfo) -> None:
        info, gating = queued.pod_info, queued.gating_plugin
        plugins = self._pre_enqueue.get(info.scheduler_name, _NO_PLUGINS)
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
            self._rejections[plugin, queued.pod_info.scheduler_name] += 1
        queued.unschedulable_plugins |= {plugin}
        queued.gating_plugin = plugin
