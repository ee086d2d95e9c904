"""QueueingHints decides whether an event may make an unschedulable pod schedulable.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, isEventOfInterest and
          isPodWorthRequeuing (v1.36)
Invariants: a pod whose strategy for an event is not SKIP is filed under a topic of that event.
Differs:  hints are called in the order of registration; upstream calls them in map order, with the
          same result; a hint that depends only on the pod's template is called, and timed, once
          for all pods of a template that an event may move; a hint with a filing is called only
          for pods that the filing finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import ClusterEvent, Filing
from kubesched.framework.plugin_answers import refuse
from kubesched.framework.plugin_error import PluginError, ReportPluginError, log_plugin_error
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.moves import ClusterChange
from kubesched.queue.registrations import Registration
from kubesched.queue.unschedulable_pods import Topic
from kubesched.snapshot.pod_info import PodTemplate, uid_of


class QueueingStrategy(Enum):
    """What to do with an unschedulable pod after an event."""

    SKIP = "skip"  # the pod stays in unschedulablePods
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"  # a pending plugin got what it was waiting for


PodKind = tuple[PodTemplate, frozenset[str], frozenset[str]]
"""What the strategies of most pods depend on: the template, and the plugins that rejected it."""

# (registration with a hint, change, unschedulable pod) -> whether to queue the pod; may raise.
AskHint = Callable[[Registration, ClusterChange, Pod], bool]

HINT: Final = "QueueingHint"
"""The name of a hint's extension point in reports of exceptions."""

_ANY_EVENT: Final[Topic] = ("", "")
"""The topic of pods that any event moves: no plugin rejected them, or their profile is unknown."""


def ask_hint(registration: Registration, change: ClusterChange, pod: Pod) -> bool:
    """Call a registration's hint; a registration without one always queues the pod."""
    if registration.hint is None:
        return True
    answer: bool | None = registration.hint(pod, change.old, change.new)
    if answer is None:
        refuse("a queueing hint", "True or False", answer)
    return answer


def kind_of(queued: QueuedPodInfo) -> PodKind:
    """Return the kind of a pod."""
    return queued.pod_info.template, queued.unschedulable_plugins, queued.pending_plugins


class _Matches(msgspec.Struct, frozen=True):
    """The registrations that match one event.

    Attributes:
        by_profile: The matching registrations, by profile.
        plugins: Their plugins.
        topics: Topics of plugins whose hints are called for every pod that they rejected.
        filings: Topics of the other plugins, each with the filing that narrows it down.
    """

    by_profile: Mapping[str, Sequence[Registration]]
    plugins: frozenset[str]
    topics: Sequence[Topic]
    filings: Sequence[tuple[Topic, Filing]]


StrategyOf = Callable[[QueuedPodInfo], QueueingStrategy]


class QueueingHints:
    """The registrations of all profiles; exceptions of hints are reported."""

    def __init__(
        self, registrations: Mapping[str, Sequence[Registration]], ask: AskHint = ask_hint
    ) -> None:
        """Set up hints for registrations by profile; `ask` calls a hint."""
        self._registrations = {name: tuple(own) for name, own in registrations.items()}
        self._ask = ask
        self.report_plugin_error: ReportPluginError = log_plugin_error
        self._filings: dict[Topic, dict[Filing, None]] = {}
        for name, own in self._registrations.items():
            for each in own:
                if each.filing is not None:
                    self._filings.setdefault((name, each.plugin), {})[each.filing] = None
        self._matches: dict[ClusterEvent, _Matches] = {}
        self._topics: dict[
            tuple[str, frozenset[str]], tuple[Sequence[Topic], Sequence[tuple[Topic, Filing]]]
        ] = {}

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile registered the event, or it is a wildcard."""
        return bool(self._matches_of(event).plugins) or event.is_wildcard

    def plugins_of(self, event: ClusterEvent) -> frozenset[str]:
        """Return the plugins of any profile that registered the event."""
        return self._matches_of(event).plugins

    def topics_of_pod(self, queued: QueuedPodInfo) -> Sequence[Topic]:
        """Return the topics of a pod: those of each plugin that rejected it."""
        rejected_by = queued.pod_info.scheduler_name, queued.rejecting_plugins
        known = self._topics.get(rejected_by)
        if known is None:
            known = self._topics[rejected_by] = self._topics_of_rejectors(*rejected_by)
        topics, filings = known
        if not filings:
            return topics
        pod = queued.pod_info.pod
        narrower = [(*topic, name) for topic, filing in filings for name in filing.of_pod(pod)]
        return tuple(dict.fromkeys([*topics, *narrower]))

    def _topics_of_rejectors(
        self, name: str, rejectors: frozenset[str]
    ) -> tuple[Sequence[Topic], Sequence[tuple[Topic, Filing]]]:
        """Return the topics of pods that plugins of a profile reject, and how to narrow them."""
        if not rejectors or name not in self._registrations:
            return (_ANY_EVENT,), ()
        topics: list[Topic] = [(name, plugin) for plugin in rejectors]
        found = [(topic, filing) for topic in topics for filing in self._filings.get(topic, ())]
        return tuple(topics), found

    def topics_of_change(self, change: ClusterChange) -> Sequence[Topic] | None:
        """Return the topics of pods that the change may concern; None means all pods."""
        if change.event.is_wildcard:
            return None
        matches = self._matches_of(change.event)
        topics = list(matches.topics)
        for topic, filing in matches.filings:
            names = filing.of_change(change.old, change.new)
            topics += [topic] if names is None else [(*topic, name) for name in names]
        return topics

    def strategy(self, queued: QueuedPodInfo, change: ClusterChange) -> QueueingStrategy:
        """Return the most favourable strategy among the plugins that rejected the pod."""
        rejectors = queued.rejecting_plugins
        if not rejectors:
            return QueueingStrategy.AFTER_BACKOFF
        if change.event.is_wildcard:
            pod = change.new
            is_same = isinstance(pod, Pod) and uid_of(pod) == queued.pod_info.uid
            concerned = pod is None or is_same
            return QueueingStrategy.AFTER_BACKOFF if concerned else QueueingStrategy.SKIP
        matches = self._matches_of(change.event)
        matching = matches.by_profile.get(queued.pod_info.scheduler_name)
        if matching is None:
            return QueueingStrategy.AFTER_BACKOFF
        pending, strategy = queued.pending_plugins, QueueingStrategy.SKIP
        for registration in matching:
            if registration.plugin not in rejectors:
                continue
            if not self._is_queued_by(registration, change, queued):
                continue
            if registration.plugin in pending:
                return QueueingStrategy.IMMEDIATELY
            if not pending:
                return QueueingStrategy.AFTER_BACKOFF
            strategy = QueueingStrategy.AFTER_BACKOFF
        return strategy

    def is_shared(self, queued: QueuedPodInfo, change: ClusterChange) -> bool:
        """Whether a change has the same strategy for all pods of a pod's template.

        The pods were rejected by the same plugins.
        """
        if isinstance(change.new, Pod) and not change.new.spec.node_name:
            # A hint may return something else for this pod than for others of its template.
            return False
        rejectors = queued.rejecting_plugins
        matching = self._matches_of(change.event).by_profile
        return all(
            each.hint is None or each.per_template
            for each in matching.get(queued.pod_info.scheduler_name, ())
            if each.plugin in rejectors
        )

    def strategies(self, change: ClusterChange) -> StrategyOf:
        """Return a function equal to `strategy` for one change, faster for many pods."""
        known: dict[PodKind | str, QueueingStrategy] = {}
        shared: dict[tuple[str, frozenset[str], frozenset[str]], bool] = {}

        def strategy_of(queued: QueuedPodInfo) -> QueueingStrategy:
            kind = kind_of(queued)
            strategy = known.get(kind) or known.get(queued.key)
            if strategy is None:
                strategy = self.strategy(queued, change)
                rejected_by = queued.pod_info.scheduler_name, kind[1], kind[2]
                is_shared = shared.get(rejected_by)
                if is_shared is None:
                    is_shared = shared[rejected_by] = self.is_shared(queued, change)
                known[kind if is_shared else queued.key] = strategy
            return strategy

        return strategy_of

    def strategy_of_all(
        self, queued: QueuedPodInfo, changes: Iterable[ClusterChange]
    ) -> QueueingStrategy:
        """Return the most favourable strategy that any of the changes has for the pod."""
        found = QueueingStrategy.SKIP
        for change in changes:
            strategy = self.strategy(queued, change)
            if strategy is QueueingStrategy.IMMEDIATELY:
                return strategy
            if strategy is QueueingStrategy.AFTER_BACKOFF:
                found = strategy
                if not queued.pending_plugins:
                    break
        return found

    def _is_queued_by(
        self, registration: Registration, change: ClusterChange, queued: QueuedPodInfo
    ) -> bool:
        try:
            return self._ask(registration, change, queued.pod_info.pod)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            # An unnecessary attempt does no harm, a pod that is never retried does.
            found = PluginError(registration.plugin, HINT, queued.key, error, registration.hint)
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
            matches = _Matches(
                by_profile,
                frozenset(each.plugin for _, each in every),
                (*topics, _ANY_EVENT),
                filings,
            )
            self._matches[event] = matches
        return matches
