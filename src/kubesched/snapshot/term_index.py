"""Which affinity terms the pods on nodes own, found by the namespace of the pod they may be about.

Few terms are distinct, however many pods own them, so asking which terms are about a pod is cheap
even where pods are many and each has labels of its own.

Reads:      pod.spec.affinity of pods on nodes
Invariants: a bucket's version moves whenever its set of terms does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from kubesched.api.selectors import NOTHING
from kubesched.snapshot.affinity_terms import AffinityTerm, AffinityTerms


class TermKind(Enum):
    """What the owner of a term makes of the pods it is about."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


OwnedTerm = tuple[TermKind, AffinityTerm]


class TermBucket:
    """Terms with the number of times they are owned.

    Attributes:
        terms: Term -> how many groups of pods own it, counted as often as each lists it.
        version: Moves when a term becomes owned, or is no longer.
    """

    __slots__ = ("_by_label", "terms", "version")

    def __init__(self) -> None:
        self.terms: dict[OwnedTerm, int] = {}
        self.version = 0
        # A term whose selector needs one of some labels stands under each of them, others under
        # None.
        self._by_label: dict[tuple[str, str] | None, dict[OwnedTerm, None]] = {}

    def count(self, owned: OwnedTerm, sign: int) -> None:
        """Note one owner more (`sign` 1) or less (-1)."""
        owners = self.terms.get(owned, 0) + sign
        if owners and owned in self.terms:
            self.terms[owned] = owners
            return
        self.version += 1
        labels = owned[1].selector.needed_labels
        if owners:
            self.terms[owned] = owners
            for label in (None,) if labels is None else labels:
                self._by_label.setdefault(label, {})[owned] = None
            return
        del self.terms[owned]
        for label in (None,) if labels is None else labels:
            del self._by_label[label][owned]
            if not self._by_label[label]:
                del self._by_label[label]

    def candidates(self, labels: Mapping[str, str]) -> Iterator[OwnedTerm]:
        """Iterate over the terms whose selector may match `labels`, each once."""
        yield from self._by_label.get(None, ())
        for item in labels.items():
            yield from self._by_label.get(item, ())


_EMPTY: Final = TermBucket()


class TermIndex:
    """Owned terms, by the namespaces they name or as selecting namespaces by label."""

    def __init__(self) -> None:
        self._naming: dict[str, TermBucket] = {}
        self._selecting = TermBucket()

    def count(self, owned: OwnedTerm, sign: int) -> None:
        """Note one owner more (`sign` 1) or less (-1)."""
        term = owned[1]
        if term.namespace_selector != NOTHING:
            self._selecting.count(owned, sign)
            return
        for namespace in term.namespaces:
            bucket = self._naming.setdefault(namespace, TermBucket())
            bucket.count(owned, sign)
            if not bucket.terms:
                del self._naming[namespace]

    def about(self, namespace: str) -> tuple[TermBucket, TermBucket]:
        """Return the terms that can be about pods of the namespace: naming it, and selecting."""
        return self._naming.get(namespace, _EMPTY), self._selecting

    def matching(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> Iterator[OwnedTerm]:
        """Iterate over the terms that are about a pod with `labels` in `namespace`."""
        for bucket in self.about(namespace):
            for owned in bucket.candidates(labels):
                if owned[1].matches(namespace, labels, namespace_labels):
                    yield owned


class OwnedTerms:
    """The terms of all pods on nodes.

    Attributes:
        filtering: Those that keep pods off nodes: required anti-affinity.
        scoring: Those that make nodes better or worse: all others.
    """

    __slots__ = ("filtering", "scoring")

    def __init__(self) -> None:
        self.filtering = TermIndex()
        self.scoring = TermIndex()

    def count(self, terms: AffinityTerms, sign: int) -> None:
        """Note that a group of pods with these terms came (`sign` 1) or went (-1)."""
        for owned in owned_terms_of(terms):
            is_filtering = owned[0] is TermKind.REQUIRED_ANTI_AFFINITY
            (self.filtering if is_filtering else self.scoring).count(owned, sign)


def owned_terms_of(terms: AffinityTerms) -> Iterator[OwnedTerm]:
    """Iterate over all terms of a pod, as often as it lists each."""
    for kind, owned in (
        (TermKind.REQUIRED_ANTI_AFFINITY, terms.required_anti_affinity),
        (TermKind.REQUIRED_AFFINITY, terms.required_affinity),
        (TermKind.PREFERRED_AFFINITY, terms.preferred_affinity),
        (TermKind.PREFERRED_ANTI_AFFINITY, terms.preferred_anti_affinity),
    ):
        for term in owned:
            yield kind, term
