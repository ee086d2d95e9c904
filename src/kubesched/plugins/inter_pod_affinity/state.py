"""AffinityState: the numbers of pods per domain with which InterPodAffinity filters.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.plugins.inter_pod_affinity.term_sums import (
    IncomingTerm,
    KeyedSum,
    matching_all,
    matching_each,
    resolve,
    topology_keys,
)
from kubesched.plugins.shared.topology_domains import DomainSums
from kubesched.snapshot.affinity_terms import AffinityTerms
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.pod_sums import PodSum


class Requirements(msgspec.Struct, frozen=True):
    """The required terms of the pod to place, and the sums that they need.

    Attributes:
        affinity, anti_affinity: The terms.
        affinity_keys: The distinct topology keys of `affinity`.
        affinity_sum: Counts the pods that match all of `affinity`; None without terms.
        anti_affinity_sums: Per topology key, counts the pods that match its terms.
    """

    affinity: tuple[IncomingTerm, ...] = ()
    anti_affinity: tuple[IncomingTerm, ...] = ()
    affinity_keys: tuple[str, ...] = ()
    affinity_sum: PodSum | None = None
    anti_affinity_sums: tuple[KeyedSum, ...] = ()

    def are_met_by(self, other: PodInfo) -> bool:
        """Whether there are affinity terms and `other` matches all of them."""
        return bool(self.affinity) and all(
            term.matches(other.namespace, other.labels) for term in self.affinity
        )


NO_REQUIREMENTS: Final = Requirements()


def requirements_of(terms: AffinityTerms, objects: Objects) -> Requirements:
    """Resolve the required terms of pods to place."""
    affinity = tuple(resolve(term, objects) for term in terms.required_affinity)
    anti_affinity = tuple(resolve(term, objects) for term in terms.required_anti_affinity)
    return Requirements(
        affinity=affinity,
        anti_affinity=anti_affinity,
        affinity_keys=topology_keys(affinity),
        affinity_sum=matching_all(affinity) if affinity else None,
        anti_affinity_sums=tuple(
            (key, matching_each(tuple(term for term in anti_affinity if term.topology_key == key)))
            for key in topology_keys(anti_affinity)
        ),
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
        facts: A cache for explain: (key, question) -> domain -> names of pods.
    """

    requirements: Requirements
    namespace_labels: Mapping[str, str]
    existing: dict[str, DomainSums]
    affinity: dict[str, DomainSums]
    anti_affinity: dict[str, DomainSums]
    table: NodeColumns
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
        owned = other.template.affinity
        for term in owned.required_anti_affinity if owned is not None else ():
            if term.matches(pod.namespace, pod.labels, self.namespace_labels):
                _move(self.existing, term.topology_key, nodes, amount)
        if self.requirements.are_met_by(other):
            for key in self.requirements.affinity_keys:
                _move(self.affinity, key, nodes, amount)
        for wanted in self.requirements.anti_affinity:
            if wanted.matches(other.namespace, other.labels):
                _move(self.anti_affinity, wanted.topology_key, nodes, amount)

    def ignores(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether `other` counts in no domain."""
        owned = other.template.affinity
        return not (
            any(
                term.matches(pod.namespace, pod.labels, self.namespace_labels)
                for term in (owned.required_anti_affinity if owned is not None else ())
            )
            or any(
                wanted.matches(other.namespace, other.labels)
                for wanted in self.requirements.anti_affinity
            )
            or self.requirements.are_met_by(other)
        )

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
    """Return the sums of a whole table, by topology key."""
    return {
        key: DomainSums.of(nodes.label(key), question.over(nodes.groups))
        for key, question in questions
    }


def _clone(sums: dict[str, DomainSums]) -> dict[str, DomainSums]:
    return {key: domains.clone() for key, domains in sums.items()}


def _move(sums: dict[str, DomainSums], key: str, nodes: NodeTable, amount: int) -> None:
    label = nodes.label(key)
    domains = sums.get(key)
    if domains is None:
        domains = sums[key] = DomainSums.zero(label)
    domains.move(label, amount)
