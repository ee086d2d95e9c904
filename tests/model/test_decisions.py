# ruff: noqa: N802, N803, N806 - the names are those of the formulas in docs/model.md
"""Each decision of the real scheduler, on a random small cluster, is a step the model allows."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings

from kubesched.api.core import Node, Pod
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import Cluster

from .clusters import make_cluster, states, weights
from .filters import (
    Filter_1,
    Filter_2,
    Filter_3,
    Filter_4,
    IsAvoided,
    NodeAffinityHolds,
    PodAffinityHolds,
    PodAntiAffinityHolds,
)
from .model import (
    Casualty,
    Clearances,
    Feasible,
    Jeopardy,
    Preemption,
    PreemptionEnabled,
    Scheduling,
    SchedulingEnabled,
    Step,
    Viability,
    Viable,
)
from .ratings import RATINGS, Ratings
from .refinement import (
    Available,
    Candidates,
    Chosen,
    ClearingEnabled,
    LeastCandidates,
    Refused,
    allows,
)
from .state import Objects, key


def pod_of(S: Objects) -> Pod:
    """Return the pod `p`, whatever its namespace."""
    return next(p for p in S.Pods if p.metadata.name == "p")


def decide(
    S: Objects, ratings: Ratings = RATINGS, trace: Trace | None = None
) -> tuple[Cluster, Decision]:
    """Ask the real scheduler about `p`."""
    cluster = make_cluster(S, ratings)
    info = cluster.pending[pod_of(S).metadata.uid]
    return cluster, cluster.schedule_one(info, trace)


def after(S: Objects, decision: Decision) -> Objects:
    """Return the state once the decision is carried out."""
    if isinstance(decision, Placed):
        return S.bind(S.pods[decision.pod.key], S.nodes[decision.node_name])
    if isinstance(decision, Rejected):
        return S - [victim.pod for victim in decision.victims]
    return S


# What the plugins say.

PLUGINS: dict[str, Callable[[Pod, Node, Objects], bool]] = {
    "NodeUnschedulable": Filter_1,
    "NodeResourcesFit": Filter_2,
    "NodeAffinity": lambda p, n, S: Filter_3(p, n, S) and NodeAffinityHolds(p, n),
    "TaintToleration": Filter_4,
    "InterPodAffinity": lambda p, n, S: (
        PodAffinityHolds(p, n, S)
        and not PodAntiAffinityHolds(p, n, S)
        and not IsAvoided(p, n, S)
    ),
}


@settings(max_examples=60)
@given(states())
def test_each_filter_plugin_is_a_filter_of_the_model(S: Objects) -> None:
    """Plugin by plugin and node by node, the answers are those of the model's predicates."""
    p, trace = pod_of(S), Trace(all_filters=True)
    cluster, _ = decide(S, trace=trace)
    names = cluster.cache.nodes.names
    asked = {found.plugin: found for found in trace.filters}
    for plugin, predicate in PLUGINS.items():
        expected = {name for name, n in S.nodes.items() if predicate(p, n, S)}
        found = asked.get(plugin)
        if found is None:
            passed = set(names)  # The plugin has nothing to say about this pod.
        else:
            passed = {
                names[row] for row, ok in zip(found.rows, found.answers.passed, strict=True) if ok
            }
        assert (plugin, expected) == (plugin, passed)


@settings(max_examples=60)
@given(states(), weights())
def test_totals_are_viability(S: Objects, ratings: Ratings) -> None:
    """What the real scheduler adds up for a feasible node is the node's viability."""
    p, trace = pod_of(S), Trace()
    cluster, _ = decide(S, ratings, trace)
    N = [n for n in S.Nodes if Feasible(p, n, S)]
    names = [cluster.cache.nodes.names[row] for row in trace.feasible_rows]
    assert {n.metadata.name for n in N} == set(names)
    if trace.totals is not None and ratings:
        expected = [Viability(p, S.nodes[name], S, N, ratings) for name in names]
        assert expected == trace.totals.tolist()


# Decisions, without promises: the formulas of the page.


@settings(max_examples=120)
@given(states(), weights())
def test_placed_if_and_only_if_scheduling_is_enabled(S: Objects, ratings: Ratings) -> None:
    """A pod is placed on a most viable node if some node is feasible, else it is not placed."""
    p = pod_of(S)
    _, decision = decide(S, ratings)
    assert SchedulingEnabled(p, S) == isinstance(decision, Placed)
    if isinstance(decision, Placed):
        n = S.nodes[decision.node_name]
        assert Feasible(p, n, S)
        assert n in Viable(p, S, ratings=ratings)
        assert Scheduling(p, S, after(S, decision), ratings=ratings) == n
        expected = Step.scheduling(p, n)
        assert expected == allows(S, after(S, decision), tried=p, offered=[p], ratings=ratings)


@settings(max_examples=200)
@given(states())
def test_preempts_if_and_only_if_clearing_is_enabled(S: Objects) -> None:
    """A pod that fits nowhere preempts others exactly if it fits somewhere with them all gone."""
    p = pod_of(S)
    _, decision = decide(S)
    if not isinstance(decision, Rejected):
        return
    assert bool(decision.victims) == bool(decision.nominated_node_name)
    assert ClearingEnabled(p, S) == bool(decision.victims)
    if decision.victims:
        assert PreemptionEnabled(p, S)
    else:
        assert Refused(p, S)
        assert allows(S, S, tried=p, offered=[p]) is not None


@settings(max_examples=200)
@given(states())
def test_victims(S: Objects) -> None:
    """Victims are in jeopardy; without them the node is feasible; none of them can be spared."""
    p = pod_of(S)
    _, decision = decide(S)
    if not isinstance(decision, Rejected) or not decision.nominated_node_name:
        return
    n = S.nodes[decision.nominated_node_name]
    names = {victim.key for victim in decision.victims}
    V = tuple(q for q in Jeopardy(p, n, S) if key(q) in names)
    assert len(names) == len(V)
    assert Feasible(p, n, S - V)
    for q in V:
        assert not Feasible(p, n, S - [other for other in V if other is not q])
    assert (n, V) in LeastCandidates(p, S)
    expected = Step.preemption(p, n, V)
    assert expected == allows(S, after(S, decision), tried=p, offered=[p])
    _compare_with_all_subsets(p, S, n, V, after(S, decision))


def _compare_with_all_subsets(
    p: Pod, S: Objects, n: Node, V: tuple[Pod, ...], T: Objects
) -> None:
    """Of the page's least casualty, one thing holds: how important the worst loss is."""
    if p.spec.affinity is not None and p.spec.affinity.pod_affinity is not None:
        return  # The pod may need one in jeopardy, which only the page notices.
    least = min(Casualty(W) for _, W in Clearances(p, S))
    assert least <= Casualty(V)
    assert least[0] == Casualty(V)[0]
    assert (least == Casualty(V)) == (Preemption(p, S, T) is not None)


# Decisions, with promises.


@settings(max_examples=150)
@given(states(with_promises=True), weights())
def test_decisions_keep_promises(S: Objects, ratings: Ratings) -> None:
    """With nodes promised to pods that wait, a decision is a step of the finer relation."""
    p = pod_of(S)
    _, decision = decide(S, ratings)
    T = after(S, decision)
    step = allows(S, T, tried=p, offered=[p], ratings=ratings)
    assert step is not None
    if isinstance(decision, Placed):
        n = S.nodes[decision.node_name]
        assert n in Chosen(p, S, ratings)
        assert Available(p, n, S)
        assert Step.scheduling(p, n) == step
    elif isinstance(decision, Rejected) and decision.victims:
        assert "Preemption" == step.action
        assert decision.nominated_node_name == step.node
        assert {victim.key for victim in decision.victims} == set(step.victims)
    else:
        assert not Candidates(p, S)
