"""Filters and scores of a plugin by node, and label selectors as the plugins' twins read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from kubesched.api.core import Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import Status
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

S = TypeVar("S")


def filter_all(
    plugin: FilterPlugin[S], state: S, pod: PodInfo, nodes: NodeColumns
) -> dict[str, Status]:
    """Node -> status; checks that one-row tables and a table of other order agree."""
    answers = plugin.filter(state, pod, nodes)
    whole = {name: answers[row] for row, name in enumerate(nodes.names)}
    for row, name in enumerate(nodes.names):
        assert whole[name] == plugin.filter(state, pod, nodes.take(np.array([row])))[0], name
    if len(nodes):
        backward = plugin.filter(state, pod, nodes.take(np.arange(len(nodes))[::-1]))
        assert list(whole.values()) == [backward[row] for row in range(len(nodes))][::-1]
    return whole


def answers_of(plugin: FilterPlugin[S], state: S, pod: Pod, snapshot: Snapshot) -> dict[str, str]:
    """Node -> reason, or "" where the pod fits; checks that every reason has a description."""
    info, nodes = PodInfo(pod), snapshot.nodes
    found = filter_all(plugin, state, info, nodes)
    for row, status in enumerate(found.values()):
        one = nodes.take(np.array([row]))
        assert status.is_success == (not plugin.describe(state, info, one))
    return {name: status.message for name, status in found.items()}


def scores_of(
    plugin: Any, pod: Pod, snapshot: Snapshot, feasible: list[str] | None = None
) -> dict[str, int] | None:
    """Node -> normalized score; None if the plugin skips. Checks that smaller tables agree.

    Args:
        plugin: Has pre_score and score.
        pod: The pod to place.
        snapshot: The cluster.
        feasible: The names of the feasible nodes; None for all.
    """
    info, nodes = PodInfo(pod), snapshot.nodes
    mask = np.array([feasible is None or name in feasible for name in nodes.names], np.bool_)
    result = plugin.pre_score(CycleState(), info, snapshot, mask)
    if result.status.is_skip:
        return None
    assert result.state is not None, result.status
    rows = np.flatnonzero(mask)
    raw = plugin.score(result.state, info, nodes)[rows]
    assert raw.tolist() == plugin.score(result.state, info, nodes.take(rows)).tolist()
    scores = plugin.normalize_score(result.state, info, raw, rows)
    return {nodes.names[row]: int(score) for row, score in zip(rows, scores, strict=True)}


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector as JSON matches."""
    if selector is None:
        return False
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.get("matchExpressions", []):
        has = one["key"] in labels
        listed = has and labels[one["key"]] in one.get("values", [])
        holds = {"In": listed, "NotIn": not listed, "Exists": has, "DoesNotExist": not has}
        if not holds[one["operator"]]:
            return False
    return True
