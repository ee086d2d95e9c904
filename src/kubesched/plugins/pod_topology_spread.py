"""PodTopologySpread: spread pods evenly over zones, nodes or other domains of a node label.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread (v1.36)
Reads:    pod.spec.topologySpreadConstraints, tolerations, node affinity; pod.metadata.labels;
          services and controllers for default constraints; nodes.labels, taints
Rejects:  Unschedulable if the skew would be too large; UnschedulableAndUnresolvable if the node
          lacks the label, because evicting a pod does not bring it.
Differs:  nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Pod, TopologySpreadConstraint
from kubesched.api.selectors import SelectorError
from kubesched.framework.cluster_event import NODE, POD, Action, ClusterEvent, ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.needed_kinds import Decides, NeededKind
from kubesched.framework.normalize import NODE_SCORE_MAX
from kubesched.framework.plugin import (
    FilterPlugin,
    PreFilterExtensions,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    Scope,
    ScorePlugin,
)
from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.plugins.pod_selectors import (
    default_selector,
    kinds_of_siblings,
    versions_of_siblings,
)
from kubesched.plugins.spread_args import (
    SYSTEM_DEFAULTING,
    PodTopologySpreadArgs,
    decode_spread_args,
)
from kubesched.plugins.spread_constraints import (
    DO_NOT_SCHEDULE,
    HOSTNAME,
    SCHEDULE_ANYWAY,
    ZONE,
    Constraint,
    Constraints,
    Inclusion,
    both,
    count_siblings,
    default_constraints,
    have_all_keys,
    own_constraints,
)
from kubesched.plugins.spread_hints import after_node_change, after_pod_change
from kubesched.plugins.spread_state import SpreadDomains, SpreadState
from kubesched.plugins.template_memo import TemplateMemo
from kubesched.snapshot.coded import Coded
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.snapshot import Snapshot

_REASON: Final = "node(s) didn't match pod topology spread constraints"
_STATUSES: Final = (
    SUCCESS,
    unresolvable(f"{_REASON} (missing required label)"),
    unschedulable(_REASON),
)
_LACKS_LABEL, _TOO_SKEWED = 1, 2
_DECIDES: Final = {DO_NOT_SCHEDULE: Decides.FIT, SCHEDULE_ANYWAY: Decides.CHOICE}
_NONE: Final = Constraints()
_UNKNOWN: Final = Constraints(error="services and controllers are not known yet")
_TEMPLATES_MAX: Final = 8192
_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)


class SpreadScores(msgspec.Struct, frozen=True):
    """What pre_score found, per soft constraint in their order.

    Attributes:
        constraints: The soft constraints.
        weights: What a pod weighs; the fewer domains, the less.
        worths: What its domain adds to a row's score, by code of the node label; None where each
            row counts its own pods.
        requires_all_keys: Whether a row that lacks one of the labels is ignored.
        having_all_keys: Bool per row of the whole table; None if no row is ignored.
    """

    constraints: tuple[Constraint, ...]
    weights: tuple[float, ...]
    worths: tuple[NDArray[np.float64] | None, ...]
    requires_all_keys: bool
    having_all_keys: NDArray[np.bool_] | None


_SKIP_FILTER: Final[PreFilterResult[SpreadState]] = PreFilterResult(status=SKIP)
_SKIP_SCORE: Final[PreScoreResult[SpreadScores]] = PreScoreResult(status=SKIP)


class PodTopologySpread(
    PreFilterExtensions[SpreadState],
    FilterPlugin[SpreadState],
    PreScorePlugin[SpreadScores],
    ScorePlugin[SpreadScores],
):
    """Filter on hard constraints (DoNotSchedule), score on soft ones (ScheduleAnyway)."""

    name: ClassVar = "PodTopologySpread"
    scope: ClassVar = Scope.CLUSTER
    per_template: ClassVar = True
    normalizes: ClassVar = True
    no_filter_state: ClassVar = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    no_score_state: ClassVar = (
        'error reading "PreScorePodTopologySpread" from cycleState: not found'
    )

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        if not isinstance(args, PodTopologySpreadArgs):
            args = PodTopologySpreadArgs()
        self._is_system_defaulted = args.defaulting_type == SYSTEM_DEFAULTING
        defaults = _SYSTEM_DEFAULTS if self._is_system_defaulted else args.default_constraints
        self._defaults = {
            action: tuple(c for c in defaults if c.when_unsatisfiable == action)
            for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        }
        gates = handle.feature_gates
        self._uses_match_label_keys = gates.enabled("MatchLabelKeysInPodTopologySpread")
        self._compares_tolerations = gates.enabled("TaintTolerationComparisonOperators")
        self._own = lru_cache(maxsize=_TEMPLATES_MAX)(self._parse_own)
        self._default: TemplateMemo[Constraints] = TemplateMemo(_TEMPLATES_MAX)
        self._objects: Objects | None = None

    @classmethod
    def decode_args(
        cls, raw: dict[str, object] | None, handle: Handle, path: str
    ) -> PodTopologySpreadArgs:
        """Decode and validate."""
        return decode_spread_args(raw, path)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods came, went, changed labels or tolerations; nodes came, went or changed."""
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            ClusterEventWithHint(
                ClusterEvent(POD, pods), self._after_pod_change, per_template=True
            ),
            ClusterEventWithHint(
                ClusterEvent(NODE, nodes), self._after_node_change, per_template=True
            ),
        )

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[SpreadState]:
        """Count, per hard constraint and domain, the pods that its selector matches."""
        hard = self._constraints(pod, snapshot.objects, DO_NOT_SCHEDULE)
        if hard.error:
            return PreFilterResult(status=failure(f"get constraints from pod: {hard.error}"))
        if not hard.items:
            return _SKIP_FILTER
        nodes = snapshot.nodes
        having = have_all_keys(hard.items, nodes)
        inclusion = Inclusion(pod, nodes, self._compares_tolerations)
        domains = tuple(
            SpreadDomains.of(
                constraint,
                nodes.label(constraint.topology_key),
                constraint.pods.over(nodes.groups),
                both(having, inclusion.of(constraint)),
            )
            for constraint in hard.items
        )
        return PreFilterResult(SpreadState(domains))

    def add_pod(self, state: SpreadState, pod: PodInfo, added: PodInfo, nodes: NodeTable) -> Status:
        """Count `added` in the domains of its node."""
        self._move(state, pod, added, nodes, 1)
        return SUCCESS

    def remove_pod(
        self, state: SpreadState, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status:
        """Uncount `removed` in the domains of its node."""
        self._move(state, pod, removed, nodes, -1)
        return SUCCESS

    def filter(self, state: SpreadState, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows by the first constraint that does not hold there."""
        index = np.zeros(len(nodes), np.int32)
        # What counts first is written last.
        for domains in reversed(state.domains):
            constraint = domains.constraint
            label = nodes.label(constraint.topology_key)
            most = constraint.max_skew + domains.least - constraint.selector.matches(pod.labels)
            index[domains.sums.above(label, most)] = _TOO_SKEWED
            if None in label.positions:
                index[label.equals(None)] = _LACKS_LABEL
        return NodeToStatus(index, _STATUSES)

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Services and the pod's controller, which give a pod its default constraints."""
        if pod.spec.topology_spread_constraints:
            return
        for action, decides in _DECIDES.items():
            if self._defaults[action]:
                yield from kinds_of_siblings(pod, decides)

    def describe(self, state: SpreadState, pod: PodInfo, nodes: NodeTable) -> str:
        """Name the domain that decided, its count, the least count and the largest skew."""
        for domains in state.domains:
            constraint = domains.constraint
            label = nodes.label(constraint.topology_key)
            own = int(constraint.selector.matches(pod.labels))
            count, least = int(domains.sums.at(label)[0]), domains.least
            if label[0] is None:
                return f"the node has no label {constraint.topology_key}"
            if count + own - least > constraint.max_skew:
                return (
                    f"{constraint.topology_key}={label[0]}: {count} matching pod(s)"
                    f"{' and this one' if own else ''}, {least} in the emptiest domain, "
                    f"maxSkew {constraint.max_skew}"
                )
        return ""

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[SpreadScores]:
        """Weigh the soft constraints, and count per domain the pods that match."""
        nodes = snapshot.nodes
        if not len(nodes):
            return _SKIP_SCORE
        soft = self._constraints(pod, snapshot.objects, SCHEDULE_ANYWAY)
        if soft.error:
            return PreScoreResult(status=failure(f"calculating preScoreState: {soft.error}"))
        if not soft.items:
            return _SKIP_SCORE
        requires_all = not self._is_system_defaulted or bool(pod.spec.topology_spread_constraints)
        having = have_all_keys(soft.items, nodes) if requires_all else None
        candidates = feasible if having is None else feasible & having
        scored = int(np.count_nonzero(candidates))
        rows = None if scored == len(nodes) else candidates
        inclusion = Inclusion(pod, nodes, self._compares_tolerations)
        weights: list[float] = []
        worths: list[NDArray[np.float64] | None] = []
        for constraint in soft.items:
            if constraint.topology_key == HOSTNAME:
                weights.append(_weight(scored))
                worths.append(None)
                continue
            label = nodes.label(constraint.topology_key)
            weights.append(_weight(_count_domains(label, rows)))
            counts = constraint.pods.over(nodes.groups)
            pods = counts.by_code(label, both(having, inclusion.of(constraint)))
            worths.append(_worth_of_domains(label, pods, weights[-1], constraint.max_skew))
        return PreScoreResult(
            SpreadScores(soft.items, tuple(weights), tuple(worths), requires_all, having)
        )

    def score(self, state: SpreadScores, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Add up what the row's domains are worth; more pods, more worth."""
        total = np.zeros(len(nodes))
        for constraint, weight, worth in zip(
            state.constraints, state.weights, state.worths, strict=True
        ):
            label = nodes.label(constraint.topology_key)
            if worth is None:
                added = count_siblings(constraint.selector, pod.namespace, nodes) * weight + (
                    constraint.max_skew - 1
                )
                if None in label.positions:
                    added[label.equals(None)] = 0.0
            else:
                added = worth.take(label.codes)
            total += added
        scores = _rounded(total)
        if state.requires_all_keys:
            having = have_all_keys(state.constraints, nodes)
            if having is not None:
                scores[~having] = 0
        return scores

    def normalize_score(
        self, state: SpreadScores, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Turn the order around: the least becomes 100; ignored rows get 0."""
        counted: NDArray[np.bool_] | None = None
        if state.having_all_keys is not None:
            counted = state.having_all_keys[rows]
        among = scores if counted is None else scores[counted]
        if not len(among):
            return np.zeros_like(scores)
        least, most = int(among.min()), int(among.max())
        if most <= 0:
            normalized = np.full_like(scores, NODE_SCORE_MAX)
        else:
            normalized = NODE_SCORE_MAX * (most + least - scores) // most
        return normalized if counted is None else np.where(counted, normalized, 0)

    def _constraints(self, pod: PodInfo, objects: Objects | None, action: str) -> Constraints:
        if pod.spec.topology_spread_constraints:
            return self._own(pod.template, action)
        defaults = self._defaults[action]
        if not defaults:
            return _NONE
        if objects is None:
            return _UNKNOWN
        self._objects = objects

        def derive() -> Constraints:
            selector = default_selector(pod, objects)
            return Constraints(default_constraints(pod.namespace, defaults, selector))

        stamp = (objects, *versions_of_siblings(objects))
        return self._default.get((pod.template, action), stamp, derive)

    def _parse_own(self, template: PodTemplate, action: str) -> Constraints:
        try:
            return Constraints(
                own_constraints(template, action, uses_match_label_keys=self._uses_match_label_keys)
            )
        except SelectorError as error:
            kind = "hard" if action == DO_NOT_SCHEDULE else "soft"
            text = f"obtaining pod's {kind} topology spread constraints: {error}"
            return Constraints(error=text)

    def _move(
        self, state: SpreadState, pod: PodInfo, other: PodInfo, nodes: NodeTable, amount: int
    ) -> None:
        if other.namespace != pod.namespace:
            return
        having = have_all_keys(state.constraints, nodes)
        if having is not None and not having[0]:
            return
        inclusion = Inclusion(pod, nodes, self._compares_tolerations)
        for domains in state.domains:
            constraint = domains.constraint
            if not constraint.selector.matches(other.labels):
                continue
            included = inclusion.of(constraint)
            if included is None or included[0]:
                domains.sums.move(nodes.label(constraint.topology_key), amount)

    def _after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> bool:
        return after_pod_change(pod, self._hard_constraints(pod), old, new)

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> bool:
        return after_node_change(self._hard_constraints(pod), old, new)

    def _hard_constraints(self, pod: Pod) -> Constraints:
        # Services and controllers are those of the cycle that rejected the pod, kept up to date.
        return self._constraints(PodInfo(pod), self._objects, DO_NOT_SCHEDULE)


def _weight(domains: int) -> float:
    return math.log(domains + 2)


def _count_domains(label: Coded[str | None], rows: NDArray[np.bool_] | None) -> int:
    """Count the values that the rows have; lacking the label is one, the same as an empty value."""
    codes = label.codes if rows is None else label.codes[rows]
    found = np.bincount(codes, minlength=len(label.values)) > 0
    count = int(np.count_nonzero(found))
    absent, empty = label.positions.get(None), label.positions.get("")
    if absent is not None and empty is not None and found[absent] and found[empty]:
        return count - 1
    return count


def _worth_of_domains(
    label: Coded[str | None], pods: NDArray[np.int64], weight: float, max_skew: int
) -> NDArray[np.float64]:
    absent, empty = label.positions.get(None), label.positions.get("")
    if absent is not None and empty is not None:
        pods[empty] += pods[absent]
    worth = pods.astype(np.float64)
    worth *= weight
    worth += max_skew - 1
    if absent is not None:
        worth[absent] = 0.0
    return worth


def _rounded(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round halves away from zero, as Go does."""
    whole = np.trunc(values)
    whole += np.copysign(np.abs(values - whole) >= 0.5, values)
    return whole.astype(np.int64)
