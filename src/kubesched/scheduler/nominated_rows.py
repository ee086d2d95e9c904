"""NominatedRows filters nodes once more with the pods that are nominated to them.

A nominated pod is on its way to a node, so pods of lower or equal priority must leave room for it.
Hundreds of nodes may have nominated pods while few of them change from one pod to the next. So the
rejections of pods of one signature and priority are kept, and only rows that changed, or whose
nominations did, are filtered again. Where they cannot be kept, rows are filtered together if no
plugin's state changes with the nominated pods.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods (v1.36)
Invariants: a kept rejection equals a fresh one.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from kubesched.framework.plugin import Scope
from kubesched.framework.status import SUCCESS, Status
from kubesched.scheduler.answers import Answers
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.search import Attempt
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.nominator import ChangedNominations
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_OUTCOMES_MAX: Final = 512
_ALONE_MAX: Final = 12
"""Up to this number of rows, it is faster to filter them one by one."""


class NominatedRows:
    """The rejections by row for the pods of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # By priority. They end with the remembered answers of their signature.
        self._kept: WeakKeyDictionary[Answers, dict[int, _Rejections]] = WeakKeyDictionary()

    def rejections(self, attempt: Attempt, nodes: NodeTable) -> Mapping[int, Status]:
        """Return the rejections by row of `nodes`; callers must not write to them.

        Raises PluginFailure if a filter fails.
        """
        known, snapshot, skipped = attempt.known, attempt.snapshot, attempt.cycle.skip_filter
        remembers = known.plan.knows_any and all(
            plugin.name in skipped for _, plugin in known.plan.filters
        )
        trial = _Trial(self._profile, attempt, known if remembers else None)
        if remembers and nodes is snapshot.nodes:
            kept = self._kept.setdefault(known, {}).setdefault(attempt.pod.priority, _Rejections())
            return kept.updated(trial)
        statuses = trial.ask_all(_names_in(nodes, snapshot))
        return {nodes.row_of[name]: found for name, found in statuses.items() if found != SUCCESS}


class _Trial:
    """A pod, which is filtered on the nodes of `snapshot` with the pods nominated to them."""

    def __init__(self, profile: Profile, attempt: Attempt, known: Answers | None) -> None:
        self.snapshot = attempt.snapshot
        self.pod = attempt.pod
        self._profile = profile
        self._cycle = attempt.cycle
        self._known = known

    def ask(self, name: str, outcomes: dict[Hashable, Status]) -> Status:
        """Return the status of a node with the pods nominated to it.

        `outcomes` keeps statuses by the amounts of the row and of the pods nominated to it.
        """
        nominated = self.snapshot.nominated.ahead_of(self.pod, name)
        if not nominated:
            return SUCCESS
        nodes = self.snapshot.nodes
        row = nodes.row_of[name]
        # Filters that read nothing of the pods answer as without them.
        passing = () if self._known is None else self._known.passed_node_filters(row)
        key: Hashable = None
        if self._reading_more is not None and self._reading_more.issubset(passing):
            key = nodes.usage(row), tuple([each.template.amounts for each in nominated])
            status = outcomes.get(key)
            if status is not None:
                self._profile.count_filters(self._cycle, 1, status.plugin)
                return status
        one = nodes.take(np.array([row], np.intp))
        status = self._profile.filter_with(nominated, self._cycle, self.pod, one, passing)
        if not (status.is_success or status.is_rejected):
            raise PluginFailure(status)
        if key is not None:
            if len(outcomes) >= _OUTCOMES_MAX:
                outcomes.clear()
            outcomes[key] = status
        return status

    def ask_all(self, names: Iterable[str]) -> Mapping[str, Status]:
        """Return the statuses of nodes with the pods nominated to them."""
        is_ignored = self._profile.ignoring((), self._cycle, self.pod)
        ahead = {name: self.snapshot.nominated.ahead_of(self.pod, name) for name in names}
        together = {name: pods for name, pods in ahead.items() if all(map(is_ignored, pods))}
        if len(together) <= _ALONE_MAX:
            together = {}
        outcomes: dict[Hashable, Status] = {}
        alone = {name: self.ask(name, outcomes) for name in ahead if name not in together}
        return {**alone, **self._ask_together(together)}

    def _ask_together(self, ahead: Mapping[str, Sequence[PodInfo]]) -> Mapping[str, Status]:
        """Return the statuses of nodes whose nominated pods, `ahead`, change no state."""
        nodes = self.snapshot.nodes
        fuller = nodes.take(np.array([nodes.row_of[name] for name in ahead], np.intp))
        fuller.add_pods([(at, pod) for at, pods in enumerate(ahead.values()) for pod in pods])
        found = self._profile.filter_rows(self._cycle, self.pod, fuller)
        for status in found.statuses:
            if not (status.is_success or status.is_rejected):
                raise PluginFailure(status)
        return {name: found[at] for at, name in enumerate(ahead)}

    @cached_property
    def _reading_more(self) -> frozenset[str] | None:
        """The filters that read more than the amounts of a row; None if that is not known."""
        if self._cycle.follows_pods:
            return None
        filters, skipped = self._profile.filter_plugins, self._cycle.skip_filter
        return frozenset(p.name for p in filters if p.scope is not Scope.USAGE).difference(skipped)


class _Rejections:
    """The rejections by row for pods of one signature and priority."""

    def __init__(self) -> None:
        self._by_row: dict[int, Status] = {}
        self._outcomes: dict[Hashable, Status] = {}
        self._changed: ChangeReader[int] = ChangeReader()
        self._nominated = ChangedNominations()

    def updated(self, trial: _Trial) -> Mapping[int, Status]:
        """Return the rejections after asking about the nodes that changed."""
        row_of = trial.snapshot.nodes.row_of
        names = self._names_to_ask(trial.snapshot, trial.pod)
        try:
            for name in names:
                status = trial.ask(name, self._outcomes)
                if status == SUCCESS:
                    self._by_row.pop(row_of[name], None)
                else:
                    self._by_row[row_of[name]] = status
        except PluginFailure:
            # Some rows may be updated and others not: ask about all next time.
            self._changed.forget()
            raise
        return self._by_row

    def _names_to_ask(self, snapshot: Snapshot, pod: PodInfo) -> Iterable[str]:
        """Return the nodes to ask about, and drop the rejections by others that changed."""
        nodes, nominated = snapshot.nodes, snapshot.nominated
        rows = self._changed.read(nodes.changes)
        names = self._nominated.read(nominated, pod.uid)
        if rows is None or names is None:
            self._by_row.clear()
            return _names_in(nodes, snapshot)
        changed = dict.fromkeys((*names, *[nodes.names[row] for row in rows]))
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
