"""Waiting pods: rejected pods, and which of them to try again after events.

Events are evaluated when no other pod is left to try, once per template of the pod that was placed
or evicted: pods of one template are equal to a queueing hint.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, isPodWorthRequeuing (v1.36)
Invariants: a pod is requeued if a hint of a plugin that rejected it returns Queue; an unnecessary
            retry costs an attempt but changes no decision.
Differs:  hints are called per template; with too many pairs of templates they are skipped and the
          pod is tried again, as upstream does if a hint fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import ASSIGNED_POD, Action, ClusterEvent, QueueingHint
from kubesched.framework.plugin import Plugin
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.hinting import HINT
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

POD_ADDED: Final = ClusterEvent(ASSIGNED_POD, Action.ADD)
POD_DELETED: Final = ClusterEvent(ASSIGNED_POD, Action.DELETE)

HINTS_MAX: Final = 1_000_000
"""Maximum number of hint calls in a simulation, which take about a second."""


class _Happened(msgspec.Struct, frozen=True):
    """The last placed or evicted pod of one template, and when that was."""

    event: ClusterEvent
    pod: Pod
    at: int


class _Waiting(msgspec.Struct, frozen=True):
    queued: QueuedPodInfo
    scheduler_name: str
    since: int


# Profile, rejecting plugins and template: all hints treat such pods equally.
_Kind = tuple[str, frozenset[str], PodTemplate]


class WaitingPods:
    """Rejected pods, and events since their rejection.

    Attributes:
        hints_asked: Number of hint calls so far.
    """

    def __init__(self, profiles: Mapping[str, Profile], hints_max: int = HINTS_MAX) -> None:
        self._hints = {
            (name, plugin.name, event.action): tuple(_hints_of(profile, plugin, event))
            for name, profile in profiles.items()
            for plugin in profile.plugins.values()
            for event in (POD_ADDED, POD_DELETED)
        }
        self._waiting: dict[str, _Waiting] = {}
        # In order of their last event.
        self._happened: dict[tuple[Action, PodTemplate], _Happened] = {}
        self._now = 0
        self._hints_max = hints_max
        self.hints_asked = 0

    def add(self, queued: QueuedPodInfo, scheduler_name: str) -> None:
        """Add a rejected pod, to be tried again after later events.

        After an error without a rejecting plugin, any event requeues the pod.
        """
        waiting = _Waiting(queued, scheduler_name, self._now)
        self._waiting[queued.pod_info.uid] = waiting

    def happened(self, event: ClusterEvent, info: PodInfo) -> None:
        """Record that a pod was placed or evicted; `info.pod` has its node name."""
        self._now += 1
        cause = (event.action, info.template)
        self._happened.pop(cause, None)
        self._happened[cause] = _Happened(event, info.pod, self._now)

    def woken(self) -> list[QueuedPodInfo]:
        """Remove and return the pods to try again.

        Events so far are dropped; call it when all pods have been tried.
        """
        helped: dict[_Kind, int] = {}
        found: list[QueuedPodInfo] = []
        for waiting in self._waiting.values():
            queued = waiting.queued
            rejectors = queued.rejecting_plugins
            kind = (waiting.scheduler_name, rejectors, queued.pod_info.template)
            if not rejectors:
                last = self._now
            elif kind in helped:
                last = helped[kind]
            else:
                last = helped[kind] = self._last_helpful_event(kind, queued.pod_info.pod)
            if last > waiting.since:
                found.append(queued)
        for queued in found:
            del self._waiting[queued.pod_info.uid]
        self._happened.clear()
        return found

    def _last_helpful_event(self, kind: _Kind, target: Pod) -> int:
        """Return the time of the last event that may help pods of a kind; 0 if none."""
        name, rejectors, _ = kind
        hints = {
            event.action: tuple(
                hint
                for plugin in sorted(rejectors)
                for hint in self._hints.get((name, plugin, event.action), ())
            )
            for event in (POD_ADDED, POD_DELETED)
        }
        if not any(hints.values()):
            return 0
        for (action, _), happened in reversed(self._happened.items()):
            if self.hints_asked >= self._hints_max:
                return happened.at
            if any(self._helps(hint, happened, target) for hint in hints[action]):
                return happened.at
        return 0

    def _helps(self, hint: QueueingHint | None, happened: _Happened, target: Pod) -> bool:
        self.hints_asked += 1
        added = happened.event is POD_ADDED
        old, new = (None, happened.pod) if added else (happened.pod, None)
        return hint is None or hint(target, old, new)


def _returns_queue(
    profile: Profile,
    plugin: Plugin,
    hint: QueueingHint,
    target: Pod,
    old: object | None,
    new: object | None,
) -> bool:
    try:
        return hint(target, old, new)
    except Exception as error:  # noqa: BLE001 - if a hint fails, the pod is tried again
        metadata = target.metadata
        profile.report(plugin, HINT, f"{metadata.namespace}/{metadata.name}", error)
        return True


def _hints_of(
    profile: Profile, plugin: Plugin, event: ClusterEvent
) -> Iterator[QueueingHint | None]:
    registered = plugin.events_to_register()
    if registered is None:
        # Any event may help a plugin that registers none.
        yield None
        return
    for entry in registered:
        if entry.event.matches(event):
            hint = entry.hint
            yield None if hint is None else partial(_returns_queue, profile, plugin, hint)
