"""Reserve, Permit and Unreserve: what plugins are asked once a pod has a place.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunReservePluginsReserve,
          RunReservePluginsUnreserve and RunPermitPlugins (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.framework.waiting_pods import PERMIT_TIMEOUT_SECONDS_MAX
from kubesched.scheduler.phase_timer import PERMIT as PERMIT_PHASE
from kubesched.scheduler.phase_timer import RESERVE as RESERVE_PHASE
from kubesched.scheduler.phase_timer import UNRESERVE
from kubesched.scheduler.plugin_failure import PERMIT, RESERVE, PluginFailure, failure_of
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo

_SOMEBODY_WAITS: Final = "one or more plugins asked to wait and no plugin rejected pod"


def reserve(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
    """Ask the Reserve plugins in order, up to the first that says no."""
    started = profile.timer.now()
    status = _reserve(profile, cycle, pod, node_name)
    profile.timer.passed(RESERVE_PHASE, status.code, started)
    return status


def _reserve(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
    for plugin in profile.reserve_plugins:
        try:
            status = profile.ask(RESERVE, plugin, plugin.reserve, cycle, pod, node_name)
        except PluginFailure as raised:
            return raised.status
        if status.is_success:
            continue
        if status.is_rejected:
            return status.by(plugin.name)
        return failure_of(RESERVE, plugin.name, status.message)
    return SUCCESS


def unreserve(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
    """Have all Reserve plugins give back, in reverse order; none of them can refuse."""
    started = profile.timer.now()
    for plugin in reversed(profile.reserve_plugins):
        profile.notify(plugin, plugin.unreserve, cycle, pod, node_name)
    profile.timer.passed(UNRESERVE, Code.SUCCESS, started)


def ask_permit(
    profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str
) -> tuple[Status, dict[str, float]]:
    """Ask the Permit plugins; return Wait if any waits and none says no.

    The second value has the timeouts in seconds of the plugins that wait.
    """
    started = profile.timer.now()
    status, timeouts = _ask_permit(profile, cycle, pod, node_name)
    profile.timer.passed(PERMIT_PHASE, status.code, started)
    return status, timeouts


def _ask_permit(
    profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str
) -> tuple[Status, dict[str, float]]:
    timeouts: dict[str, float] = {}
    verdict = SUCCESS
    for plugin in profile.permit_plugins:
        try:
            status, seconds = profile.ask(PERMIT, plugin, plugin.permit, cycle, pod, node_name)
        except PluginFailure as raised:
            return raised.status, {}
        if status.code is Code.WAIT:
            timeouts[plugin.name] = min(seconds, PERMIT_TIMEOUT_SECONDS_MAX)
            verdict = Status(Code.WAIT, (*status.reasons, _SOMEBODY_WAITS))
        elif status.is_rejected:
            return status.by(plugin.name), {}
        elif not status.is_success:
            return failure_of(PERMIT, plugin.name, status.message), {}
    return verdict, timeouts
