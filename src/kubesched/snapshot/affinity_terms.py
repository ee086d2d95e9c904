"""Inter-pod affinity terms, parsed once per pod template; and the terms of all pods on nodes.

The latter are indexed by the namespaces and labels that they select. Many pods share few distinct
terms. So finding the terms that select a pod is cheap, even with many pods that all have different
labels.

Upstream: pkg/scheduler/framework/types.go, getAffinityTerms (v1.36)
Reads:    pod.spec.affinity.podAffinity, podAntiAffinity
Invariants: a bucket's version increases whenever its set of terms changes.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity
from kubesched.api.field_errors import aggregate
from kubesched.api.requirements import NOTHING, CompiledSelector, SelectorError
from kubesched.api.selectors import compile_label_selector

_PARSED_MAX: Final = 4096

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[PodAffinity | None, PodAntiAffinity | None]).decode


class TermKind(Enum):
    """The kind of an affinity term, with its field of `AffinityTerms`."""

    REQUIRED_ANTI_AFFINITY = "required_anti_affinity"
    REQUIRED_AFFINITY = "required_affinity"
    PREFERRED_AFFINITY = "preferred_affinity"
    PREFERRED_ANTI_AFFINITY = "preferred_anti_affinity"


_TERMS_BY_KIND: Final = tuple((kind, attrgetter(kind.value)) for kind in TermKind)
_KINDS_IN_ERRORS: Final = {
    TermKind.REQUIRED_AFFINITY: "requiredAffinityTerms",
    TermKind.REQUIRED_ANTI_AFFINITY: "requiredAntiAffinityTerms",
    TermKind.PREFERRED_AFFINITY: "preferredAffinityTerms",
    TermKind.PREFERRED_ANTI_AFFINITY: "preferredAntiAffinityTerms",
}


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """One term: the pods it selects, and the topology key of its domains.

    Attributes:
        namespaces: The namespaces that it names; the pod's own if it neither names nor selects any.
        selector: Matches pod labels.
        topology_key: The node label whose values are the domains.
        namespace_selector: Matches namespace labels; an absent one matches nothing.
        weight: 1 to 100 for preferred terms, 0 for required ones.
    """

    namespaces: frozenset[str]
    selector: CompiledSelector
    topology_key: str
    namespace_selector: CompiledSelector
    weight: int = 0

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether the term selects a pod with `labels` in `namespace`."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)

    def parts(self) -> Iterator[tuple[AffinityTerm, int]]:
        """Yield terms with signs: added up, they match each pod as often as this term does, 0 or 1.

        A term that only excludes values may match almost any pod, and each job or app may have such
        a term of its own. The first part is the same for all of them, the second one selects few
        pods.
        """
        difference = self.selector.as_difference
        if difference is None:
            yield self, 1
        else:
            rest, excluded = difference
            yield replace(self, selector=rest), 1
            yield replace(self, selector=excluded), -1


class AffinityTerms(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """All terms of a pod; `error` says why some cannot be parsed, "" if all can."""

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
    error: str = ""


def affinity_terms_of(pod: Pod) -> AffinityTerms | None:
    """Parse the pod's terms; None if it has none.

    If one term cannot be parsed, all terms of its kind are left out; other kinds are kept.
    """
    affinity = pod.spec.affinity
    if affinity is None:
        return None
    written = affinity.pod_affinity, affinity.pod_anti_affinity
    if written == (None, None):
        return None
    return _parse(pod.metadata.namespace, _encode(written))


@lru_cache(maxsize=_PARSED_MAX)
def _parse(namespace: str, encoded: bytes) -> AffinityTerms:
    """Parse terms; those of pods that are equal but for their labels are one object."""
    attract, repel = _decode(encoded)
    attract, repel = attract or PodAffinity(), repel or PodAntiAffinity()
    kinds: dict[str, tuple[AffinityTerm, ...]] = {}
    errors: list[str] = []
    for kind, written in (
        (TermKind.REQUIRED_AFFINITY, _unweighted(attract)),
        (TermKind.REQUIRED_ANTI_AFFINITY, _unweighted(repel)),
        (TermKind.PREFERRED_AFFINITY, _weighted(attract)),
        (TermKind.PREFERRED_ANTI_AFFINITY, _weighted(repel)),
    ):
        try:
            kinds[kind.value] = tuple(_term(term, namespace, weight) for term, weight in written)
        except SelectorError as error:
            errors.append(f"{_KINDS_IN_ERRORS[kind]}: {error}")
    return AffinityTerms(**kinds, error=aggregate(tuple(errors)) if errors else "")


def _unweighted(affinity: PodAffinity | PodAntiAffinity) -> list[tuple[PodAffinityTerm, int]]:
    return [(term, 0) for term in affinity.required_during_scheduling_ignored_during_execution]


def _weighted(affinity: PodAffinity | PodAntiAffinity) -> list[tuple[PodAffinityTerm, int]]:
    return [
        (term.pod_affinity_term, term.weight)
        for term in affinity.preferred_during_scheduling_ignored_during_execution
    ]


def _term(term: PodAffinityTerm, namespace: str, weight: int) -> AffinityTerm:
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        namespaces=frozenset((namespace,) if own else term.namespaces),
        selector=compile_label_selector(term.label_selector),
        topology_key=term.topology_key,
        namespace_selector=compile_label_selector(term.namespace_selector),
        weight=weight,
    )


# The terms of all pods on nodes.


class OwnedTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A term of pods on nodes, or one of its parts.

    Attributes:
        kind: The kind of the whole term.
        term: The term or part.
        weight: What each pod that owns it counts in sums: 1 for required terms, -1 to -100 for
            preferred anti-affinity; of the other sign for a part that takes pods away.
    """

    kind: TermKind
    term: AffinityTerm
    weight: int

    @property
    def topology_key(self) -> str:
        """The node label whose values are the domains."""
        return self.term.topology_key

    @property
    def selector(self) -> CompiledSelector:
        """Matches pod labels."""
        return self.term.selector


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
        labels = owned.selector.needed_labels
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
        term = owned.term
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
                if owned.term.matches(namespace, labels, namespace_labels):
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
            is_filtering = owned.kind is TermKind.REQUIRED_ANTI_AFFINITY
            (self.filtering if is_filtering else self.scoring).count(owned, sign)


@lru_cache(maxsize=_PARSED_MAX)
def owned_terms_of(terms: AffinityTerms) -> tuple[OwnedTerm, ...]:
    """Return the parts of all terms of a pod, including duplicates."""
    return tuple(
        OwnedTerm(kind, part, sign * _weight_of(kind, term))
        for kind, terms_of in _TERMS_BY_KIND
        for term in terms_of(terms)
        for part, sign in term.parts()
    )


def _weight_of(kind: TermKind, term: AffinityTerm) -> int:
    weight = term.weight or 1
    return -weight if kind is TermKind.PREFERRED_ANTI_AFFINITY else weight
