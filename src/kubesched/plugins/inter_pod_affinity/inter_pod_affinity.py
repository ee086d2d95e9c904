"""InterPodAffinity: place pods near the pods they need, and away from the pods they avoid.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity (v1.36)
Reads:    pod.spec.affinity.podAffinity, podAntiAffinity of the pod and of pods on nodes;
          pod.metadata.labels; namespaces; nodes.labels
Rejects:  UnschedulableAndUnresolvable if affinity is not met, because evicting pods cannot add the
          missing ones; Unschedulable if anti-affinity is violated.
Differs:  scoring is skipped if the weights of matching terms add up to 0 in every domain, where
          upstream gives each node the score 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Namespace
from kubesched.api.field_errors import FieldError, child
from kubesched.api.integers import Int32
from kubesched.config.args import PluginArgs
from kubesched.config.validation import validate_range
from kubesched.framework.cluster_event import NODE, POD, Action, ClusterEventWithHint, retry_on
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    NODE_SCORE_MAX,
    PRE_FILTER_SKIP,
    PRE_SCORE_SKIP,
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
from kubesched.plugins.inter_pod_affinity.describing import describe_affinity
from kubesched.plugins.inter_pod_affinity.hints import (
    BY_LABELS,
    after_node_change,
    after_pod_change,
)
from kubesched.plugins.inter_pod_affinity.state import (
    NO_REQUIREMENTS,
    AffinityState,
    KeyedSum,
    Requirements,
    SelectedNamespaces,
    preferences_of,
    requirements_of,
    sums_by_key,
    weighing,
)
from kubesched.plugins.shared.template_memo import TemplateMemo
from kubesched.snapshot.affinity_terms import AffinityTerm, TermBucket, TermIndex, TermKind
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.pod_sums import DomainSums
from kubesched.snapshot.snapshot import Snapshot

_STATUSES: Final = (
    SUCCESS,
    unresolvable("node(s) didn't match pod affinity rules"),
    unschedulable("node(s) didn't match pod anti-affinity rules"),
    unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
)
_LACKS_AFFINITY, _VIOLATES_ANTI_AFFINITY, _VIOLATES_EXISTING = 1, 2, 3
_NO_LABELS: Final[dict[str, str]] = {}
_HARD_WEIGHT_MAX: Final = 100

AffinityScores = tuple[tuple[str, NDArray[np.int64]], ...]
"""Per topology key: the score of each domain, as int64 per code of the node label."""


class InterPodAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    """How the affinity terms of pods on nodes count in scoring.

    Attributes:
        hard_pod_affinity_weight: The weight of existing pods' required affinity terms, 0 to 100.
        ignore_preferred_terms_of_existing_pods: Whether their preferred terms do not count for pods
            without affinity terms of their own.
    """

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def errors(self, path: str) -> Iterable[FieldError]:
        """Return an error unless the weight is from 0 to 100."""
        place = child(path, "hardPodAffinityWeight")
        return validate_range(self.hard_pod_affinity_weight, place, _HARD_WEIGHT_MAX)


_NO_TERMS_FILTER: Final[PreFilterResult[AffinityState]] = PreFilterResult(status=SKIP, lasts=True)
_NO_TERMS_SCORE: Final[PreScoreResult[AffinityScores]] = PreScoreResult(status=SKIP, lasts=True)


class InterPodAffinity(
    PreFilterExtensions[AffinityState],
    FilterPlugin[AffinityState],
    PreScorePlugin[AffinityScores],
    ScorePlugin[AffinityScores],
):
    """Filter on required terms of the pod and of pods on nodes; score on preferred terms."""

    name: ClassVar = "InterPodAffinity"
    args_type: ClassVar = InterPodAffinityArgs
    scope: ClassVar = Scope.CLUSTER
    per_template: ClassVar = True
    no_filter_state: ClassVar = (
        'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    )
    no_score_state: ClassVar = (
        'failed to read "PreScoreInterPodAffinity" from cycleState: not found'
    )

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores_existing = args.ignore_preferred_terms_of_existing_pods
        self._namespaces = SelectedNamespaces()
        self._requirements: TemplateMemo[Requirements] = TemplateMemo()
        self._existing: TemplateMemo[tuple[KeyedSum, ...]] = TemplateMemo()
        self._preferences: TemplateMemo[tuple[KeyedSum, ...]] = TemplateMemo()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return changes of pods and their labels, node additions and node label changes."""
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL
        return (
            retry_on(POD, pods, after_pod_change, per_template=True, filing=BY_LABELS),
            retry_on(NODE, nodes, after_node_change, per_template=True),
        )

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[AffinityState]:
        """Count, per domain, the pods that match the pod's terms or have terms that match it."""
        terms = pod.template.affinity
        if terms is not None and terms.error:
            return PreFilterResult(status=unresolvable(f"parsing pod: {terms.error}"))
        nodes, objects = snapshot.nodes, snapshot.objects
        index = nodes.groups.owned_terms.filtering
        buckets = index.about(pod.namespace)
        has_terms = terms is not None and bool(
            terms.required_affinity or terms.required_anti_affinity
        )
        existing: dict[str, DomainSums] = {}
        if buckets[0].terms or buckets[1].terms:
            existing = self._sum_existing(pod, snapshot, index, buckets)
        if not has_terms and not any(domains.has_any for domains in existing.values()):
            return PRE_FILTER_SKIP if existing else _NO_TERMS_FILTER
        requirements = self._requirements_of(pod, objects) if has_terms else NO_REQUIREMENTS
        return PreFilterResult(
            AffinityState(
                requirements,
                _namespace_labels(pod, objects),
                existing,
                affinity=sums_by_key(requirements.affinity_sums, nodes),
                anti_affinity=sums_by_key(requirements.anti_affinity_sums, nodes),
                table=nodes,
            )
        )

    def add_pod(
        self, state: AffinityState, pod: PodInfo, added: PodInfo, nodes: NodeTable
    ) -> Status:
        """Add `added` to the counts of its node's domains."""
        state.move(pod, added, nodes, 1)
        return SUCCESS

    def remove_pod(
        self, state: AffinityState, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status:
        """Subtract `removed` from the counts of its node's domains."""
        state.move(pod, removed, nodes, -1)
        return SUCCESS

    def ignores(self, state: AffinityState, pod: PodInfo, other: PodInfo) -> bool:
        """Whether no required term matches, neither of `pod` nor anti-affinity of `other`."""
        return state.ignores(pod, other)

    def filter(self, state: AffinityState, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows by affinity, then anti-affinity, then the anti-affinity of existing pods."""
        index = np.zeros(len(nodes), np.int32)
        # The check with precedence is written last.
        for key, domains in state.existing.items():
            index[domains.above(nodes.label(key), 0)] = _VIOLATES_EXISTING
        for key, domains in state.anti_affinity.items():
            index[domains.above(nodes.label(key), 0)] = _VIOLATES_ANTI_AFFINITY
        if state.affinity:
            index[state.lacks_affinity(pod, nodes)] = _LACKS_AFFINITY
        return NodeToStatus(index, _STATUSES)

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return namespaces if a term selects them by label."""
        index, terms = snapshot.nodes.groups.owned_terms, pod.template.affinity
        required = list(_selecting(index.filtering))
        preferred = list(_selecting(index.scoring))
        if terms is not None:
            required += (*terms.required_affinity, *terms.required_anti_affinity)
            preferred += (*terms.preferred_affinity, *terms.preferred_anti_affinity)
        for owned, decides in ((required, Decides.FIT), (preferred, Decides.CHOICE)):
            if any(map(_reads_namespaces, owned)):
                yield NeededKind(Namespace, "affinity terms select them by label", decides)

    def describe(self, state: AffinityState, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the domain that decided, the pods there, and the term that matches them."""
        return describe_affinity(state, pod, nodes)

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[AffinityScores]:
        """Return the score of each domain: the sum of the weights of matching terms."""
        terms = pod.template.affinity
        has_preferred = terms is not None and bool(
            terms.preferred_affinity or terms.preferred_anti_affinity
        )
        if self._ignores_existing and not has_preferred:
            return _NO_TERMS_SCORE
        if terms is not None and terms.error:
            return PreScoreResult(status=failure(f"failed to parse pod: {terms.error}"))
        nodes = snapshot.nodes
        index = nodes.groups.owned_terms.scoring
        buckets = index.about(pod.namespace)
        if not (has_preferred or buckets[0].terms or buckets[1].terms):
            return _NO_TERMS_SCORE
        questions = self._preferences_about(pod, snapshot.objects, index, buckets)
        if not questions:
            return _NO_TERMS_SCORE
        worths = sums_by_key(questions, nodes)
        if any(worth.has_any for worth in worths.values()):
            return PreScoreResult(tuple((key, worth.counts) for key, worth in worths.items()))
        return PRE_SCORE_SKIP

    def score(self, state: AffinityScores, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return, per row, the sum of the scores of its domains."""
        (key, worth), *others = state
        scores = worth.take(nodes.label(key).codes)
        for key, worth in others:
            scores += worth.take(nodes.label(key).codes)
        return scores

    def normalize_score(
        self,
        state: AffinityScores,
        pod: PodInfo,
        scores: NDArray[np.int64],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        """Scale linearly from 0 for the lowest to 100 for the highest; all 0 if equal."""
        if not len(scores):
            return scores
        least = scores.min()
        difference = scores.max() - least
        if difference == 0:
            return np.zeros_like(scores)
        normalized: NDArray[np.float64] = NODE_SCORE_MAX * ((scores - least) / difference)
        return normalized.astype(np.int64)

    def _requirements_of(self, pod: PodInfo, objects: Objects) -> Requirements:
        terms = pod.template.affinity
        assert terms is not None, "only pods with terms have requirements"
        # Pods that differ only in their labels have the same terms.
        return self._requirements.get(
            terms,
            (objects, objects.version(Namespace)),
            lambda: requirements_of(terms, objects, self._namespaces),
        )

    def _sum_existing(
        self, pod: PodInfo, snapshot: Snapshot, index: TermIndex, buckets: Buckets
    ) -> dict[str, DomainSums]:
        """Count, per domain, the pods whose required anti-affinity matches the pod."""
        objects = snapshot.objects

        def derive() -> tuple[KeyedSum, ...]:
            labels = _namespace_labels(pod, objects)
            return weighing((), index.matching(pod.namespace, pod.labels, labels))

        questions = self._existing.get(pod.template, _stamp(objects, buckets), derive)
        return sums_by_key(questions, snapshot.nodes)

    def _preferences_about(
        self, pod: PodInfo, objects: Objects, index: TermIndex, buckets: Buckets
    ) -> tuple[KeyedSum, ...]:
        """Return the sums that make up the scores of domains."""

        def derive() -> tuple[KeyedSum, ...]:
            labels = _namespace_labels(pod, objects)
            owned = [
                owned
                for owned in index.matching(pod.namespace, pod.labels, labels)
                if self._hard_weight > 0 or owned.kind is not TermKind.REQUIRED_AFFINITY
            ]
            return preferences_of(
                pod.template.affinity, owned, self._hard_weight, objects, self._namespaces
            )

        return self._preferences.get(pod.template, _stamp(objects, buckets), derive)


Buckets = tuple[TermBucket, TermBucket]


def _stamp(objects: Objects, buckets: Buckets) -> tuple[object, ...]:
    naming, selecting = buckets
    version = objects.version(Namespace)
    return (objects, version, naming, naming.version, selecting, selecting.version)


def _namespace_labels(pod: PodInfo, objects: Objects) -> dict[str, str]:
    namespace = objects.get(Namespace, pod.namespace)
    return _NO_LABELS if namespace is None else namespace.metadata.labels


def _selecting(index: TermIndex) -> Iterator[AffinityTerm]:
    """Yield the terms of pods on nodes that select namespaces."""
    return (owned.term for owned in index.about("")[1].terms)


def _reads_namespaces(term: AffinityTerm) -> bool:
    """Whether a term selects namespaces by label."""
    return bool(term.namespace_selector.requirements)
