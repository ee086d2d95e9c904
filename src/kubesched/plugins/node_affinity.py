"""NodeAffinity: place pods on nodes that match their nodeSelector and node affinity.

Upstream: pkg/scheduler/framework/plugins/nodeaffinity (v1.36)
Reads:    pod.spec.nodeSelector, affinity.nodeAffinity; nodes.labels, nodes.names
Rejects:  UnschedulableAndUnresolvable, because no eviction changes a node's labels.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node, Pod, PodSpec
from kubesched.api.core import NodeAffinity as Affinity
from kubesched.api.field_errors import FieldError, aggregate, child
from kubesched.api.meta import NodeSelector, PreferredSchedulingTerm
from kubesched.api.selector_text import describe_selector, shown_label
from kubesched.api.selectors import (
    matches_node_selector,
    matches_required_node_affinity,
    matches_set,
    node_selector_errors,
    node_selector_term_errors,
    preferred_term_errors,
    required_node_selector,
)
from kubesched.config.args import PluginArgs
from kubesched.framework.cluster_event import NODE, Action, ClusterEventWithHint, retry_on
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    NOT_SHARED,
    PRE_FILTER_SKIP,
    PRE_SCORE_SKIP,
    FilterPlugin,
    NoState,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    Scope,
    ScorePlugin,
    normalize_scores,
)
from kubesched.framework.status import NodeToStatus, failure, unresolvable
from kubesched.snapshot.node_selection import (
    match_node_selector,
    match_node_selector_term,
    match_required_node_affinity,
)
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

PreferredTerms = tuple[PreferredSchedulingTerm, ...]
NodeNames = frozenset[str] | None
"""The names of the nodes that match a pod which requires nothing but a name; None for others."""

_NAME_FIELD: Final = "metadata.name"
_ANY_NODE: Final[PreFilterResult[NodeNames]] = PreFilterResult()


class NodeAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    """Arguments of the plugin.

    Attributes:
        added_affinity: Applies to every pod of the profile, in addition to its own.
    """

    added_affinity: Affinity | None = None

    def errors(self, path: str) -> Iterable[FieldError]:
        """Yield the errors in the terms of the added affinity."""
        affinity = self.added_affinity
        if affinity is None:
            return
        path = child(path, "addedAffinity")
        required = affinity.required_during_scheduling_ignored_during_execution
        if required is not None:
            name = "requiredDuringSchedulingIgnoredDuringExecution"
            place = child(path, name, "nodeSelectorTerms")
            yield from map(_error, node_selector_errors(required, place))
        place = child(path, "preferredDuringSchedulingIgnoredDuringExecution")
        preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
        for i, term in enumerate(preferred):
            if term.weight:
                errors = node_selector_term_errors(term.preference, child(place, i))
                yield from map(_error, errors)


class NodeAffinity(
    PreFilterPlugin[NodeNames],
    FilterPlugin[NodeNames],
    PreScorePlugin[PreferredTerms],
    ScorePlugin[PreferredTerms],
):
    """Filter on nodeSelector and required affinity, score on preferred affinity."""

    name: ClassVar = "NodeAffinity"
    args_type: ClassVar = NodeAffinityArgs
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True
    rejection: ClassVar = unresolvable("node(s) didn't match Pod's node affinity/selector")
    enforced_rejection: ClassVar = unresolvable(
        "node(s) didn't match scheduler-enforced node affinity"
    )
    conflict: ClassVar = unresolvable("pod affinity terms conflict")

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        added = args.added_affinity or Affinity()
        self._added_required = added.required_during_scheduling_ignored_during_execution
        self._added_preferred = added.preferred_during_scheduling_ignored_during_execution or ()

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[NodeNames]:
        """Skip pods without requirements; return the node names of pods that list them."""
        required = required_node_selector(pod.spec)
        if required is None:
            asks = pod.spec.node_selector is not None or self._added_required is not None
            return _ANY_NODE if asks else PRE_FILTER_SKIP
        names = _node_names(required)
        if names is None:
            return _ANY_NODE
        if not names:
            return PreFilterResult(status=self.conflict)
        names_decide = _asks_for_names_only(required) and not pod.spec.node_selector
        return PreFilterResult(names if names_decide else None, node_names=names)

    def filter_state(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> None:
        """Return None; `filter` needs no state."""
        return

    def filter(self, state: NodeNames, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows that do not match the added affinity, then those that the pod excludes."""
        if state and self._added_required is None and state.issuperset(nodes.names):
            return NodeToStatus.passing(len(nodes))
        rejected = ~match_required_node_affinity(pod, nodes)
        if self._added_required is None:
            return NodeToStatus.rejecting(rejected, self.rejection)
        enforced = ~match_node_selector(self._added_required, nodes)
        return NodeToStatus.first_of(
            ((enforced, self.enforced_rejection), (rejected, self.rejection)), len(nodes)
        )

    def describe(self, state: NodeNames, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the requirements that the node's labels do not meet."""
        node = nodes.nodes[0]
        if self._added_required is not None and not _matches(self._added_required, node):
            return describe_selector(self._added_required, node)
        labels = node.metadata.labels
        for key, wanted in (pod.spec.node_selector or {}).items():
            if labels.get(key) != wanted:
                return f"pod wants {key}={wanted}, node has {shown_label(key, labels.get(key))}"
        required = required_node_selector(pod.spec)
        return "" if required is None else describe_selector(required, node)

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[PreferredTerms]:
        """Return the preferred terms of the added affinity and of the pod."""
        preferred = _preferred_terms(pod)
        if preferred is None:
            terms = self._added_preferred
            return PreScoreResult(terms) if terms else PRE_SCORE_SKIP
        if errors := preferred_term_errors(preferred):
            return PreScoreResult(status=failure(aggregate(errors)))
        return PreScoreResult((*self._added_preferred, *preferred))

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreferredTerms | NoState:
        """Return the preferred terms; without any, every row scores 0."""
        result = self.pre_score(cycle, pod, snapshot, feasible)
        if result.status.is_success or result.status.is_skip:
            return result.state or ()
        return NoState(result.status)

    def score(self, state: PreferredTerms, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return, per row, the sum of the weights of matching terms."""
        scores = np.zeros(len(nodes), np.int64)
        for term in state:
            scores += match_node_selector_term(term.preference, nodes) * np.int64(term.weight)
        return scores

    def normalize_score(
        self, state: PreferredTerms, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Scale to 0..100; a higher sum is better."""
        return normalize_scores(scores)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return node additions and label changes."""
        actions = Action.ADD | Action.UPDATE_NODE_LABEL
        return (retry_on(NODE, actions, self._after_node_change, per_template=True),)

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the node selector and the node affinity; NOT_SHARED for pods that name nodes.

        The pods of a DaemonSet name a node each and are equal otherwise, so the answers of other
        plugins can be shared if this plugin is asked about the named nodes each time.
        """
        required = required_node_selector(pod.spec)
        if required is not None and _node_names(required) is not None:
            return NOT_SHARED
        selector = pod.spec.node_selector
        labels = None if selector is None else tuple(sorted(selector.items()))
        return labels, required, _preferred_terms(pod)

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> bool:
        if not isinstance(new, Node):
            return True
        if self._added_required is not None and not _matches(self._added_required, new):
            return False
        if not matches_required_node_affinity(pod.spec, new):
            # As upstream, a pod with invalid terms is retried after every change.
            return _meets_error(pod.spec, new)
        return not isinstance(old, Node) or not matches_required_node_affinity(pod.spec, old)


def _error(error: str) -> FieldError:
    path, _, message = error.partition(": ")
    return FieldError(path, message)


def _node_names(required: NodeSelector) -> frozenset[str] | None:
    """Return the nodes that the terms name, or None if there are no terms or one names none."""
    names: set[str] = set()
    for term in required.node_selector_terms:
        named: set[str] | None = None
        for field in term.match_fields:
            if field.key == _NAME_FIELD and field.operator == "In":
                named = {*field.values} if named is None else named.intersection(field.values)
        if named is None:
            return None
        names |= named
    return frozenset(names) if required.node_selector_terms else None


def _asks_for_names_only(required: NodeSelector) -> bool:
    """Whether each of the terms, which name nodes, has one name and nothing else."""
    for term in required.node_selector_terms:
        fields = term.match_fields
        if term.match_expressions or len(fields) != 1 or len(fields[0].values) != 1:
            return False
    return True


def _preferred_terms(pod: PodInfo) -> PreferredTerms | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def _matches(selector: NodeSelector, node: Node) -> bool:
    return matches_node_selector(selector, node.metadata.labels, node.metadata.name)


def _meets_error(spec: PodSpec, node: Node) -> bool:
    """Whether matching the node evaluates an invalid term."""
    required = required_node_selector(spec)
    return (
        required is not None
        and matches_set(spec.node_selector or {}, node.metadata.labels)
        and bool(node_selector_errors(required))
    )
