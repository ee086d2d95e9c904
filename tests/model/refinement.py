# ruff: noqa: N802, N803, N806 - the names are those of the formulas in docs/model.md
"""The finer relation that the real scheduler satisfies, and the check of a step against it.

It differs from the page's in four places: pods that were rejected step aside; nominations
are kept; preemption is judged with everybody in jeopardy gone; and of those pods, as many stay as
can, the most important ones first. docs/model.md says why, the tests show what follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from kubesched.api.core import Node, Pod

from .filters import (
    Filter_1,
    Filter_2,
    Filter_3,
    Filter_4,
    IsAvoided,
    NodeAffinityHolds,
    PodAffinityHolds,
    pod_affinity,
    pod_anti_affinity,
)
from .model import (
    Casualty,
    Clearance,
    Feasible,
    Front,
    Jeopardy,
    PreemptionEnabled,
    SchedulingEnabled,
    Step,
    Viable,
    start,
)
from .ratings import RATINGS, Ratings
from .state import Objects, On, Same, Unbound, Victims, key, priority

_FINISHED = ("Succeeded", "Failed")


def abstract(
    items: Iterable[object],
    assumed: Mapping[str, str] | None = None,
    leaving: Collection[str] = (),
) -> Objects:
    """Return the state of the model for the objects of a store.

    Args:
        items: The objects.
        assumed: Pod -> node: placed, but not yet bound in the store.
        leaving: Pods to be evicted: left out, though they are still stopping.
    """
    S = Objects.of(items)
    S = S - [p for p in S.Pods if p.status.phase in _FINISHED or key(p) in leaving]
    for k, name in (assumed or {}).items():
        S = S.bind(S.pods[k], S.nodes[name])
    return S


# Nominations.


def Nominated(p: Pod, n: Node, S: Objects) -> Victims:
    """{ q ∈ Unbound : q ≠ p ∧ q is nominated to n ∧ priority(q) ≥ priority(p) }."""
    return tuple(
        q
        for q in Unbound(S)
        if key(q) != key(p)
        and q.status.nominated_node_name == n.metadata.name
        and priority(q) >= priority(p)
    )


def Available(p: Pod, n: Node, S: Objects, began: Objects | None = None) -> bool:
    """Feasible(p, n, S), also with the pods that are nominated to n.

    Args:
        p: The pod.
        n: The node.
        S: The set, perhaps without some victims.
        began: The set before the victims left, if S is not that.
    """
    nominated = Nominated(p, n, S)
    S_with = S
    for q in nominated:
        S_with = S_with.bind(q if AffinityMatters(p, began or S) else _without_anti_affinity(q), n)
    return Feasible(p, n, S) and (not nominated or Feasible(p, n, S_with))


def AffinityMatters(p: Pod, S: Objects) -> bool:
    """Whether p has required (anti-)affinity to pods, or a pod of S avoids p.

    If not, the real scheduler does not ask about affinity any more in this cycle, and so does not
    notice that a pod that is nominated to the node would avoid p.
    """
    return (
        bool(pod_affinity(p).required_during_scheduling_ignored_during_execution)
        or bool(pod_anti_affinity(p).required_during_scheduling_ignored_during_execution)
        or any(IsAvoided(p, m, S) for m in S.Nodes)
    )


def _without_anti_affinity(q: Pod) -> Pod:
    if q.spec.affinity is None:
        return q
    affinity = replace(q.spec.affinity, pod_anti_affinity=None)
    return replace(q, spec=replace(q.spec, affinity=affinity))


def Chosen(p: Pod, S: Objects, ratings: Ratings = RATINGS) -> list[Node]:
    """The node that p is nominated to, if it is available; else the most viable ones."""
    own = S.nodes.get(p.status.nominated_node_name)
    if own is not None and Available(p, own, S):
        return [own]
    return Viable(p, S, Available, ratings)


# Victims.


def MayPreempt(p: Pod) -> bool:
    """Whether p's preemption policy allows it."""
    return p.spec.preemption_policy != "Never"


def Waits(p: Pod, S: Objects) -> bool:
    """Whether a victim still stops on the node that p is nominated to.

    A node that would not do even if it were empty is not waited for.
    """
    n = S.nodes.get(p.status.nominated_node_name)
    return (
        n is not None
        and any(_is_preempted(q) for q in Jeopardy(p, n, S))
        and not _is_hopeless(p, n, _with_nominated(p, n, S))
    )


def _is_hopeless(p: Pod, n: Node, S: Objects) -> bool:
    """Whether no eviction on n resolves the first filter that rejects p there."""
    if not (Filter_1(p, n, S) and Filter_3(p, n, S) and Filter_4(p, n, S)):
        return True
    if not NodeAffinityHolds(p, n) or not Filter_2(p, n, S - On(n, S)):
        return True
    return Filter_2(p, n, S) and not PodAffinityHolds(p, n, S)


def _with_nominated(p: Pod, n: Node, S: Objects) -> Objects:
    for q in Nominated(p, n, S):
        S = S.bind(q, n)
    return S


def _is_preempted(q: Pod) -> bool:
    return bool(q.metadata.deletion_timestamp) and any(
        condition.type == "DisruptionTarget" and condition.reason == "PreemptionByScheduler"
        for condition in q.status.conditions
    )


def ClearingEnabled(p: Pod, S: Objects) -> bool:
    """∃ n ∈ Nodes : some pod is in jeopardy ∧ Available(p, n, S without all of Jeopardy)."""
    return MayPreempt(p) and any(_clears(p, n, S) for n in S.Nodes)


def _clears(p: Pod, n: Node, S: Objects) -> bool:
    V = Jeopardy(p, n, S)
    return bool(V) and Available(p, n, S - V, S)


def Reprieved(p: Pod, n: Node, S: Objects) -> list[Victims]:
    """Victims on n: all in jeopardy leave, then return one by one while p still fits.

    The most important comes first: of the highest priority, then who started first. Where two are
    equal either may be first, so there can be several such sets; there is none if p does not fit
    with all of them gone.
    """
    J = Jeopardy(p, n, S)
    if not _clears(p, n, S):
        return []
    found: dict[frozenset[str], Victims] = {}
    # What has been decided: who is still away, and who of them may yet come back.
    open_: list[tuple[Victims, Victims]] = [(J, J)]
    seen: set[tuple[frozenset[str], frozenset[str]]] = set()
    while open_:
        away, undecided = open_.pop()
        if not undecided:
            found[_keys(away)] = away
            continue
        for q in MostImportant(undecided):
            without_q = _less(away, q)
            stays = Available(p, n, S - without_q, S)
            state = (without_q if stays else away, _less(undecided, q))
            names = (_keys(state[0]), _keys(state[1]))
            if names not in seen:
                seen.add(names)
                open_.append(state)
    return list(found.values())


def MostImportant(V: Victims) -> Victims:
    """Those in V that return before all others in V."""
    first = min((-priority(q), start(q)) for q in V)
    return tuple(q for q in V if (-priority(q), start(q)) == first)


def Candidates(p: Pod, S: Objects) -> list[Clearance]:
    """{ (n, V) : n ∈ Nodes ∧ V ∈ Reprieved(p, n, S) }."""
    return [(n, V) for n in S.Nodes for V in Reprieved(p, n, S)]


def LeastCandidates(p: Pod, S: Objects) -> list[Clearance]:
    """The candidates of least casualty; among equally important pods any order is allowed.

    A node stands for itself with any one of its sets, so a candidate is among the least if every
    other node has some set that is not less.
    """
    per_node = {n.metadata.name: [(n, V) for V in Reprieved(p, n, S)] for n in S.Nodes}
    return [
        (n, V)
        for name, here in per_node.items()
        for n, V in here
        if all(
            any(Casualty(V) <= Casualty(W) for _, W in there)
            for other_name, there in per_node.items()
            if there and other_name != name
        )
    ]


def _keys(V: Victims) -> frozenset[str]:
    return frozenset(key(q) for q in V)


def _less(V: Victims, gone: Pod) -> Victims:
    return tuple(q for q in V if key(q) != key(gone))


# The relation.


def Refused(p: Pod, S: Objects) -> bool:
    """Neither scheduling nor clearing is enabled for p, or a node is being cleared for it."""
    return not SchedulingEnabled(p, S, Available) and (Waits(p, S) or not ClearingEnabled(p, S))


def allows(
    before: Objects,
    after: Objects,
    *,
    tried: Pod | None = None,
    offered: Collection[Pod] | None = None,
    ratings: Ratings = RATINGS,
) -> Step | None:
    """Return the allowed step from one state to the other, None if there is none.

    Args:
        before: The state S.
        after: The state T.
        tried: The pod whose turn it was, if that is known. Without it a step in which nothing
            happens is always allowed; with it only if the pod is refused.
        offered: The pods whose turn it may be; all that are not bound, if not given. Whoever was
            rejected since something last changed is not offered.
        ratings: With which weights nodes are rated.
    """
    names = None if offered is None else {key(p) for p in offered}
    front = Front([p for p in Unbound(before) if names is None or key(p) in names])
    if tried is not None:
        front = [p for p in front if key(p) == key(tried)]
    if Same(before, after):
        return _unchanged(front, before, known=tried is not None)
    for p in front:
        step = _change_for(p, before, after, ratings)
        if step is not None:
            return step
    return None


def _unchanged(front: Collection[Pod], S: Objects, *, known: bool) -> Step | None:
    for p in front:
        if not SchedulingEnabled(p, S) and not PreemptionEnabled(p, S):
            return Step("Unchanged", key(p))
    if not known:
        return Step("Stutter")
    return next((Step("Stutter", key(p)) for p in front if Refused(p, S)), None)


def _change_for(p: Pod, S: Objects, T: Objects, ratings: Ratings) -> Step | None:
    # Either all pods are still there, or all the ones that are there are where they were.
    if S.pods.keys() == T.pods.keys():
        for n in Chosen(p, S, ratings):
            if Same(T, S.bind(p, n)):
                return Step.scheduling(p, n)
    elif MayPreempt(p) and not Waits(p, S) and not SchedulingEnabled(p, S, Available):
        for n, V in LeastCandidates(p, S):
            if Same(T, S - V):
                return Step.preemption(p, n, V)
    return None
