"""Inter-pod affinity terms, parsed once per pod template.

Upstream: pkg/scheduler/framework/types.go, getAffinityTerms (v1.36)
Reads:    pod.spec.affinity.podAffinity, podAntiAffinity
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubesched.api.core import Pod, PodAffinityTerm
from kubesched.api.selectors import CompiledSelector, SelectorError, compile_label_selector


class AffinityTerm(msgspec.Struct, frozen=True):
    """One term: which pods it is about, and the domain of which label key.

    Attributes:
        namespaces: Namespaces it names, or the pod's own if it names none and selects none.
        selector: On pod labels.
        topology_key: The node label whose values are the domains.
        namespace_selector: On namespace labels; matches nothing if absent.
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
        """Whether a pod with `labels` in `namespace` is one the term is about."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)


class AffinityTerms(msgspec.Struct, frozen=True):
    """All terms of a pod; `error` tells why a required one cannot be parsed."""

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
    error: str = ""

    @property
    def all_terms(self) -> tuple[AffinityTerm, ...]:
        """Every term, whatever its kind."""
        return (
            *self.required_affinity,
            *self.required_anti_affinity,
            *self.preferred_affinity,
            *self.preferred_anti_affinity,
        )


def affinity_terms_of(pod: Pod) -> AffinityTerms | None:
    """Parse the pod's terms; None if it has none."""
    affinity = pod.spec.affinity
    if affinity is None:
        return None
    namespace = pod.metadata.namespace
    attract, repel = affinity.pod_affinity, affinity.pod_anti_affinity
    if attract is None and repel is None:
        return None
    try:
        return AffinityTerms(
            required_affinity=_required(
                attract.required_during_scheduling_ignored_during_execution if attract else (),
                namespace,
            ),
            required_anti_affinity=_required(
                repel.required_during_scheduling_ignored_during_execution if repel else (),
                namespace,
            ),
            preferred_affinity=tuple(
                _term(weighted.pod_affinity_term, namespace, weighted.weight)
                for weighted in (
                    attract.preferred_during_scheduling_ignored_during_execution if attract else ()
                )
            ),
            preferred_anti_affinity=tuple(
                _term(weighted.pod_affinity_term, namespace, weighted.weight)
                for weighted in (
                    repel.preferred_during_scheduling_ignored_during_execution if repel else ()
                )
            ),
        )
    except SelectorError as error:
        return AffinityTerms(error=str(error))


def _required(terms: tuple[PodAffinityTerm, ...], namespace: str) -> tuple[AffinityTerm, ...]:
    return tuple(_term(term, namespace, 0) for term in terms)


def _term(term: PodAffinityTerm, namespace: str, weight: int) -> AffinityTerm:
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        namespaces=frozenset((namespace,) if own else term.namespaces),
        selector=compile_label_selector(term.label_selector),
        topology_key=term.topology_key,
        namespace_selector=compile_label_selector(term.namespace_selector),
        weight=weight,
    )
