# ruff: noqa: N802, N803 - the names are those of the formulas in docs/model.md
"""The ratings of the model: how well a node suits a pod, compared with the other nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kubesched.api.core import Node, Pod, PodAffinityTerm

from .filters import (
    About,
    InReach,
    TermMatches,
    Tolerates,
    node_affinity,
    pod_affinity,
    pod_anti_affinity,
)
from .state import Objects

Rating = Callable[[Pod, Node, Objects, Collection[Node]], int]
"""What a node is worth to a pod in S, 0 to 100, if these nodes are at choice."""

Ratings = tuple[tuple[int, Rating], ...]
"""Weights and ratings."""


# Sums, as the page has them.


def PreferredNodeAffinity(p: Pod, n: Node) -> int:
    """Sum of the weights of the preferred node selector terms that match."""
    terms = node_affinity(p).preferred_during_scheduling_ignored_during_execution or ()
    return sum(term.weight for term in terms if TermMatches(term.preference, n))


def PreferredPodAffinity(p: Pod, n: Node, S: Objects) -> int:
    """Sum of the weights of the preferred terms between p and each pod in reach, both ways.

    Anti-affinity counts negative. A pod that requires to be near pods like p counts 1.
    """
    worth = 0
    for q in S.Pods:
        for owner, other in ((p, q), (q, p)):
            for weight, term in _preferred(owner):
                worth += weight * (About(term, owner, other) and InReach(term, q, n, S))
        for term in pod_affinity(q).required_during_scheduling_ignored_during_execution:
            worth += About(term, q, p) and InReach(term, q, n, S)
    return worth


def _preferred(p: Pod) -> list[tuple[int, PodAffinityTerm]]:
    near = pod_affinity(p).preferred_during_scheduling_ignored_during_execution
    far = pod_anti_affinity(p).preferred_during_scheduling_ignored_during_execution
    return [(term.weight, term.pod_affinity_term) for term in near] + [
        (-term.weight, term.pod_affinity_term) for term in far
    ]


def SoftTaints(p: Pod, n: Node) -> int:
    """The number of PreferNoSchedule taints that p does not tolerate."""
    return sum(
        taint.effect == "PreferNoSchedule" and not Tolerates(p, taint) for taint in n.spec.taints
    )


# The same from 0 to 100, so that they can be weighed against each other.


def NodeAffinityRating(p: Pod, n: Node, S: Objects, N: Collection[Node]) -> int:
    """In proportion to the best node."""
    return _share(PreferredNodeAffinity(p, n), [PreferredNodeAffinity(p, m) for m in N])


def TaintRating(p: Pod, n: Node, S: Objects, N: Collection[Node]) -> int:
    """In proportion to the worst node, reversed."""
    return 100 - _share(SoftTaints(p, n), [SoftTaints(p, m) for m in N])


def PodAffinityRating(p: Pod, n: Node, S: Objects, N: Collection[Node]) -> int:
    """The position between the worst and the best node."""
    worths = [PreferredPodAffinity(p, m, S) for m in N]
    least, most = min(worths), max(worths)
    if least == most:
        return 0
    # In floating point and in this order, as it is computed; exact fractions differ by one.
    return int(100 * ((PreferredPodAffinity(p, n, S) - least) / (most - least)))


def _share(worth: int, worths: Collection[int]) -> int:
    most = max(worths)
    return 100 * worth // most if most > 0 else 0


RATINGS: Ratings = ((3, TaintRating), (2, NodeAffinityRating), (2, PodAffinityRating))
"""With the weights of the default configuration."""


def Viability(p: Pod, n: Node, S: Objects, N: Collection[Node], ratings: Ratings = RATINGS) -> int:
    """Σ weight_i · Rating_i(p, n, S), compared within the nodes N."""
    return sum(weight * rating(p, n, S, N) for weight, rating in ratings)
