# ruff: noqa: N803, N806 - the names are those of the formulas in docs/model.md
"""Each decision of the real scheduler, in random small clusters, is a step of the model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from kubesched.api.core import Node, Pod
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.scheduler.trace import Trace

from .clusters import (
    crowded_states,
    make_cluster,
    sociable_states,
    states,
    states_with_nominations,
    weights,
)
from .filters import (
    Filter_1,
    Filter_2,
    Filter_3,
    Filter_4,
    IsAvoided,
    NodeAffinityHolds,
    PodAffinityHolds,
    PodAntiAffinityHolds,
    pod_affinity,
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

pytestmark = pytest.mark.slow


def pod_of(S: Objects) -> Pod:
    """Return the pod `p`, whatever its namespace."""
    return next(p for p in S.Pods if p.metadata.name == "p")


def decide(S: Objects, ratings: Ratings = RATINGS, trace: Trace | None = None) -> Decision:
    """Let the real scheduler decide on `p`."""
    cluster = make_cluster(S, ratings)
    return cluster.schedule_one(cluster.pending[pod_of(S).metadata.uid], trace)


def after(S: Objects, decision: Decision) -> Objects:
    """Return the state after the decision is carried out."""
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
        PodAffinityHolds(p, n, S) and not PodAntiAffinityHolds(p, n, S) and not IsAvoided(p, n, S)
    ),
}


@settings(max_examples=80)
@given(states())
def test_each_filter_plugin_is_a_filter_of_the_model(S: Objects) -> None:
    """Plugin by plugin and node by node, the answers are equal."""
    p, trace = pod_of(S), Trace(all_filters=True)
    decide(S, trace=trace)
    names = list(S.nodes)
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


@settings(max_examples=120)
@given(sociable_states() | states())
def test_totals_are_viability(S: Objects) -> None:
    """The real scheduler's total of a feasible node is its viability."""
    p, trace = pod_of(S), Trace()
    decide(S, RATINGS, trace)
    N = [n for n in S.Nodes if Feasible(p, n, S)]
    names = [[*S.nodes][row] for row in trace.feasible_rows]
    assert {n.metadata.name for n in N} == set(names)
    if trace.totals is not None:
        expected = [Viability(p, S.nodes[name], S, N) for name in names]
        assert expected == trace.totals.tolist()


# Decisions, without nominations: the formulas of the page.


@settings(max_examples=100)
@given(sociable_states() | states(), weights())
def test_placed_if_and_only_if_scheduling_is_enabled(S: Objects, ratings: Ratings) -> None:
    """The node is a most viable one."""
    p = pod_of(S)
    decision = decide(S, ratings)
    assert SchedulingEnabled(p, S) == isinstance(decision, Placed)
    if isinstance(decision, Placed):
        n = S.nodes[decision.node_name]
        assert Feasible(p, n, S)
        assert n in Viable(p, S, ratings=ratings)
        assert Scheduling(p, S, after(S, decision), ratings=ratings) == n
        expected = Step.scheduling(p, n)
        assert expected == allows(S, after(S, decision), tried=p, offered=[p], ratings=ratings)


@settings(max_examples=150)
@given(crowded_states() | states(plain=True) | states())
def test_preempts_if_and_only_if_clearing_is_enabled(S: Objects) -> None:
    """Then a rejected pod fits somewhere without all pods in jeopardy."""
    p = pod_of(S)
    decision = decide(S)
    if not isinstance(decision, Rejected):
        return
    assert ClearingEnabled(p, S) == bool(decision.nominated_node_name)
    if decision.nominated_node_name:
        assert PreemptionEnabled(p, S)
        _check_victims(p, S, decision)
    else:
        assert () == decision.victims
        assert Refused(p, S)
        assert allows(S, S, tried=p, offered=[p]) is not None


def _check_victims(p: Pod, S: Objects, decision: Rejected) -> None:
    """They are in jeopardy on one node, which is feasible without them, and each is needed."""
    T = after(S, decision)
    n = S.nodes[decision.nominated_node_name or ""]
    names = {victim.key for victim in decision.victims}
    V = tuple(q for q in Jeopardy(p, n, S) if key(q) in names)
    assert len(names) == len(V)
    assert Feasible(p, n, S - V)
    assert not any(Feasible(p, n, S - [q for q in V if q is not spared]) for spared in V)
    assert (n, V) in LeastCandidates(p, S)
    assert Step.preemption(p, n, V) == allows(S, T, tried=p, offered=[p])
    if not pod_affinity(p).required_during_scheduling_ignored_during_execution:
        # Of the page's least casualty, one thing holds: how important the worst loss is.
        least = min(Casualty(W) for _, W in Clearances(p, S))
        assert least[0] == Casualty(V)[0]
        assert (least == Casualty(V)) == (Preemption(p, S, T) is not None)


# Decisions, with nominations.


@settings(max_examples=150)
@given(states_with_nominations(), weights())
def test_decisions_with_nominated_pods_are_steps_of_the_finer_relation(
    S: Objects, ratings: Ratings
) -> None:
    """Other pending pods are nominated."""
    p = pod_of(S)
    decision = decide(S, ratings)
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
