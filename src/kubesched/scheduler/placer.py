"""Placer assumes a pod on the chosen node, and can undo it.

    assume ─▶ reserve ─▶ permit           undo: unreserve in reverse order ─▶ forget

Single pods and the pods of a group are placed in the same way. A group's pods are placed
tentatively, undone before the group is decided, and then placed again.

Upstream: pkg/scheduler/schedule_one.go, assumeAndReserve; pkg/scheduler/framework/runtime,
          RunReservePluginsReserve, RunReservePluginsUnreserve, RunPermitPlugins (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from kubesched.cache.cache import Cache, CacheError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.phase_timer import PERMIT, RESERVE, UNRESERVE
from kubesched.framework.status import SUCCESS, Code, Status, failure
from kubesched.framework.waiting_pods import PERMIT_TIMEOUT_SECONDS_MAX
from kubesched.scheduler.plugin_failure import PluginFailure, reported
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo

_SOMEBODY_WAITS: Final = "one or more plugins asked to wait and no plugin rejected pod"

log = logging.getLogger(__name__)


class PlacedPod(msgspec.Struct, frozen=True):
    """The result of placing a pod.

    Attributes:
        status: Success, Wait if a Permit plugin holds the pod, or the failure.
        pod: The pod as assumed on its node; None after a failure.
        timeouts_seconds: The Permit plugins that hold the pod, each with its timeout.
    """

    status: Status
    pod: PodInfo | None = None
    timeouts_seconds: Mapping[str, float] = {}


class Placer:
    """Places pods in one cache."""

    def __init__(self, cache: Cache, nominator: Nominator) -> None:
        self._cache = cache
        self._nominator = nominator

    def place(self, profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> PlacedPod:
        """Assume the pod, run Reserve and Permit; undo everything on failure."""
        try:
            assumed = self._cache.assume_pod(pod, node_name)
        except CacheError as error:
            return PlacedPod(failure(str(error)))
        self._nominator.delete(pod.uid)
        timeouts: Mapping[str, float] = {}
        status = reserve(profile, cycle, assumed)
        if status.is_success:
            with profile.timer.phases[PERMIT] as phase:
                status, timeouts = _ask_permit(profile, cycle, assumed)
                phase.code = status.code
        if status.is_success or status.code is Code.WAIT:
            return PlacedPod(status, assumed, timeouts)
        self.undo(profile, cycle, assumed)
        return PlacedPod(status)

    def undo(self, profile: Profile, cycle: CycleState, pod: PodInfo) -> bool:
        """Unreserve and forget an assumed pod; return whether the cache still had it."""
        unreserve(profile, cycle, pod)
        try:
            self._cache.forget_pod(pod)
        except CacheError as error:
            log.warning("Failed to forget pod %s: %s", pod.key, error)
            return False
        return True


def reserve(profile: Profile, cycle: CycleState, pod: PodInfo) -> Status:
    """Run the Reserve plugins for an assumed pod, in order up to the first that fails."""
    verdict = SUCCESS
    with profile.timer.phases[RESERVE] as phase:
        for plugin in profile.reserve_plugins:
            try:
                status = profile.ask(plugin, plugin.reserve, cycle, pod, pod.node_name)
            except PluginFailure as raised:
                verdict = raised.status
                break
            if not status.is_success:
                verdict = reported("reserve", plugin.name, status)
                break
        phase.code = verdict.code
    return verdict


def unreserve(profile: Profile, cycle: CycleState, pod: PodInfo) -> None:
    """Run Unreserve of all Reserve plugins in reverse order; it cannot fail."""
    with profile.timer.phases[UNRESERVE]:
        for plugin in reversed(profile.reserve_plugins):
            profile.notify(plugin, plugin.unreserve, cycle, pod, pod.node_name)


def _ask_permit(
    profile: Profile, cycle: CycleState, pod: PodInfo
) -> tuple[Status, dict[str, float]]:
    """Run the Permit plugins; return Wait if any waits and none rejects.

    The second value has the timeouts in seconds of the plugins that wait.
    """
    timeouts: dict[str, float] = {}
    verdict = SUCCESS
    for plugin in profile.permit_plugins:
        try:
            status, seconds = profile.ask(plugin, plugin.permit, cycle, pod, pod.node_name)
        except PluginFailure as raised:
            return raised.status, {}
        if status.code is Code.WAIT:
            timeouts[plugin.name] = min(seconds, PERMIT_TIMEOUT_SECONDS_MAX)
            verdict = Status(Code.WAIT, (*status.reasons, _SOMEBODY_WAITS))
        elif not status.is_success:
            return reported("permit", plugin.name, status), {}
    return verdict, timeouts
