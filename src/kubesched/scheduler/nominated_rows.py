"""NominatedRows filters nodes once more with the pods that are nominated to them.

A nominated pod is on its way to a node, so pods of lower or equal priority must leave room for it.
Hundreds of nodes may have nominated pods while few of them change from one pod to the next. So the
rejections of pods of one signature and priority are kept, and only rows that changed, or whose
nominations did, are filtered again.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods (v1.36)
Invariants: a kept rejection equals a fresh one.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from kubesched.framework.cycle_state import is_clonable
from kubesched.framework.plugin import FilterPlugin, Scope
from kubesched.framework.status import SUCCESS, Status
from kubesched.scheduler.answers import Answers
from kubesched.scheduler.attempt import Attempt
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.changed_rows import ChangedRows
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import NO_NOMINATED_PODS, Snapshot

_OUTCOMES_MAX: Final = 512
_ALONE_MAX: Final = 12
"""Up to so many rows are asked about one by one."""


class NominatedRows:
    """The rejections by row for the pods of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # By priority. They end with the remembered answers of their signature.
        self._kept: WeakKeyDictionary[Answers, dict[int, _Rejections]] = WeakKeyDictionary()

    def rejections(self, attempt: Attempt, nodes: NodeTable) -> Mapping[int, Status]:
        """Return the rejections by row of `nodes`; callers must not write to them.

        Raises:
            PluginFailure: if a filter fails.
        """
        known, snapshot, skipped = attempt.known, attempt.snapshot, attempt.cycle.skip_filter
        trial, kept = _Trial(self._profile, attempt), _Rejections()
        unknown = {p.scope for _, p in known.plan.filters if p.name not in skipped}
        if known.plan.knows_any and Scope.USAGE not in unknown:
            kept = self._kept.setdefault(known, {}).setdefault(attempt.pod.priority, kept)
            if not unknown and nodes is snapshot.nodes:
                return kept.updated(trial)
        names = _names_in(nodes, snapshot)
        if len(names) > _ALONE_MAX and trial.rows_are_independent:
            return {nodes.row_of[name]: found for name, found in trial.rejected(names)}
        statuses = {name: trial.ask(name, kept.outcomes) for name in names}
        return {nodes.row_of[name]: found for name, found in statuses.items() if found != SUCCESS}


class _Trial:
    """A pod, which is filtered on nodes with the pods that are nominated to them.

    Attributes:
        snapshot: The cluster.
        own: The node that the pod itself is nominated to; "" if none.
    """

    def __init__(self, profile: Profile, attempt: Attempt) -> None:
        self.snapshot = attempt.snapshot
        self.own = attempt.snapshot.nominated.node_of(attempt.pod.uid)
        self._profile = profile
        self._cycle = attempt.cycle
        self._pod = attempt.pod
        self._known = attempt.known

    def ask(self, name: str, outcomes: dict[Hashable, Status]) -> Status:
        """Return the status of a node with the pods nominated to it.

        `outcomes` has the statuses of rows with equal amounts whose nominated pods are alike, and
        is added to.
        """
        nominated = self.snapshot.nominated.ahead_of(self._pod, name)
        if not nominated:
            return SUCCESS
        nodes = self.snapshot.nodes
        row = nodes.row_of[name]
        # Filters that read nothing of the pods answer as without them.
        passing = self._known.passed_node_filters(row)
        is_settled = bool(self._last_filters) and all(map(self._is_ignored, nominated))
        if is_settled:
            passing += self._last_filters
        key: Hashable = None
        if (is_settled or self._is_stateless) and self._reading_more.issubset(passing):
            key = nodes.usage(row), tuple([each.template.amounts for each in nominated])
            status = outcomes.get(key)
            if status is not None:
                self._profile.count_filters(self._cycle, 1, status.plugin)
                return status
        one = nodes.take(np.array([row], np.intp))
        status = self._profile.filter_with(nominated, self._cycle, self._pod, one, passing)
        if not (status.is_success or status.is_rejected):
            raise PluginFailure(status)
        if key is not None:
            if len(outcomes) >= _OUTCOMES_MAX:
                outcomes.clear()
            outcomes[key] = status
        return status

    def rejected(self, names: Iterable[str]) -> Iterator[tuple[str, Status]]:
        """Yield the nodes that reject the pod with their nominated pods, asked about together.

        Raises:
            PluginFailure: if a filter fails.
        """
        ahead_of, nodes = self.snapshot.nominated.ahead_of, self.snapshot.nodes
        ahead = {name: pods for name in names if (pods := ahead_of(self._pod, name))}
        if not ahead:
            return
        fuller = nodes.take(np.array([nodes.row_of[name] for name in ahead], np.intp))
        fuller.add_pods([(at, pod) for at, pods in enumerate(ahead.values()) for pod in pods])
        found = self._profile.filter_rows(self._cycle, self._pod, fuller)
        asked = [*ahead]
        for at in np.flatnonzero(found.index).tolist():
            if not found[at].is_rejected:
                raise PluginFailure(found[at])
            yield asked[at], found[at]

    @property
    def rows_are_independent(self) -> bool:
        """Whether no plugin has a state that nominated pods change; False without memory."""
        return self._profile.remembers and not self._profile.extensions_of(self._cycle)

    @cached_property
    def _is_stateless(self) -> bool:
        """Whether `add_pod` changes no state."""
        states, skipped = self._cycle.filter_states, self._cycle.skip_filter
        return not any(is_clonable(state) for name, state in states.items() if name not in skipped)

    @cached_property
    def _filters(self) -> list[FilterPlugin[object]]:
        skipped = self._cycle.skip_filter
        return [each for each in self._profile.filter_plugins if each.name not in skipped]

    @cached_property
    def _reading_more(self) -> frozenset[str]:
        """The filters that read more than the amounts of a row."""
        return frozenset(each.name for each in self._filters if each.scope is not Scope.USAGE)

    @cached_property
    def _last_filters(self) -> list[str]:
        """The filters after all others whose states change with pods.

        Where nominated pods are ignored, these filters answer as without them; and as they are the
        last ones, no other rejection would come after theirs. Without memory, nothing is skipped.
        """
        if not self._profile.remembers:
            return []
        extensions = self._profile.pre_filter_extensions
        return [each.name for each in takewhile(extensions.__contains__, reversed(self._filters))]

    @cached_property
    def _is_ignored(self) -> Callable[[PodInfo], bool]:
        return self._profile.ignoring(self._last_filters, self._cycle, self._pod)


class _Rejections:
    """The rejections by row for pods of one signature and priority.

    Attributes:
        outcomes: The statuses of rows by their amounts, see `_Trial.ask`.
    """

    def __init__(self) -> None:
        self._by_row: dict[int, Status] = {}
        self.outcomes: dict[Hashable, Status] = {}
        self._changed = ChangedRows()
        self._nominated: Nominator = NO_NOMINATED_PODS
        self._version = 0
        self._own = ""

    def updated(self, trial: _Trial) -> Mapping[int, Status]:
        """Return the rejections after asking about the nodes that changed."""
        row_of = trial.snapshot.nodes.row_of
        names = self._names_to_ask(trial.snapshot, trial.own)
        try:
            for name in names:
                status = trial.ask(name, self.outcomes)
                if status == SUCCESS:
                    self._by_row.pop(row_of[name], None)
                else:
                    self._by_row[row_of[name]] = status
        except PluginFailure:
            # Some rows may be updated and others not: ask about all next time.
            self._changed.forget()
            raise
        return self._by_row

    def _names_to_ask(self, snapshot: Snapshot, own: str) -> Iterable[str]:
        """Return the nodes to ask about, and drop the rejections by others that changed."""
        nodes, nominated = snapshot.nodes, snapshot.nominated
        rows = self._changed.read(nodes)
        names = nominated.changed_since(self._version) if nominated is self._nominated else None
        self._nominated, self._version = nominated, nominated.version
        # The pod's own nomination does not count for it.
        own_nodes, self._own = (own, self._own), own
        if rows is None or names is None:
            self._by_row.clear()
            return _names_in(nodes, snapshot)
        changed = dict.fromkeys((*names, *[nodes.names[row] for row in rows], *own_nodes))
        known = [name for name in changed if name in nodes.row_of]
        for name in known:
            if name not in nominated.by_node:
                self._by_row.pop(nodes.row_of[name], None)
        return [name for name in known if name in nominated.by_node]


def _names_in(nodes: NodeTable, snapshot: Snapshot) -> list[str]:
    """Return the nodes of a table that have nominated pods."""
    by_node = snapshot.nominated.by_node
    if len(nodes) < len(by_node):
        return [name for name in nodes.names if name in by_node]
    return [name for name in by_node if name in nodes.row_of]
