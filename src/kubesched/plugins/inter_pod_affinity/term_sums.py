"""Turns inter-pod affinity terms into sums over all pods on nodes.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity (v1.36)
Reads:    pod.spec.affinity of the pod to place and of pods on nodes; namespaces
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from kubesched.api.core import Namespace
from kubesched.api.requirements import CompiledSelector
from kubesched.snapshot.affinity_terms import AffinityTerm, AffinityTerms, OwnedTerm, TermKind
from kubesched.snapshot.label_groups import LabelGroup
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_sums import Marker, PodSum

_NO_LABELS: Final[dict[str, str]] = {}
_QUESTIONS_MAX: Final = 8192

KeyedSum = tuple[str, PodSum]
"""A topology key and the sum to take over its domains."""

Preference = tuple[str, PodSum, PodSum]
"""A topology key, the sum of the weights of matching terms, and the number of matches."""


class IncomingTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A term of the pod to place, with its namespace selector resolved to names.

    Attributes:
        namespaces: The namespaces of matching pods; None means all.
        selector: Matches pod labels.
        topology_key: The node label whose values are the domains.
        weight: The score per matching pod; negative for preferred anti-affinity, 0 if required.
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


def resolve(term: AffinityTerm, objects: Objects, weight: int = 0) -> IncomingTerm:
    """Resolve the namespace selector of a term of the pod to place."""
    selector = term.namespace_selector
    namespaces: frozenset[str] | None
    # Upstream also matches the selector with every pod as if its namespace had no labels. So a
    # selector that matches an empty label set (`{}`, NotIn, DoesNotExist) selects all namespaces.
    if selector.matches(_NO_LABELS):
        namespaces = None
    else:
        selected = (
            namespace.metadata.name
            for namespace in objects.list(Namespace)
            if selector.matches(namespace.metadata.labels)
        )
        namespaces = term.namespaces.union(selected)
    return IncomingTerm(namespaces, term.selector, term.topology_key, weight)


def topology_keys(terms: Iterable[IncomingTerm | AffinityTerm]) -> tuple[str, ...]:
    """Return the distinct topology keys, in order of appearance."""
    return tuple(dict.fromkeys(term.topology_key for term in terms))


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


@lru_cache(maxsize=_QUESTIONS_MAX)
def matching_each(terms: tuple[IncomingTerm, ...]) -> PodSum:
    """Return the sum that counts each pod once per term that it matches."""
    if len(terms) == 1:
        return matching_all(terms)

    def weigh(group: LabelGroup) -> int:
        return sum(term.matches(group.namespace, group.labels) for term in terms)

    return PodSum(weigh, _union(terms), _needed_labels(terms))


@lru_cache(maxsize=_QUESTIONS_MAX)
def owning_anti_affinity(terms: frozenset[OwnedTerm]) -> PodSum:
    """Return the sum that counts each pod once per required anti-affinity term among `terms`."""
    wanted = frozenset(term for _, term in terms)

    def weigh(group: LabelGroup) -> int:
        affinity = group.affinity
        if affinity is None:
            return 0
        return sum([term in wanted for term in affinity.required_anti_affinity])

    return PodSum(weigh, markers=terms)


def preferences_of(
    terms: AffinityTerms | None,
    owned: Sequence[OwnedTerm],
    hard_weight: int,
    objects: Objects,
) -> tuple[Preference, ...]:
    """Return the sums for scoring; those of a topology key add up.

    `owned` are terms of pods on nodes that match the pod to place; a required affinity term among
    them weighs `hard_weight`.
    """
    incoming: list[IncomingTerm] = []
    if terms is not None:
        incoming += [resolve(term, objects, term.weight) for term in terms.preferred_affinity]
        incoming += [resolve(term, objects, -term.weight) for term in terms.preferred_anti_affinity]
    found: list[Preference] = []
    for key in topology_keys((*incoming, *(term for _, term in owned))):
        to_others = tuple(term for term in incoming if term.topology_key == key)
        from_others = frozenset(pair for pair in owned if pair[1].topology_key == key)
        if from_others and _needed_labels(to_others) is None:
            # Apart, because only one of the sums has to visit pods without regard to labels.
            found.append((key, *_preference(to_others, frozenset(), hard_weight)))
            to_others = ()
        found.append((key, *_preference(to_others, from_others, hard_weight)))
    return tuple(found)


@lru_cache(maxsize=_QUESTIONS_MAX)
def _preference(
    incoming: tuple[IncomingTerm, ...], owned: frozenset[OwnedTerm], hard_weight: int
) -> tuple[PodSum, PodSum]:
    def worth(group: LabelGroup) -> Iterator[int]:
        for term in incoming:
            if term.matches(group.namespace, group.labels):
                yield term.weight
        if owned and group.affinity is not None:
            for pair, weight in _weighed(group.affinity, hard_weight):
                if pair in owned:
                    yield weight

    namespaces = None if owned else _union(incoming)
    labels = _needed_labels(incoming)
    markers = None if labels is None else (*labels, *owned)
    return (
        PodSum(lambda group: sum(worth(group)), namespaces, markers),
        PodSum(lambda group: sum(1 for _ in worth(group)), namespaces, markers),
    )


def _weighed(terms: AffinityTerms, hard_weight: int) -> Iterator[tuple[OwnedTerm, int]]:
    """Yield the terms that count in scoring, with their weights."""
    for term in terms.required_affinity:
        yield (TermKind.REQUIRED_AFFINITY, term), hard_weight
    for term in terms.preferred_affinity:
        yield (TermKind.PREFERRED_AFFINITY, term), term.weight
    for term in terms.preferred_anti_affinity:
        yield (TermKind.PREFERRED_ANTI_AFFINITY, term), -term.weight


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
