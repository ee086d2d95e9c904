"""Details of a decision on one node: the amounts, taints or labels behind a plugin's reason.

Reads:    the plugins' states of the cycle, and their `describe`
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import FilterPlugin, NoState, PreFilterPlugin
from kubesched.framework.status import Status
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Placed
from kubesched.scheduler.profile import Profile, relevant_nominated_pods
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class Details:
    """Collects details from plugins; a plugin without `describe` gives none."""

    def __init__(self, profile: Profile, snapshot: Snapshot, trace: Trace, pod: PodInfo) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._cycle = trace.cycle or CycleState()
        self._pod = pod

    def of(self, row: int, status: Status) -> str:
        """Return the detail behind a row's `status`; empty if there is none."""
        plugin = self._profile.plugins.get(status.plugin)
        if not isinstance(plugin, FilterPlugin):
            return ""
        try:
            return self._described(plugin, row)
        except Exception as error:  # noqa: BLE001 - a user's plugin may raise anything
            self._profile.report(plugin, "Describe", self._pod.key, error)
            return ""

    def of_pod(self, plugin_name: str) -> str:
        """Return the detail behind a plugin's rejection in PreFilter."""
        plugin = self._profile.plugins.get(plugin_name)
        if not isinstance(plugin, PreFilterPlugin):
            return ""
        try:
            return plugin.describe_rejection(self._pod, self._snapshot)
        except Exception:  # noqa: BLE001 - a user's plugin may raise anything; the reason stands
            return ""

    def _described(self, plugin: FilterPlugin[object], row: int) -> str:
        name = self._snapshot.nodes.names[row]
        nominated = relevant_nominated_pods(self._pod, self._snapshot, name)
        state = self._cycle.filter_states.get(plugin.name)
        if isinstance(state, NoState):
            return ""
        node = self._snapshot.nodes.row_view(row)
        if not nominated or not plugin.filter(state, self._pod, node)[0].is_success:
            return plugin.describe(state, self._pod, node)
        text = self._described_with(nominated, plugin, row)
        listed = ", ".join(other.key for other in nominated)
        with_them = f"with the pods nominated to the node ({listed})"
        return f"{text} {with_them}" if text else with_them

    def _described_with(
        self, nominated: list[PodInfo], plugin: FilterPlugin[object], row: int
    ) -> str:
        """Describe the row with the nominated pods on it, because it was rejected that way."""
        cycle = self._cycle.clone()
        node = self._snapshot.nodes.take(np.array([row], np.intp))
        for other in nominated:
            if not self._profile.add_pod(cycle, self._pod, other, node).is_success:
                return ""
        return plugin.describe(cycle.filter_states.get(plugin.name), self._pod, node)


def awaited(profile: Profile, placed: Placed | Assumed) -> tuple[str, ...]:
    """Return the steps before a pod can be bound to its node, such as provisioning a volume."""
    found: list[str] = []
    for plugin in profile.pre_bind_plugins:
        try:
            found += plugin.describe_wait(placed.cycle, placed.pod, placed.node_name)
        except Exception:  # noqa: BLE001, S112 - a user's plugin may raise anything
            continue
    return tuple(found)
