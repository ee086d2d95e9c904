"""Missing states: what filter and score go by where the profile runs nothing that makes a state.

A profile may disable a plugin's pre_filter or pre_score and keep its filter or score. Some plugins
make their state themselves then; for the others a `NoState` stands in, and whoever meets it fails.

Upstream: pkg/scheduler/framework/plugins: Filter and Score that find no state (v1.36)
Differs:  a state that plugins make for themselves is made once, not for each node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    FilterPlugin,
    NoState,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from kubesched.framework.status import failure
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kubesched.scheduler.profile import Profile


def needs_filter_state(plugin: FilterPlugin[object]) -> bool:
    """Whether a filter whose `pre_filter` does not run must be asked for its state."""
    makes_one = type(plugin).filter_state is not FilterPlugin.filter_state
    return makes_one or isinstance(plugin, PreFilterPlugin)


def needs_score_state(plugin: ScorePlugin[object]) -> bool:
    """Whether a score plugin whose `pre_score` does not run must be asked for its state."""
    makes_one = type(plugin).score_state is not ScorePlugin.score_state
    return makes_one or isinstance(plugin, PreScorePlugin)


def make_filter_states(
    profile: Profile,
    plugins: Iterable[FilterPlugin[object]],
    cycle: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
) -> None:
    """Put the states of filters into the cycle."""
    for plugin in plugins:
        try:
            state: object = plugin.filter_state(cycle, pod, snapshot)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            # Perhaps every row is rejected before anybody needs the state.
            profile.report(plugin, "FilterState", pod.key, error)
            state = _failing(error)
        cycle.filter_states[plugin.name] = state


def make_score_states(
    profile: Profile,
    plugins: Iterable[ScorePlugin[object]],
    cycle: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    feasible: NDArray[np.bool_],
) -> None:
    """Put the states of score plugins into the cycle."""
    for plugin in plugins:
        try:
            state: object = plugin.score_state(cycle, pod, snapshot, feasible)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            # Perhaps a plugin before this one fails: that is the failure to report.
            profile.report(plugin, "ScoreState", pod.key, error)
            state = _failing(error)
        cycle.score_states[plugin.name] = state


def _failing(error: Exception) -> NoState:
    return NoState(failure(f"{type(error).__name__}: {error}"))
