"""The affinity terms of pods on nodes, indexed by the namespaces and labels that they select.

Many pods share few distinct terms. So finding the terms that select a pod is cheap, even with many
pods that all have different labels.

Reads:      pod.spec.affinity of pods on nodes
Invariants: a bucket's version increases whenever its set of terms changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from kubesched.api.requirements import NOTHING
from kubesched.snapshot.affinity_terms import AffinityTerm, AffinityTerms


class TermKind(Enum):
    """The kind of an affinity term."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


OwnedTerm = tuple[TermKind, AffinityTerm]


class TermBucket:
    """Terms with the number of their owners.

    Attributes:
        terms: Term -> number of label groups that own it; a group that lists it twice counts twice.
        version: Increases when a term is added or removed.
    """

    __slots__ = ("_by_label", "terms", "version")

    def __init__(self) -> None:
        self.terms: dict[OwnedTerm, int] = {}
        self.version = 0
        # A term whose selector requires one of several labels is filed under each of them; the
        # others are filed under None.
        self._by_label: dict[tuple[str, str] | None, dict[OwnedTerm, None]] = {}

    def count(self, owned: OwnedTerm, sign: int) -> None:
        """Count one owner more (`sign` 1) or less (-1)."""
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
        """Iterate over the terms whose selector may match `labels`, without duplicates."""
        yield from self._by_label.get(None, ())
        for item in labels.items():
            yield from self._by_label.get(item, ())


_EMPTY: Final = TermBucket()


class TermIndex:
    """Owned terms: one bucket per namespace that terms name, one for namespace selectors."""

    def __init__(self) -> None:
        self._naming: dict[str, TermBucket] = {}
        self._selecting = TermBucket()

    def count(self, owned: OwnedTerm, sign: int) -> None:
        """Count one owner more (`sign` 1) or less (-1)."""
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
        """Return the terms that name the namespace, and those with a namespace selector."""
        return self._naming.get(namespace, _EMPTY), self._selecting

    def matching(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> Iterator[OwnedTerm]:
        """Iterate over the terms that select a pod with `labels` in `namespace`."""
        for bucket in self.about(namespace):
            for owned in bucket.candidates(labels):
                if owned[1].matches(namespace, labels, namespace_labels):
                    yield owned


class OwnedTerms:
    """The terms of all pods on nodes.

    Attributes:
        filtering: Required anti-affinity, which excludes nodes.
        scoring: All others, which affect scores.
        version: Increases when a label group with terms comes or goes.
    """

    __slots__ = ("filtering", "scoring", "version")

    def __init__(self) -> None:
        self.filtering = TermIndex()
        self.scoring = TermIndex()
        self.version = 0

    def count(self, terms: AffinityTerms, sign: int) -> None:
        """Add (`sign` 1) or remove (-1) a label group with these terms."""
        self.version += 1
        for owned in owned_terms_of(terms):
            is_filtering = owned[0] is TermKind.REQUIRED_ANTI_AFFINITY
            (self.filtering if is_filtering else self.scoring).count(owned, sign)


def owned_terms_of(terms: AffinityTerms) -> Iterator[OwnedTerm]:
    """Iterate over all terms of a pod, including duplicates."""
    for kind, owned in (
        (TermKind.REQUIRED_ANTI_AFFINITY, terms.required_anti_affinity),
        (TermKind.REQUIRED_AFFINITY, terms.required_affinity),
        (TermKind.PREFERRED_AFFINITY, terms.preferred_affinity),
        (TermKind.PREFERRED_ANTI_AFFINITY, terms.preferred_anti_affinity),
    ):
        for term in owned:
            yield kind, term
