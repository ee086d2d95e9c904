"""AffinityState: numbers of pods per domain, from sums that inter-pod affinity terms ask for.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState;
          scoring.go (v1.36)
Reads:    pod.spec.affinity of the pod to place and of pods on nodes; namespaces
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Namespace
from kubesched.api.requirements import CompiledSelector
from kubesched.plugins.shared.template_memo import TemplateMemo
from kubesched.snapshot.affinity_terms import (
    AffinityTerm,
    AffinityTerms,
    OwnedTerm,
    TermKind,
    owned_terms_of,
)
from kubesched.snapshot.label_groups import LabelGroup
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.pod_sums import DomainSums, Marker, PodSum

_NO_LABELS: Final[dict[str, str]] = {}
_QUESTIONS_MAX: Final = 4096

KeyedSum = tuple[str, PodSum]
"""A topology key and the sum to take over its domains."""


class IncomingTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A term of the pod to place, with its namespace selector resolved to names.

    Attributes:
        namespaces: The namespaces of matching pods; None means all.
        selector: Matches pod labels.
        topology_key: The node label whose values are the domains.
        weight: What a matching pod counts in sums; negative for preferred anti-affinity, and for
            parts of terms that take pods away.
    """

    namespaces: frozenset[str] | None
    selector: CompiledSelector
    topology_key: str
    weight: int = 0

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod with `labels` in `namespace` matches the term."""
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(
            labels
        )


class SelectedNamespaces:
    """The namespaces that terms select; each selector is matched once until a namespace changes."""

    def __init__(self) -> None:
        self._by_selector: TemplateMemo[frozenset[str]] = TemplateMemo()

    def of(self, term: AffinityTerm, objects: Objects) -> frozenset[str] | None:
        """Return the namespaces of the pods that a term may match; None means all."""
        selector = term.namespace_selector
        if selector.is_nothing:
            return term.namespaces
        # Upstream also matches the selector with every pod as if its namespace had no labels. So a
        # selector that matches an empty label set (`{}`, NotIn, DoesNotExist) selects all
        # namespaces.
        if selector.matches(_NO_LABELS):
            return None

        def select() -> frozenset[str]:
            return frozenset(
                namespace.metadata.name
                for namespace in objects.list(Namespace)
                if selector.matches(namespace.metadata.labels)
            )

        selected = self._by_selector.get(selector, (objects, objects.version(Namespace)), select)
        return selected | term.namespaces if term.namespaces else selected

    def resolve(self, term: AffinityTerm, objects: Objects, weight: int = 1) -> IncomingTerm:
        """Return a term of the pod to place with the namespaces it selects."""
        return IncomingTerm(self.of(term, objects), term.selector, term.topology_key, weight)

    def parts(
        self, terms: Iterable[AffinityTerm], objects: Objects, sign: int = 1
    ) -> list[IncomingTerm]:
        """Return the parts of terms of the pod to place, with `sign` times their weights."""
        return [
            self.resolve(part, objects, sign * part_sign * (term.weight or 1))
            for term in terms
            for part, part_sign in term.parts()
        ]


class Requirements(msgspec.Struct, frozen=True):
    """The required terms of the pod to place, and the sums that they need.

    Attributes:
        affinity, anti_affinity: The terms.
        affinity_sums: Per topology key, counts the pods that match all of `affinity`.
        anti_affinity_sums: Per topology key, counts the pods that match its terms.
    """

    affinity: tuple[IncomingTerm, ...] = ()
    anti_affinity: tuple[IncomingTerm, ...] = ()
    affinity_sums: tuple[KeyedSum, ...] = ()
    anti_affinity_sums: tuple[KeyedSum, ...] = ()

    def are_met_by(self, other: PodInfo) -> bool:
        """Whether there are affinity terms and `other` matches all of them."""
        return bool(self.affinity) and all(
            term.matches(other.namespace, other.labels) for term in self.affinity
        )


NO_REQUIREMENTS: Final = Requirements()


def requirements_of(
    terms: AffinityTerms, objects: Objects, namespaces: SelectedNamespaces
) -> Requirements:
    """Resolve the required terms of pods to place."""
    affinity = tuple(namespaces.resolve(term, objects) for term in terms.required_affinity)
    avoided = terms.required_anti_affinity
    keys = dict.fromkeys(term.topology_key for term in affinity)
    return Requirements(
        affinity=affinity,
        anti_affinity=tuple(namespaces.resolve(term, objects) for term in avoided),
        affinity_sums=tuple((key, matching_all(affinity)) for key in keys),
        anti_affinity_sums=weighing(namespaces.parts(avoided, objects), ()),
    )


@dataclass(slots=True, eq=False)
class AffinityState:
    """Numbers of pods per domain, by topology key; a what-if changes them.

    Attributes:
        requirements: The required terms of the pod to place.
        namespace_labels: The labels of its namespace.
        existing: Counts pods whose required anti-affinity matches the pod to place.
        affinity: Counts pods that match all required affinity of the pod to place.
        anti_affinity: Counts pods that match required anti-affinity of the pod to place.
        table: The nodes and their pods.
        avoiding: For explain: the terms that `existing` counts, None if they are not known yet.
        facts: A cache for explain: (key, question) -> domain -> names of pods.
    """

    requirements: Requirements
    namespace_labels: Mapping[str, str]
    existing: dict[str, DomainSums]
    affinity: dict[str, DomainSums]
    anti_affinity: dict[str, DomainSums]
    table: NodeColumns
    avoiding: list[AffinityTerm] | None = None
    facts: dict[tuple[str, object], dict[str | None, list[str]]] = field(default_factory=dict)

    def clone(self) -> AffinityState:
        """Return a copy that can be changed independently."""
        return replace(
            self,
            existing=_clone(self.existing),
            affinity=_clone(self.affinity),
            anti_affinity=_clone(self.anti_affinity),
        )

    def move(self, pod: PodInfo, other: PodInfo, nodes: NodeTable, amount: int) -> None:
        """Add (`amount` 1) or subtract (-1) `other` on the only row of `nodes`."""
        for sums, key in self._sums_with(pod, other):
            label = nodes.label(key)
            if key not in sums:
                sums[key] = DomainSums.zero(label)
            sums[key].move(label, amount)

    def ignores(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether `other` counts in no domain."""
        return next(self._sums_with(pod, other), None) is None

    def _sums_with(
        self, pod: PodInfo, other: PodInfo
    ) -> Iterator[tuple[dict[str, DomainSums], str]]:
        """Yield where `other` counts: sums and a topology key, once per matching term."""
        owned = other.template.affinity
        for term in owned.required_anti_affinity if owned is not None else ():
            if term.matches(pod.namespace, pod.labels, self.namespace_labels):
                yield self.existing, term.topology_key
        for wanted in self.requirements.anti_affinity:
            if wanted.matches(other.namespace, other.labels):
                yield self.anti_affinity, wanted.topology_key
        if self.requirements.are_met_by(other):
            for key in self.affinity:
                yield self.affinity, key

    def lacks_affinity(self, pod: PodInfo, nodes: NodeTable) -> NDArray[np.bool_]:
        """Return, as bool per row, whether required affinity of `pod` is not met there."""
        # The first pod of a group that needs itself may run anywhere, or none could ever start.
        is_first = self.requirements.are_met_by(pod) and not any(
            domains.has_any for domains in self.affinity.values()
        )
        lacking = np.zeros(len(nodes), np.bool_)
        for key, domains in self.affinity.items():
            label = nodes.label(key)
            lacking |= label.equals(None) if is_first else ~domains.above(label, 0)
        return lacking


def sums_by_key(questions: Iterable[KeyedSum], nodes: NodeColumns) -> dict[str, DomainSums]:
    """Return the sums of a whole table, by topology key; those of one key are added up."""
    sums: dict[str, DomainSums] = {}
    for key, question in questions:
        found = DomainSums.of(nodes.label(key), question.over(nodes.groups))
        if key in sums:
            sums[key].counts += found.counts
        else:
            sums[key] = found
    return sums


def _clone(sums: dict[str, DomainSums]) -> dict[str, DomainSums]:
    return {key: domains.clone() for key, domains in sums.items()}


# What the sums count.


@lru_cache(maxsize=_QUESTIONS_MAX)
def matching_all(terms: tuple[IncomingTerm, ...]) -> PodSum:
    """Return the sum that counts the pods that match all terms."""
    selectors = tuple(term.selector for term in terms)

    def weigh(group: LabelGroup) -> int:
        for selector in selectors:
            if not selector.matches(group.labels):
                return 0
        return 1

    limits = [term.namespaces for term in terms if term.namespaces is not None]
    # A matching pod meets every term, so the index needs only the term with the fewest labels.
    needs = [labels for term in terms if (labels := term.selector.needed_labels) is not None]
    return PodSum(
        weigh,
        frozenset.intersection(*limits) if limits else None,
        min(needs, key=len, default=None),
    )


def weighing(
    incoming: Iterable[IncomingTerm], owned: Iterable[OwnedTerm], hard_weight: int = 1
) -> tuple[KeyedSum, ...]:
    """Return the sums of the weights of matching terms; those of a topology key add up.

    `owned` are terms of pods on nodes that match the pod to place; a required affinity term among
    them weighs `hard_weight`.

    Terms that are not narrow are apart: their sums visit many pods, and many pods share them.
    """
    to_others, from_others = _by_place(incoming), _by_place(owned)
    found: list[KeyedSum] = []
    for place in dict.fromkeys((*to_others, *from_others)):
        key, is_narrow = place
        ours, theirs = tuple(to_others.get(place, ())), frozenset(from_others.get(place, ()))
        if ours and theirs and not is_narrow:
            found.append((key, _weighing(ours, frozenset(), hard_weight)))
            ours = ()
        found.append((key, _weighing(ours, theirs, hard_weight)))
    return tuple(found)


Term = TypeVar("Term", IncomingTerm, OwnedTerm)


def _by_place(terms: Iterable[Term]) -> dict[tuple[str, bool | None], list[Term]]:
    """Return terms by topology key, and by how narrow their selectors are."""
    found: dict[tuple[str, bool | None], list[Term]] = {}
    for term in terms:
        place = term.topology_key, term.selector.is_narrow
        found.setdefault(place, []).append(term)
    return found


@lru_cache(maxsize=_QUESTIONS_MAX)
def _weighing(
    incoming: tuple[IncomingTerm, ...], owned: frozenset[OwnedTerm], hard_weight: int
) -> PodSum:
    def weigh(group: LabelGroup) -> int:
        weight = sum(
            [term.weight for term in incoming if term.matches(group.namespace, group.labels)]
        )
        if owned and group.affinity is not None:
            weight += sum(
                [
                    each.weight * (hard_weight if each.kind is TermKind.REQUIRED_AFFINITY else 1)
                    for each in owned_terms_of(group.affinity)
                    if each in owned
                ]
            )
        return weight

    namespaces = None if owned else _union(incoming)
    labels = _needed_labels(incoming)
    return PodSum(weigh, namespaces, None if labels is None else (*labels, *owned))


def _needed_labels(terms: Iterable[IncomingTerm]) -> tuple[Marker, ...] | None:
    """Return labels of which every matching pod has at least one, or None if unknown."""
    labels: list[Marker] = []
    for term in terms:
        needed = term.selector.needed_labels
        if needed is None:
            return None
        labels += needed
    return tuple(labels)


def _union(terms: Iterable[IncomingTerm]) -> frozenset[str] | None:
    names: set[str] = set()
    for term in terms:
        if term.namespaces is None:
            return None
        names |= term.namespaces
    return frozenset(names)
