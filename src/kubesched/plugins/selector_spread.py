"""SelectorSpread: prefer nodes and zones with few pods of the same services and controllers.

kube-scheduler used it by default until PodTopologySpread replaced it. It is not in the default
profile.

Upstream: plugin SelectorSpread, priority SelectorSpreadPriority (until v1.22)
Reads:    services, replication controllers, replica sets, stateful sets that select the pod;
          nodes.zones
Differs:  the largest score, which upstream changed from 10 to 100, is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.field_errors import FieldError, child, not_supported
from kubesched.api.integers import Int32
from kubesched.api.requirements import CompiledSelector
from kubesched.config.args import PluginArgs
from kubesched.framework.cluster_event import ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    PRE_SCORE_SKIP,
    Decides,
    NeededKind,
    PreScorePlugin,
    PreScoreResult,
    Scope,
    ScorePlugin,
)
from kubesched.plugins.shared.siblings import (
    ServiceIndex,
    count_siblings,
    kinds_of_siblings,
    matching_selector,
    versions_of_siblings,
)
from kubesched.plugins.shared.template_memo import TemplateMemo
from kubesched.snapshot.coded import Coded
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_SCALES: Final = (10, 100)
_ZONE_WEIGHT: Final = 2.0 / 3.0


class SelectorSpreadArgs(PluginArgs, frozen=True, kw_only=True):
    """The arguments.

    Attributes:
        scale: The largest score: 10, as until Kubernetes 1.16, or 100.
    """

    scale: Int32 = 100

    def errors(self, path: str) -> Iterable[FieldError]:
        """Yield an error unless the scale is 10 or 100."""
        if self.scale not in _SCALES:
            yield not_supported(child(path, "scale"), self.scale, tuple(map(str, _SCALES)))


class Siblings(msgspec.Struct, frozen=True):
    """The state for `score`.

    Attributes:
        selector: Selects the pod's siblings.
        zones: The zone of every row of the whole table.
    """

    selector: CompiledSelector
    zones: Coded[str]


class SelectorSpread(PreScorePlugin[Siblings], ScorePlugin[Siblings]):
    """Score by the siblings on a node; if nodes have zones, those count two thirds."""

    name: ClassVar = "SelectorSpread"
    args_type: ClassVar = SelectorSpreadArgs
    scope: ClassVar = Scope.CLUSTER

    def __init__(self, args: SelectorSpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._scale = args.scale
        self._services = ServiceIndex()
        self._selectors: TemplateMemo[CompiledSelector] = TemplateMemo()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return no events, because the plugin never rejects a pod."""
        return ()

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return services and the pod's controller, which define the siblings."""
        if pod.spec.topology_spread_constraints:
            return ()
        return kinds_of_siblings(pod, Decides.CHOICE)

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[Siblings]:
        """Return the selector of the siblings; skip pods that have spread constraints."""
        if pod.spec.topology_spread_constraints:
            return PRE_SCORE_SKIP
        objects = snapshot.objects
        selector = self._selectors.get(
            pod.template,
            (objects, *versions_of_siblings(objects)),
            lambda: matching_selector(pod, objects, self._services),
        )
        return PreScoreResult(Siblings(selector, snapshot.nodes.zones))

    def score(self, state: Siblings, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return the number of siblings per row."""
        return count_siblings(state.selector, pod.namespace, nodes)

    def normalize_score(
        self, state: Siblings, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Reverse the counts: the node and the zone with the most siblings get 0."""
        if not len(scores):
            return scores
        spread = self._spread(scores)
        codes = state.zones.codes[rows]
        has_zone = codes != state.zones.positions.get("", -1)
        if has_zone.any():
            counts = np.bincount(codes[has_zone], scores[has_zone], len(state.zones.values))
            by_zone = self._spread(counts).take(codes)
            # The order of these operations determines how scores are rounded.
            mixed = spread * (1.0 - _ZONE_WEIGHT) + _ZONE_WEIGHT * by_zone
            spread = np.where(has_zone, mixed, spread)
        return spread.astype(np.int64)

    def _spread(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        most = counts.max()
        if most == 0:
            return np.full(len(counts), float(self._scale))
        spread: NDArray[np.float64] = self._scale * ((most - counts) / most)
        return spread
