"""Waiting pods were rejected; which of them are worth another try after what happened since?

Events are weighed when nothing else is left to try, and once per template of the pod that came or
went: pods of one template look the same to a queueing hint.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, isPodWorthRequeuing (v1.36)
Invariants: a pod is woken if a hint of a plugin that rejected it says so; it may also be woken in
            vain, which costs an attempt and changes no decision.
Differs:  hints are asked about templates; when there are too many pairs of templates they are not
          asked, and the pod is tried again, as upstream does when a hint fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import ASSIGNED_POD, Action, ClusterEvent, QueueingHint
from kubesched.framework.plugin import Plugin
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

POD_ADDED: Final = ClusterEvent(ASSIGNED_POD, Action.ADD)
POD_DELETED: Final = ClusterEvent(ASSIGNED_POD, Action.DELETE)

_HINTS_MAX: Final = 1_000_000


class _Happened(msgspec.Struct):
    """Pods of one template that came or went: one of them, and when the last of them did."""

    event: ClusterEvent
    pod: Pod
    last: int


class _Waiting(msgspec.Struct, frozen=True):
    queued: QueuedPodInfo
    scheduler_name: str
    since: int


# Profile, plugins that rejected, template: pods that all hints answer alike.
_Kind = tuple[str, frozenset[str], PodTemplate]
_Cause = tuple[Action, PodTemplate]


class WaitingPods:
    """Pods that were rejected, and what happened since.

    Attributes:
        hints_asked: How many hints were asked in this run.
    """

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._hints = {
            (name, plugin.name, event.action): tuple(_hints_of(plugin, event))
            for name, profile in profiles.items()
            for plugin in profile.plugins.values()
            for event in (POD_ADDED, POD_DELETED)
        }
        self._waiting: dict[str, _Waiting] = {}
        self._happened: dict[_Cause, _Happened] = {}
        self._answers: dict[tuple[_Kind, _Cause], bool] = {}
        self._now = 0
        self.hints_asked = 0

    def add(self, queued: QueuedPodInfo, scheduler_name: str) -> None:
        """Let a pod wait for what happens from now on.

        A pod that no plugin rejected, because one failed, is worth another try after any event.
        """
        waiting = _Waiting(queued, scheduler_name, self._now)
        self._waiting[queued.pod_info.uid] = waiting

    def happened(self, event: ClusterEvent, info: PodInfo) -> None:
        """Take note that a pod was placed or evicted; `info.pod` has its node name."""
        self._now += 1
        cause = (event.action, info.template)
        known = self._happened.get(cause)
        if known is None:
            self._happened[cause] = _Happened(event, info.pod, self._now)
        else:
            known.last = self._now

    def woken(self) -> list[QueuedPodInfo]:
        """Return the pods that are worth another try, and let them wait no longer.

        What happened so far is forgotten; call it when all pods have been tried.
        """
        found = [w.queued for w in self._waiting.values() if self._is_worth_a_try(w)]
        for queued in found:
            del self._waiting[queued.pod_info.uid]
        self._happened.clear()
        self._answers.clear()
        return found

    def _is_worth_a_try(self, waiting: _Waiting) -> bool:
        rejectors = waiting.queued.rejecting_plugins
        if not rejectors:
            return self._now > waiting.since
        name = waiting.scheduler_name
        listens = {
            event.action: any(self._hints.get((name, p, event.action)) for p in rejectors)
            for event in (POD_ADDED, POD_DELETED)
        }
        if not any(listens.values()):
            return False
        kind = (name, rejectors, waiting.queued.pod_info.template)
        return any(
            happened.last > waiting.since
            and listens[happened.event.action]
            and self._helps(kind, cause, happened, waiting.queued.pod_info.pod)
            for cause, happened in self._happened.items()
        )

    def _helps(self, kind: _Kind, cause: _Cause, happened: _Happened, target: Pod) -> bool:
        key = (kind, cause)
        answer = self._answers.get(key)
        if answer is None:
            if self.hints_asked >= _HINTS_MAX:
                return True
            answer = self._answers[key] = self._ask(kind, happened, target)
        return answer

    def _ask(self, kind: _Kind, happened: _Happened, target: Pod) -> bool:
        added = happened.event is POD_ADDED
        old, new = (None, happened.pod) if added else (happened.pod, None)
        name, rejectors, _ = kind
        for plugin in sorted(rejectors):
            for hint in self._hints.get((name, plugin, happened.event.action), ()):
                self.hints_asked += 1
                if _says_queue(hint, target, old, new):
                    return True
        return False


def _says_queue(
    hint: QueueingHint | None, target: Pod, old: object | None, new: object | None
) -> bool:
    if hint is None:
        return True
    try:
        return hint(target, old, new)
    except Exception:  # noqa: BLE001 - a hint that fails is no reason to leave the pod waiting
        return True


def _hints_of(plugin: Plugin, event: ClusterEvent) -> Iterator[QueueingHint | None]:
    registered = plugin.events_to_register()
    if registered is None:
        # Whoever does not say what helps may be helped by anything.
        yield None
        return
    for entry in registered:
        if entry.event.matches(event):
            yield entry.hint
