"""PodTopologySpread: spread pods evenly over zones, nodes or other domains of a node label.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread (v1.36)
Reads:    pod.spec.topologySpreadConstraints, tolerations, node affinity; pod.metadata.labels;
          services and controllers for default constraints; nodes.labels, taints
Rejects:  Unschedulable if the skew would be too large; UnschedulableAndUnresolvable if the node
          lacks the label, because evicting a pod does not add it.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node, Pod, TopologySpreadConstraint
from kubesched.api.requirements import SelectorError
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.framework.cluster_event import (
    ANY_POD,
    NODE,
    POD,
    Action,
    ClusterEventWithHint,
    Filing,
    names_of_labels,
    names_of_pods,
    retry_on,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    Decides,
    FilterPlugin,
    NeededKind,
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
from kubesched.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTING,
    NodeInclusion,
    PodTopologySpreadArgs,
    SpreadConstraint,
    SpreadConstraints,
    default_constraints,
    have_all_keys,
    own_constraints,
)
from kubesched.plugins.pod_topology_spread.states import SpreadDomains, SpreadScores, SpreadState
from kubesched.plugins.shared.siblings import (
    ServiceIndex,
    default_selector,
    kinds_of_siblings,
    versions_of_siblings,
)
from kubesched.plugins.shared.template_memo import TemplateMemo
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
_NONE: Final = SpreadConstraints()
_UNKNOWN: Final = SpreadConstraints(error="services and controllers are not known yet")
_TEMPLATES_MAX: Final = 2048
_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)


_SKIP_FILTER: Final[PreFilterResult[SpreadState]] = PreFilterResult(status=SKIP, lasts=True)
_SKIP_SCORE: Final[PreScoreResult[SpreadScores]] = PreScoreResult(status=SKIP, lasts=True)


class PodTopologySpread(
    PreFilterExtensions[SpreadState],
    FilterPlugin[SpreadState],
    PreScorePlugin[SpreadScores],
    ScorePlugin[SpreadScores],
):
    """Filter on hard constraints (DoNotSchedule), score on soft ones (ScheduleAnyway)."""

    name: ClassVar = "PodTopologySpread"
    args_type: ClassVar = PodTopologySpreadArgs
    scope: ClassVar = Scope.CLUSTER
    per_template: ClassVar = True
    no_filter_state: ClassVar = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    no_score_state: ClassVar = (
        'error reading "PreScorePodTopologySpread" from cycleState: not found'
    )

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._is_system_defaulted = args.defaulting_type == SYSTEM_DEFAULTING
        defaults = _SYSTEM_DEFAULTS if self._is_system_defaulted else args.default_constraints
        self._defaults = {
            action: tuple(c for c in defaults if c.when_unsatisfiable == action)
            for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        }
        gates = handle.feature_gates
        self._uses_match_label_keys = gates.enabled("MatchLabelKeysInPodTopologySpread")
        compares = gates.enabled("TaintTolerationComparisonOperators")
        self._inclusion = NodeInclusion(compares_tolerations=compares)
        self._own = lru_cache(maxsize=_TEMPLATES_MAX)(self._parse_own)
        self._services = ServiceIndex()
        self._default: TemplateMemo[SpreadConstraints] = TemplateMemo()
        self._objects: Objects | None = None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return changes of pods, their labels and tolerations; of nodes, labels and taints."""
        by_labels = Filing(self._names_of, names_of_pods)
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            retry_on(POD, pods, self._after_pod_change, per_template=True, filing=by_labels),
            retry_on(NODE, nodes, self._after_node_change, per_template=True),
        )

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[SpreadState]:
        """Count, per hard constraint and domain, the matching pods."""
        hard = self._constraints(pod, snapshot.objects, DO_NOT_SCHEDULE)
        if hard.error:
            return PreFilterResult(status=failure(f"get constraints from pod: {hard.error}"))
        if not hard.items:
            return _SKIP_FILTER
        nodes = snapshot.nodes
        included = self._inclusion.of(hard.items, pod, nodes)
        domains = tuple(
            SpreadDomains.of(constraint, nodes, counted)
            for constraint, counted in zip(hard.items, included.each, strict=True)
        )
        return PreFilterResult(SpreadState(domains))

    def add_pod(self, state: SpreadState, pod: PodInfo, added: PodInfo, nodes: NodeTable) -> Status:
        """Add `added` to the counts of its node's domains."""
        self._move(state, pod, added, nodes, 1)
        return SUCCESS

    def remove_pod(
        self, state: SpreadState, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status:
        """Subtract `removed` from the counts of its node's domains."""
        self._move(state, pod, removed, nodes, -1)
        return SUCCESS

    def ignores(self, state: SpreadState, pod: PodInfo, other: PodInfo) -> bool:
        """Whether no constraint counts `other`."""
        if other.namespace == pod.namespace:
            for domains in state.domains:
                if domains.constraint.selector.matches(other.labels):
                    return False
        return True

    def filter(self, state: SpreadState, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows that violate a constraint; the first violated constraint decides."""
        index = np.zeros(len(nodes), np.int32)
        # The check with precedence is written last.
        for domains in reversed(state.domains):
            constraint = domains.constraint
            label = nodes.label(constraint.topology_key)
            most = constraint.max_skew + domains.least - constraint.selector.matches(pod.labels)
            index[domains.sums.above(label, most)] = _TOO_SKEWED
            if None in label.positions:
                index[label.equals(None)] = _LACKS_LABEL
        return NodeToStatus(index, _STATUSES)

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return services and the pod's controller, which define its default constraints."""
        if pod.spec.topology_spread_constraints:
            return
        for action, decides in _DECIDES.items():
            if self._defaults[action]:
                yield from kinds_of_siblings(pod, decides)

    def describe(self, state: SpreadState, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the domain that decided, its count, the lowest count and the maximum skew."""
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
        """Weigh the soft constraints, and count the matching pods per domain."""
        if not len(snapshot.nodes):
            return _SKIP_SCORE
        soft = self._constraints(pod, snapshot.objects, SCHEDULE_ANYWAY)
        if soft.error:
            return PreScoreResult(status=failure(f"calculating preScoreState: {soft.error}"))
        if not soft.items:
            return _SKIP_SCORE
        requires_all = not self._is_system_defaulted or bool(pod.spec.topology_spread_constraints)
        included = self._inclusion.of(
            soft.items, pod, snapshot.nodes, requires_all_keys=requires_all
        )
        return PreScoreResult(SpreadScores.of(soft.items, snapshot.nodes, feasible, included))

    def score(self, state: SpreadScores, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return a number per row that grows with the matching pods in its domains."""
        return state.score(pod.namespace, nodes)

    def normalize_score(
        self, state: SpreadScores, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Reverse the order: the lowest number becomes 100; ignored rows get 0."""
        return state.normalize(scores, rows)

    def _constraints(self, pod: PodInfo, objects: Objects | None, action: str) -> SpreadConstraints:
        if pod.spec.topology_spread_constraints:
            return self._own(pod.template, action)
        defaults = self._defaults[action]
        if not defaults:
            return _NONE
        if objects is None:
            return _UNKNOWN
        self._objects = objects
        versions = versions_of_siblings(objects)
        if not any(versions):
            # Without services and controllers, default constraints select nothing.
            return _NONE

        def derive() -> SpreadConstraints:
            selector = default_selector(pod, objects, self._services)
            return SpreadConstraints(default_constraints(pod.namespace, defaults, selector))

        return self._default.get((pod.template, action), (objects, *versions), derive)

    def _parse_own(self, template: PodTemplate, action: str) -> SpreadConstraints:
        try:
            return SpreadConstraints(
                own_constraints(template, action, uses_match_label_keys=self._uses_match_label_keys)
            )
        except SelectorError as error:
            kind = "hard" if action == DO_NOT_SCHEDULE else "soft"
            text = f"obtaining pod's {kind} topology spread constraints: {error}"
            return SpreadConstraints(error=text)

    def _move(
        self, state: SpreadState, pod: PodInfo, other: PodInfo, nodes: NodeTable, amount: int
    ) -> None:
        if other.namespace != pod.namespace:
            return
        having = have_all_keys([domains.constraint for domains in state.domains], nodes)
        if having is not None and not having[0]:
            return
        for domains in state.domains:
            constraint = domains.constraint
            if not constraint.selector.matches(other.labels):
                continue
            included = self._inclusion.rows(constraint, pod, nodes)
            if included is None or included[0]:
                domains.sums.move(nodes.label(constraint.topology_key), amount)

    def _after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> bool:
        """Whether the addition, deletion or update of a pod may reduce the skew for `pod`."""
        before = old if isinstance(old, Pod) else None
        after = new if isinstance(new, Pod) else None
        if any(other is not None and not _counts_for(other, pod) for other in (after, before)):
            return False
        constraints = self._hard_constraints(pod)
        if constraints.error or (before is None and after is None):
            return True
        if before is not None and after is not None:
            return _after_pod_update(pod, constraints.items, before, after)
        labels = (after or before or pod).metadata.labels
        return any(constraint.selector.matches(labels) for constraint in constraints.items)

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> bool:
        """Whether the node belongs to a domain, or did before its deletion or update."""
        constraints = self._hard_constraints(pod)
        if constraints.error:
            return True
        before = isinstance(old, Node) and _has_all_keys(old.metadata.labels, constraints.items)
        after = isinstance(new, Node) and _has_all_keys(new.metadata.labels, constraints.items)
        if not isinstance(old, Node) or not isinstance(new, Node):
            return before or after
        if before != after:
            return True
        return after and (
            old.spec.taints != new.spec.taints
            or any(
                old.metadata.labels.get(constraint.topology_key, "")
                != new.metadata.labels.get(constraint.topology_key, "")
                for constraint in constraints.items
            )
        )

    def _names_of(self, pod: Pod) -> Iterator[str]:
        """Yield the labels that pods need to count for a hard constraint of the pod."""
        constraints = self._hard_constraints(pod)
        # Default constraints change with Services and controllers.
        if constraints.error or not pod.spec.topology_spread_constraints:
            yield ANY_POD
            return
        for constraint in constraints.items:
            yield from names_of_labels(constraint.selector.needed_labels)

    def _hard_constraints(self, pod: Pod) -> SpreadConstraints:
        # The objects of the cycle that rejected the pod are kept up to date.
        return self._constraints(PodInfo(pod), self._objects, DO_NOT_SCHEDULE)


def _after_pod_update(
    pod: Pod, constraints: tuple[SpreadConstraint, ...], before: Pod, after: Pod
) -> bool:
    if (
        pod.metadata.uid == after.metadata.uid
        and before.spec.tolerations != after.spec.tolerations
        and any(constraint.honors_taints for constraint in constraints)
    ):
        return True
    return any(
        constraint.selector.matches(before.metadata.labels)
        != constraint.selector.matches(after.metadata.labels)
        for constraint in constraints
    )


def _counts_for(other: Pod, pod: Pod) -> bool:
    """Whether `other` is the pod itself, or has a node and is in the same namespace."""
    if other.metadata.uid == pod.metadata.uid:
        return True
    has_place = bool(other.spec.node_name or other.status.nominated_node_name)
    return has_place and other.metadata.namespace == pod.metadata.namespace


def _has_all_keys(labels: Mapping[str, str], constraints: tuple[SpreadConstraint, ...]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)
