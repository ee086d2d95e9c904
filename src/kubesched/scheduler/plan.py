"""Plan lists the plugins a cycle runs and the PreFilter and PreScore results of the others.

`scheduler.memory` keeps a profile's answers for equal pods. What a plugin's answer for a row
depends on (`scope`) and what it reads of the pod (`sign`) decide which answers can be kept.

Invariants: a plan depends on the pod's signature alone.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from functools import cache
from typing import Final

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.phase_timer import PRE_FILTER, PRE_SCORE
from kubesched.framework.plugin import (
    NOT_SHARED,
    UNSIGNED,
    FilterPlugin,
    NoState,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Scope,
    ScorePlugin,
)
from kubesched.framework.status import SUCCESS
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

Skip = tuple[str, str]
"""The extension point at which a plugin skips a pod, and its name."""

NOT_KEPT: Final = (UNSIGNED, NOT_SHARED)
NODE_SCOPES: Final = frozenset((Scope.NODE, Scope.NODES))
ROW_SCOPES: Final = frozenset((Scope.ROW, Scope.USAGE))


@cache
def only_adds(plugin: type[Plugin]) -> bool:
    """Whether a plugin only adds a score that depends on no other plugin, and has no state."""
    others = PreFilterPlugin, FilterPlugin, PreScorePlugin
    if not issubclass(plugin, ScorePlugin) or issubclass(plugin, others):
        return False
    return not plugin.normalizes and plugin.score_state is ScorePlugin.score_state


class Plan:
    """The plugins to run for pods of one signature.

    Attributes:
        usable: Whether answers can be kept for these pods at all.
        states: The states and Skips that a cycle begins with, of known plugins and of those whose
            sign is shared.
        pre_filters, filters, pre_scores, scores: Plugins to run in each cycle; filters with their
            position in the profile.
        filter_states_to_make, score_states_to_make: Plugins whose state each cycle creates.
        known_filters, known_scores: Plugins whose answers are kept.
    """

    def __init__(self, profile: Profile) -> None:
        """Set up a plan that runs every plugin in each cycle."""
        self.usable = True
        self.states = CycleState()
        self.pre_filters: list[PreFilterPlugin[object]] = list(profile.pre_filter_plugins)
        self.filter_states_to_make = list(profile.filters_without_pre_filter)
        self.filters = list(enumerate(profile.filter_plugins))
        self.pre_scores: list[PreScorePlugin[object]] = list(profile.pre_score_plugins)
        self.score_states_to_make = list(profile.scores_without_pre_score)
        self.scores: list[ScorePlugin[object]] = list(profile.score_plugins)
        self.known_filters: list[tuple[int, FilterPlugin[object]]] = []
        self.known_scores: list[ScorePlugin[object]] = []
        self._without: dict[frozenset[Skip], Plan] = {}

    @classmethod
    def keeping(
        cls,
        scopes: Collection[Scope],
        profile: Profile,
        pod: PodInfo,
        snapshot: Snapshot,
        known: Plan | None = None,
    ) -> Plan:
        """Return a plan that keeps the answers of plugins of these scopes that sign the pod.

        The pod is any of the signature. `known` is a plan for the same pods and fewer scopes, whose
        results are reused. Raises PluginFailure if a plugin fails.
        """
        plan = cls(profile)
        if known is not None:
            plan.usable, plan.states = known.usable, known.new_cycle()
        planning = _Planning(plan, scopes, profile, pod, snapshot)
        planning.plan_filters()
        if profile.score_plugins:
            planning.plan_scores()
        return plan

    @property
    def knows_any(self) -> bool:
        """Whether any answer per row is kept."""
        return bool(self.known_filters or self.known_scores)

    def new_cycle(self) -> CycleState:
        """Return a cycle state that has the states of known plugins."""
        states = self.states
        return CycleState(
            states.filter_states.copy(),
            states.score_states.copy(),
            states.skip_filter.copy(),
            states.skip_score.copy(),
        )

    def without(self, skips: frozenset[Skip]) -> Plan:
        """Return a plan for pods that these plugins skip, which are not asked again."""
        plan = self._without.get(skips)
        if plan is None:
            plan = self._without[skips] = copy(self)
            states = plan.states = self.new_cycle()
            skip_filter = {name for point, name in skips if point is PRE_FILTER}
            skip_score = {name for point, name in skips if point is PRE_SCORE}
            states.filter_states |= dict.fromkeys(skip_filter)
            states.score_states |= dict.fromkeys(skip_score)
            states.skip_filter |= skip_filter
            states.skip_score |= skip_score
            plan.pre_filters = [p for p in self.pre_filters if p.name not in skip_filter]
            plan.filters = [pair for pair in self.filters if pair[1].name not in skip_filter]
            plan.pre_scores = [p for p in self.pre_scores if p.name not in skip_score]
            plan.scores = [p for p in self.scores if p.name not in skip_score]
        return plan


class _Planning:
    """Fills a plan by asking all plugins about one pod; any pod of the signature would do."""

    def __init__(
        self,
        plan: Plan,
        scopes: Collection[Scope],
        profile: Profile,
        pod: PodInfo,
        snapshot: Snapshot,
    ) -> None:
        self._plan = plan
        self._scopes = scopes
        self._profile = profile
        self._pod = pod
        self._snapshot = snapshot
        self._everywhere = np.ones(len(snapshot.nodes), np.bool_)
        self._signed = {
            plugin.name: profile.ask_sign(plugin, pod) not in NOT_KEPT
            for plugin in profile.plugins.values()
        }

    def _keeps_filter(self, plugin: Plugin) -> bool:
        return plugin.scope in self._scopes and self._signed[plugin.name]

    def _keeps_score(self, plugin: Plugin) -> bool:
        scope = plugin.score_scope or plugin.scope
        return scope in self._scopes and self._signed[plugin.name]

    def _keeps_pre_filter(self, plugin: Plugin) -> bool:
        """Whether the result of pre_filter can be kept, which depends on the sign alone."""
        if plugin.signs_base and plugin.scope is not Scope.CLUSTER and self._signed[plugin.name]:
            return True
        return self._keeps_filter(plugin)

    def plan_filters(self) -> None:
        """Run the PreFilter plugins whose results are kept; leave the others to each cycle."""
        plan, profile, states = self._plan, self._profile, self._plan.states
        plan.pre_filters = []
        for plugin in profile.pre_filter_plugins:
            if not self._keeps_pre_filter(plugin):
                plan.pre_filters.append(plugin)
            elif plugin.name not in states.filter_states:
                result = profile.ask(plugin, plugin.pre_filter, states, self._pod, self._snapshot)
                states.filter_states[plugin.name] = result.state
                if result.status.is_skip:
                    states.skip_filter.add(plugin.name)
                elif result.status != SUCCESS or result.node_names is not None:
                    plan.usable = False
        plugins = profile.filters_without_pre_filter
        known = [plugin for plugin in plugins if self._keeps_filter(plugin)]
        plan.filter_states_to_make = [plugin for plugin in plugins if plugin not in known]
        missing = [plugin for plugin in known if plugin.name not in states.filter_states]
        profile.make_filter_states(missing, states, self._pod, self._snapshot)
        # Only a full cycle shows which row, if any, fails for lack of the state.
        plan.usable &= not any(isinstance(states.filter_states[p.name], NoState) for p in known)
        plan.filters = []
        for position, filter_ in enumerate(profile.filter_plugins):
            if filter_.name not in states.skip_filter:
                filters = plan.known_filters if self._keeps_filter(filter_) else plan.filters
                filters.append((position, filter_))

    def plan_scores(self) -> None:
        """Run the PreScore plugins whose results are kept; leave the others to each cycle."""
        plan, profile, states = self._plan, self._profile, self._plan.states
        plan.pre_scores = []
        for plugin in profile.pre_score_plugins:
            if not self._keeps_score(plugin):
                plan.pre_scores.append(plugin)
            elif plugin.name not in states.score_states:
                result = profile.ask(
                    plugin, plugin.pre_score, states, self._pod, self._snapshot, self._everywhere
                )
                states.score_states[plugin.name] = result.state
                if result.status.is_skip:
                    states.skip_score.add(plugin.name)
                elif result.status != SUCCESS:
                    plan.usable = False
        plugins = profile.scores_without_pre_score
        known = [plugin for plugin in plugins if self._keeps_score(plugin)]
        plan.score_states_to_make = [plugin for plugin in plugins if plugin not in known]
        missing = [plugin for plugin in known if plugin.name not in states.score_states]
        profile.make_score_states(missing, states, self._pod, self._snapshot, self._everywhere)
        plan.usable &= not any(isinstance(states.score_states[p.name], NoState) for p in known)
        plan.scores = []
        for score in profile.score_plugins:
            if score.name not in states.skip_score:
                (plan.known_scores if self._keeps_score(score) else plan.scores).append(score)
