"""QueueingHints decides whether an event makes a waiting pod worth another try.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, isEventOfInterest and
          isPodWorthRequeuing (v1.36)
Invariants: a pod whose strategy for an event is not SKIP is filed under a topic of that event.
Differs:  hints are asked in the order of registration; upstream asks in the order of a map, and the
          answer is the same; a hint whose answer depends on nothing but the pod's template is
          asked, and timed, once for all pods of a template that an event may move, and one with a
          filing only about pods that it may queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.config.types import DEFAULT_SCHEDULER_NAME
from kubesched.framework.cluster_event import ClusterEvent, Filing
from kubesched.framework.plugin_error import PluginError, ReportPluginError, log_plugin_error
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.queue_events import Change
from kubesched.queue.registrations import Registration
from kubesched.queue.unschedulable_pods import Topic
from kubesched.snapshot.pod_info import PodInfo, PodTemplate


class Strategy(Enum):
    """What an event means for a waiting pod."""

    SKIP = "skip"  # it waits on
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"  # what the pod was waiting for has happened


# (registration with a hint, incoming change, waiting pod) -> whether to queue; may raise.
AskHint = Callable[[Registration, Change, Pod], bool]

HINT: Final = "QueueingHint"
"""Stands for the extension point where a hint raises."""

_ANY_EVENT: Final[Topic] = ("", "")
"""The topic of pods that any event takes along: nothing rejected them, or nobody knows them."""


def ask_hint(registration: Registration, change: Change, pod: Pod) -> bool:
    """Ask a registration's hint; a shell that times or logs hints wraps this."""
    return registration.hint is None or registration.hint(pod, change.old, change.new)


def scheduler_name_of(info: PodInfo) -> str:
    """Return the name of the profile that schedules the pod."""
    return info.pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME


class _Matches(msgspec.Struct, frozen=True):
    """What is registered for one incoming event.

    Attributes:
        is_wildcard: Whether it concerns every pod.
        is_of_interest: Whether there is anything.
        by_profile: The registrations.
        topics: Those of plugins whose hints are asked about every pod that they rejected.
        filings: The topics of other plugins, each with a filing that makes it narrower.
    """

    is_wildcard: bool
    is_of_interest: bool
    by_profile: Mapping[str, Sequence[Registration]]
    topics: Sequence[Topic]
    filings: Sequence[tuple[Topic, Filing]]


class QueueingHints:
    """The registrations of all profiles.

    Attributes:
        report_plugin_error: Receives what hints raise.
    """

    def __init__(
        self, registrations: Mapping[str, Sequence[Registration]], ask: AskHint = ask_hint
    ) -> None:
        """Take the registrations by profile, and what asks a hint."""
        self._registrations = {name: tuple(own) for name, own in registrations.items()}
        self._ask = ask
        self.report_plugin_error: ReportPluginError = log_plugin_error
        self._events_of: dict[str, tuple[ClusterEvent, ...]] = {}
        for own in self._registrations.values():
            for each in own:
                self._events_of[each.plugin] = (*self._events_of.get(each.plugin, ()), each.event)
        self._filings: dict[Topic, dict[Filing, None]] = {}
        for name, own in self._registrations.items():
            for each in own:
                if each.filing is not None:
                    self._filings.setdefault((name, each.plugin), {})[each.filing] = None
        self._matches: dict[ClusterEvent, _Matches] = {}

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile registered the event; a wildcard always is."""
        return self._matches_of(event).is_of_interest

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """Return what a plugin registered in all profiles."""
        return self._events_of.get(plugin, ())

    def topics_of_pod(self, queued: QueuedPodInfo) -> Sequence[Topic]:
        """Return the topics to file a pod under: those of each plugin that rejected it."""
        name = scheduler_name_of(queued.pod_info)
        rejectors = queued.rejecting_plugins
        if not rejectors or name not in self._registrations:
            return (_ANY_EVENT,)
        topics: list[Topic] = [(name, plugin) for plugin in rejectors]
        for topic in tuple(topics):
            for filing in self._filings.get(topic, ()):
                topics += ((*topic, about) for about in filing.of_pod(queued.pod_info.pod))
        return tuple(dict.fromkeys(topics))

    def topics_of_change(self, change: Change) -> Sequence[Topic] | None:
        """Return the topics of pods that the change may concern; None for all pods."""
        matches = self._matches_of(change.event)
        if matches.is_wildcard:
            return None
        topics = list(matches.topics)
        for topic, filing in matches.filings:
            about = filing.of_change(change.old, change.new)
            topics.append(topic if about is None else (*topic, about))
        return topics

    def strategy(self, queued: QueuedPodInfo, change: Change) -> Strategy:
        """Weigh a change for a pod: the best that a plugin which rejected it makes of it."""
        rejectors = queued.rejecting_plugins
        if not rejectors:
            return Strategy.AFTER_BACKOFF
        matches = self._matches_of(change.event)
        if matches.is_wildcard:
            meant = change.new is None or _is_same_pod(queued.pod_info, change.new)
            return Strategy.AFTER_BACKOFF if meant else Strategy.SKIP
        matching = matches.by_profile.get(scheduler_name_of(queued.pod_info))
        if matching is None:
            return Strategy.AFTER_BACKOFF
        pending, strategy = queued.pending_plugins, Strategy.SKIP
        for registration in matching:
            if registration.plugin not in rejectors:
                continue
            if not self._is_queued_by(registration, change, queued):
                continue
            if registration.plugin in pending:
                return Strategy.IMMEDIATELY
            if not pending:
                return Strategy.AFTER_BACKOFF
            strategy = Strategy.AFTER_BACKOFF
        return strategy

    def strategies(self, change: Change) -> Callable[[QueuedPodInfo], Strategy]:
        """Return what weighs a change for many pods, as `strategy` does for one."""
        if _is_waiting_pod(change.new):
            # A hint may answer otherwise for this pod itself than for its siblings.
            return lambda queued: self.strategy(queued, change)
        shared: dict[tuple[PodTemplate, frozenset[str], frozenset[str]], Strategy | None] = {}

        def weigh(queued: QueuedPodInfo) -> Strategy:
            info = queued.pod_info
            kind = info.template, queued.unschedulable_plugins, queued.pending_plugins
            known = shared.get(kind)
            if known is not None:
                return known
            strategy = self.strategy(queued, change)
            if kind not in shared:
                shared[kind] = strategy if self._is_shared(queued, change) else None
            return strategy

        return weigh

    def _is_shared(self, queued: QueuedPodInfo, change: Change) -> bool:
        """Whether the strategy is the same for all pods of the template."""
        rejectors = queued.rejecting_plugins
        matching = self._matches_of(change.event).by_profile
        return all(
            each.hint is None or each.per_template
            for each in matching.get(scheduler_name_of(queued.pod_info), ())
            if each.plugin in rejectors
        )

    def strategy_of_all(self, queued: QueuedPodInfo, changes: Iterable[Change]) -> Strategy:
        """Weigh several changes: the best that any of them means for the pod."""
        found = Strategy.SKIP
        for change in changes:
            strategy = self.strategy(queued, change)
            if strategy is Strategy.IMMEDIATELY:
                return strategy
            if strategy is Strategy.AFTER_BACKOFF:
                found = strategy
                if not queued.pending_plugins:
                    break
        return found

    def _is_queued_by(
        self, registration: Registration, change: Change, queued: QueuedPodInfo
    ) -> bool:
        try:
            return self._ask(registration, change, queued.pod_info.pod)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            # A try too many does no harm, a pod that waits for ever does.
            found = PluginError(registration.plugin, HINT, queued.pod_info.key, error)
            if found.places:
                self.report_plugin_error(found)
            return True

    def _matches_of(self, event: ClusterEvent) -> _Matches:
        matches = self._matches.get(event)
        if matches is None:
            by_profile = {
                name: tuple(each for each in own if each.event.matches(event))
                for name, own in self._registrations.items()
            }
            every = [
                ((name, each.plugin), each) for name, own in by_profile.items() for each in own
            ]
            topics = {topic: None for topic, each in every if each.filing is None}
            filings = [
                (topic, each.filing)
                for topic, each in every
                if each.filing is not None and topic not in topics
            ]
            is_of_interest = event.is_wildcard or bool(every)
            matches = _Matches(
                event.is_wildcard, is_of_interest, by_profile, (*topics, _ANY_EVENT), filings
            )
            self._matches[event] = matches
        return matches


def _is_waiting_pod(item: object) -> bool:
    return isinstance(item, Pod) and not item.spec.node_name


def _is_same_pod(info: PodInfo, other: object) -> bool:
    if not isinstance(other, Pod):
        return False
    metadata = other.metadata
    return info.uid == (metadata.uid or f"{metadata.namespace}/{metadata.name}")
