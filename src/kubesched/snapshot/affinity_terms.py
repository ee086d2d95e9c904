"""Inter-pod affinity terms, parsed once per pod template.

Upstream: pkg/scheduler/framework/types.go, getAffinityTerms (v1.36)
Reads:    pod.spec.affinity.podAffinity, podAntiAffinity
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from kubesched.api.core import Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity
from kubesched.api.field_errors import aggregate
from kubesched.api.requirements import CompiledSelector, SelectorError
from kubesched.api.selectors import compile_label_selector

_PARSED_MAX: Final = 8192
_KINDS_IN_ERRORS: Final = {
    "required_affinity": "requiredAffinityTerms",
    "required_anti_affinity": "requiredAntiAffinityTerms",
    "preferred_affinity": "preferredAffinityTerms",
    "preferred_anti_affinity": "preferredAntiAffinityTerms",
}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[PodAffinity | None, PodAntiAffinity | None]).decode


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
        ("required_affinity", _unweighted(attract)),
        ("required_anti_affinity", _unweighted(repel)),
        ("preferred_affinity", _weighted(attract)),
        ("preferred_anti_affinity", _weighted(repel)),
    ):
        try:
            kinds[kind] = tuple(_term(term, namespace, weight) for term, weight in written)
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
