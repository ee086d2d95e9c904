"""TaintToleration: keep pods off nodes whose taints they do not tolerate.

Upstream: pkg/scheduler/framework/plugins/tainttoleration (v1.36)
Reads:    pod.spec.tolerations; nodes.taints
Rejects:  UnschedulableAndUnresolvable, because evicting a pod never removes a taint.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node, Pod, Taint, Toleration
from kubesched.api.tolerations import HARD_EFFECTS, find_untolerated, taint_text, tolerates
from kubesched.framework.cluster_event import NODE, POD, Action, ClusterEventWithHint, retry_on
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    FilterPlugin,
    PreScorePlugin,
    PreScoreResult,
    Scope,
    ScorePlugin,
    normalize_reversed,
)
from kubesched.framework.status import NodeToStatus, unresolvable
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_SOFT: Final = "PreferNoSchedule"
_FEW_ROWS: Final = 4

Tolerations = tuple[Toleration, ...]


class TaintToleration(FilterPlugin[None], PreScorePlugin[Tolerations], ScorePlugin[Tolerations]):
    """Filter on hard taints (NoSchedule, NoExecute), score on PreferNoSchedule."""

    name: ClassVar = "TaintToleration"
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True
    rejection: ClassVar = unresolvable("node(s) had untolerated taint(s)")
    no_score_state: ClassVar = 'failed to read "PreScoreTaintToleration" from cycleState: not found'

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._lists: _TaintLists | None = None
        self._comparison = handle.feature_gates.enabled("TaintTolerationComparisonOperators")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return node additions and taint changes, and new tolerations of the pod."""
        nodes = Action.ADD | Action.UPDATE_NODE_TAINT
        return (
            retry_on(NODE, nodes, self._after_node_change, per_template=True),
            retry_on(POD, Action.UPDATE_POD_TOLERATION, self._after_pod_change),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the tolerations."""
        return pod.spec.tolerations

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows with a hard taint that the pod does not tolerate."""
        untolerated = self._untolerated(nodes, pod.spec.tolerations, HARD_EFFECTS)
        return NodeToStatus.rejecting(untolerated > 0, self.rejection)

    def describe(self, state: None, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the first taint that is not tolerated."""
        taint = self._first_untolerated(nodes.taints[0], pod.pod)
        return "" if taint is None else f"taint {taint_text(taint)}"

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[Tolerations]:
        """Return the tolerations that can match soft taints."""
        return PreScoreResult(tuple(t for t in pod.spec.tolerations if t.effect in ("", _SOFT)))

    def score(self, state: Tolerations, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return, per row, the number of soft taints that the pod does not tolerate."""
        return self._untolerated(nodes, state, (_SOFT,))

    def normalize_score(
        self, state: Tolerations, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Scale to 0..100; fewer taints are better."""
        return normalize_reversed(scores)

    def _untolerated(
        self, nodes: NodeTable, tolerations: Tolerations, effects: Collection[str]
    ) -> NDArray[np.int64]:
        """Return the number of taints with one of the effects that are not tolerated, per row."""
        column, rows = nodes.taints, len(nodes)
        asked = tolerations, effects, self._comparison
        if rows <= _FEW_ROWS:
            found = [[find_untolerated((t,), *asked) for t in column[row]] for row in range(rows)]
            return np.array([len(each) - each.count(None) for each in found], np.int64)
        if self._lists is None or not self._lists.are_of(column.values):
            self._lists = _TaintLists(column.values)
        return self._lists.untolerated(*asked)[column.codes]

    def _first_untolerated(self, taints: Iterable[Taint], pod: Pod) -> Taint | None:
        return find_untolerated(taints, pod.spec.tolerations, comparison_operators=self._comparison)

    def _fits(self, node: Node, pod: Pod) -> bool:
        return self._first_untolerated(node.spec.taints, pod) is None

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> bool:
        if not isinstance(new, Node):
            return True
        return self._fits(new, pod) and not (isinstance(old, Node) and self._fits(old, pod))

    @staticmethod
    def _after_pod_change(pod: Pod, old: object | None, new: object | None) -> bool:
        return isinstance(new, Pod) and new.metadata.uid == pod.metadata.uid


class _TaintLists:
    """The taint lists of a table: thousands of nodes share a few taints, in many combinations."""

    def __init__(self, lists: list[tuple[Taint, ...]]) -> None:
        self._lists = lists
        self._count = len(lists)
        codes: dict[Taint, int] = {}
        pairs = [
            (at, codes.setdefault(taint, len(codes)))
            for at, taints in enumerate(lists)
            for taint in taints
        ]
        self._owners, self._codes = np.array(pairs, np.intp).reshape(-1, 2).T
        self._taints = list(codes)
        # By key and value; None is any value, or any taint.
        self._filed: dict[tuple[str, str] | str | None, list[int]] = {None: []}
        for taint, code in codes.items():
            for place in ((taint.key, taint.value), taint.key, None):
                self._filed.setdefault(place, []).append(code)

    def are_of(self, lists: list[tuple[Taint, ...]]) -> bool:
        """Whether these are the lists; a table's only grow, or are replaced."""
        return lists is self._lists and len(lists) == self._count

    def untolerated(
        self, tolerations: Tolerations, effects: Collection[str], comparison: bool
    ) -> NDArray[np.int64]:
        """Return, per list, how many of its taints with one of the effects are not tolerated."""
        counted = np.array([taint.effect in effects for taint in self._taints], np.bool_)
        for each in tolerations:
            is_equal = each.key and each.operator in ("", "Equal")
            place = (each.key, each.value) if is_equal else each.key or None
            for code in self._filed.get(place, ()):
                counted[code] &= not tolerates(each, self._taints[code], comparison)
        return np.bincount(self._owners[counted[self._codes]], minlength=self._count)
