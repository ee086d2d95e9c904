# ruff: noqa: N802, N803, N806 - the names are those of the formulas in docs/model.md
"""The scheduler as a relation between two states: the formulas of docs/model.md, executable.

S is the state before a step, T the state after it (`Objects` and `Objects'`). Where a formula says
"there is", the function returns what there is, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Literal, TypeAlias, TypeVar

from kubesched.api.core import Node, Pod
from kubesched.api.times import parse_time

from .filters import Filter_1, Filter_2, Filter_3, Filter_4, Filter_5
from .ratings import RATINGS, Ratings, Viability
from .state import Bound, BoundTo, Objects, On, Same, Unbound, Victims, key, priority

__all__ = [
    "Bound",
    "BoundTo",
    "Casualty",
    "Clearances",
    "Feasible",
    "Front",
    "Jeopardy",
    "LeastCasualty",
    "Objects",
    "Preemption",
    "PreemptionEnabled",
    "Scheduler",
    "Scheduling",
    "SchedulingEnabled",
    "Step",
    "Unbound",
    "Viability",
    "Viable",
    "key",
    "priority",
]

X = TypeVar("X")

FILTERS = (Filter_1, Filter_2, Filter_3, Filter_4, Filter_5)


def Feasible(p: Pod, n: Node, S: Objects) -> bool:
    """Filter_1(p, n, S) ∧ Filter_2(p, n, S) ∧ …: every filter holds."""
    return all(Filter(p, n, S) for Filter in FILTERS)


Feasibility: TypeAlias = Callable[[Pod, Node, Objects], bool]
"""`Feasible`, or what a finer model puts in its place."""


# Scheduling.


def SchedulingEnabled(p: Pod, S: Objects, feasible: Feasibility = Feasible) -> bool:
    """∃ n ∈ Nodes : Feasible(p, n, S)."""
    return any(feasible(p, n, S) for n in S.Nodes)


def Viable(
    p: Pod, S: Objects, feasible: Feasibility = Feasible, ratings: Ratings = RATINGS
) -> list[Node]:
    """The feasible nodes than which no feasible node has a higher viability."""
    N = [m for m in S.Nodes if feasible(p, m, S)]
    viability = {m.metadata.name: Viability(p, m, S, N, ratings) for m in N}
    best = max(viability.values(), default=0)
    return [n for n in N if viability[n.metadata.name] == best]


def Scheduling(
    p: Pod, S: Objects, T: Objects, feasible: Feasibility = Feasible, ratings: Ratings = RATINGS
) -> Node | None:
    """∃ n ∈ Viable(p, S) : T = S with p.spec.nodeName = n.metadata.name."""
    return _first(n for n in Viable(p, S, feasible, ratings) if Same(T, S.bind(p, n)))


# Preemption.


def Jeopardy(p: Pod, n: Node, S: Objects) -> Victims:
    """{ q ∈ S : BoundTo(q, n, S) ∧ priority(q) < priority(p) }."""
    return tuple(q for q in On(n, S) if priority(q) < priority(p))


def SUBSET(V: Victims) -> Iterator[Victims]:
    """All subsets of V, the smaller ones first."""
    return chain.from_iterable(combinations(V, size) for size in range(len(V) + 1))


Clearance: TypeAlias = tuple[Node, Victims]
"""A node, and pods on it without which it is feasible."""


def Clearances(p: Pod, S: Objects, feasible: Feasibility = Feasible) -> Iterator[Clearance]:
    """{ (n, V) : n ∈ Nodes ∧ V ∈ SUBSET Jeopardy(p, n, S) ∧ Feasible(p, n, S without V) }."""
    for n in S.Nodes:
        for V in SUBSET(Jeopardy(p, n, S)):
            if feasible(p, n, S - V):
                yield n, V


def PreemptionEnabled(p: Pod, S: Objects, feasible: Feasibility = Feasible) -> bool:
    """∃ n ∈ Nodes : ∃ V ∈ SUBSET Jeopardy(p, n, S) : Feasible(p, n, S without V)."""
    return any(True for _ in Clearances(p, S, feasible))


def Casualty(V: Victims) -> tuple[float, int, int, float]:
    """The loss of V; compared from left to right.

    The highest priority in V; the sum of the priorities, each made positive; the number of pods;
    and, negative, when the first of those with the highest priority started.
    """
    highest = max((priority(q) for q in V), default=float("-inf"))
    started = min((start(q) for q in V if priority(q) == highest), default=float("inf"))
    return highest, sum(priority(q) + 2**31 for q in V), len(V), -started


def start(q: Pod) -> float:
    """The start of q; one that has not started counts as later than any other."""
    return parse_time(q.status.start_time) if q.status.start_time else float("inf")


def LeastCasualty(clearances: Collection[Clearance]) -> list[Clearance]:
    """Those with the least casualty."""
    least = min((Casualty(V) for _, V in clearances), default=None)
    return [(n, V) for n, V in clearances if Casualty(V) == least]


def Preemption(
    p: Pod, S: Objects, T: Objects, feasible: Feasibility = Feasible
) -> Clearance | None:
    """∃ (n, V) of least casualty among all Clearances(p, S) : T = S without V."""
    return _first((n, V) for n, V in LeastCasualty([*Clearances(p, S, feasible)]) if Same(T, S - V))


# The scheduler.


@dataclass(frozen=True)
class Step:
    """An allowed step and the action that it is an instance of.

    Attributes:
        action: Scheduling or Preemption; Unchanged, when neither is enabled for the pod; or
            Stutter, when nothing happens though something might.
        pod: The pod that was scheduled or that preempted others.
        node: Where.
        victims: The evicted pods.
    """

    action: Literal["Scheduling", "Preemption", "Unchanged", "Stutter"]
    pod: str = ""
    node: str = ""
    victims: tuple[str, ...] = ()

    @classmethod
    def scheduling(cls, p: Pod, n: Node) -> Step:
        """Bind p to n."""
        return cls("Scheduling", key(p), n.metadata.name)

    @classmethod
    def preemption(cls, p: Pod, n: Node, V: Victims) -> Step:
        """Evict V from n, so that p would fit there."""
        return cls("Preemption", key(p), n.metadata.name, tuple(key(q) for q in V))


def Front(offered: Collection[Pod]) -> list[Pod]:
    """{ q ∈ offered : ∀ o ∈ offered : priority(o) ≤ priority(q) }."""
    return [q for q in offered if all(priority(o) <= priority(q) for o in offered)]


def Scheduler(S: Objects, T: Objects, ratings: Ratings = RATINGS) -> Step | None:
    """∃ p ∈ Front(Unbound) : schedule it, or else preempt for it, or else change nothing."""
    return _first(
        step for p in Front(Unbound(S)) if (step := _scheduler_of(p, S, T, ratings)) is not None
    )


def _scheduler_of(p: Pod, S: Objects, T: Objects, ratings: Ratings) -> Step | None:
    # The cases exclude each other: a later one applies only if no earlier one is enabled.
    if SchedulingEnabled(p, S):
        n = Scheduling(p, S, T, ratings=ratings)
        return None if n is None else Step.scheduling(p, n)
    if PreemptionEnabled(p, S):
        found = Preemption(p, S, T)
        return None if found is None else Step.preemption(p, *found)
    return Step("Unchanged", key(p)) if Same(S, T) else None


def _first(found: Iterator[X]) -> X | None:
    return next(found, None)
