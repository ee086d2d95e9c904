# ruff: noqa: N803, N806 - the names are those of the formulas in docs/model.md
"""Where the real scheduler is finer than the page, and what follows from that."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings

from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject
from kubesched.api.policy import PodDisruptionBudget
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.testing.builders import make_node, make_pod

from .clusters import HOST, label, make_cluster, near, prefer_nodes, required, states
from .filters import Selects, pod_affinity
from .model import (
    Casualty,
    Clearances,
    Feasible,
    Jeopardy,
    LeastCasualty,
    Preemption,
    PreemptionEnabled,
    Scheduler,
    SchedulingEnabled,
    Step,
    Viable,
)
from .ratings import RATINGS
from .refinement import (
    AffinityMatters,
    Available,
    Candidates,
    Chosen,
    ClearingEnabled,
    LeastCandidates,
    Nominated,
    Refused,
    Reprieved,
    Waits,
    abstract,
    allows,
)
from .state import Objects, Same, Unbound, key


def _real(items: Objects | list[KubeObject], name: str = "p", percentage: int = 100) -> Decision:
    cluster = make_cluster(items, RATINGS, percentage=percentage)
    return cluster.schedule_one(cluster.pending[f"default/{name}"])


def _victims(decision: Decision) -> list[str]:
    assert isinstance(decision, Rejected)
    return sorted(victim.name for victim in decision.victims)


def _names(V: tuple[Pod, ...]) -> list[str]:
    return sorted(q.metadata.name for q in V)


def _on(node: str, name: str, cpu: int, day: int, priority: int = 0) -> Pod:
    return make_pod(
        name,
        requests={"cpu": cpu},
        priority=priority,
        node_name=node,
        start_time=f"2026-01-{day:02}T00:00:00Z",
    )


# Laws of the finer model.


@pytest.mark.slow
@settings(max_examples=50)
@given(states(plain=True) | states())
def test_reprieved_sets(S: Objects) -> None:
    """The node is feasible without them, and not with any of them; the worst loss is least.

    So no pod is evicted without need, and none that is more important than necessary.
    """
    p = S.pods[next(k for k in S.pods if k.endswith("/p"))]
    if SchedulingEnabled(p, S):
        return
    for n in S.Nodes:
        here = [V for m, V in Clearances(p, S) if m is n]
        for V in Reprieved(p, n, S):
            assert Feasible(p, n, S - V)
            assert not any(Feasible(p, n, S - [q for q in V if q is not spared]) for spared in V)
            assert V in here
            assert Casualty(V)[0] == min(Casualty(W)[0] for W in here)


@pytest.mark.slow
@settings(max_examples=50)
@given(states(plain=True) | states())
def test_clearing_is_preemption(S: Objects) -> None:
    """If clearing is enabled, so is preemption; the reverse holds unless p has pod affinity."""
    for p in Unbound(S):
        assert not ClearingEnabled(p, S) or PreemptionEnabled(p, S)
        if not SchedulingEnabled(p, S):
            assert ClearingEnabled(p, S) == bool(Candidates(p, S))
            if not pod_affinity(p).required_during_scheduling_ignored_during_execution:
                assert ClearingEnabled(p, S) == PreemptionEnabled(p, S)


@pytest.mark.slow
@settings(max_examples=50)
@given(states(plain=True) | states())
def test_without_nominations_the_finer_model_equals_the_page(S: Objects) -> None:
    """Feasible is available, viable is chosen, and allowed placements are allowed."""
    for p in Unbound(S):
        assert [Feasible(p, n, S) for n in S.Nodes] == [Available(p, n, S) for n in S.Nodes]
        assert Viable(p, S) == Chosen(p, S)
        for n in S.Nodes:
            T = S.bind(p, n)
            assert Scheduler(S, T) == allows(S, T)


# Victims: where all subsets are better than a walk by importance.

# p needs two cores of four. Whoever is kept first fills the node.
LARGE_OLD = _on("n", "large-old", 2, 1)
SMALL_NEW = (_on("n", "small-1", 1, 2), _on("n", "small-2", 1, 3))
N = make_node("n", allocatable={"cpu": 4})
PREEMPTOR = make_pod("p", requests={"cpu": 2}, priority=5)
LUMPS = Objects.of([N, LARGE_OLD, *SMALL_NEW, PREEMPTOR])


def test_victims_are_not_the_least_of_all_subsets() -> None:
    """One victim would be enough, but it is the oldest and stays: two younger ones are evicted.

    The two cannot be spared, and are least among the sets that the walk by importance ends in.
    """
    S = LUMPS
    assert [(N, (LARGE_OLD,))] == LeastCasualty([*Clearances(PREEMPTOR, S)])
    assert [SMALL_NEW] == Reprieved(PREEMPTOR, N, S)
    assert ["small-1", "small-2"] == _victims(_real(S))
    assert Preemption(PREEMPTOR, S, S - SMALL_NEW) is None
    assert Step.preemption(PREEMPTOR, N, SMALL_NEW) == allows(S, S - SMALL_NEW)
    assert allows(S, S - [LARGE_OLD]) is None


def test_the_node_is_not_the_one_of_the_least_subset() -> None:
    """One node seems to need two victims, so one with a single, costlier victim is chosen."""
    m = make_node("m", allocatable={"cpu": 2})
    older = _on("m", "older", 2, 1)
    younger = _on("n", "younger", 2, 2)
    smaller = (_on("n", "small-1", 1, 3), _on("n", "small-2", 1, 4))
    S = Objects.of([N, m, older, younger, *smaller, PREEMPTOR])
    assert [(N, (younger,))] == LeastCasualty([*Clearances(PREEMPTOR, S)])
    assert [(m, (older,))] == LeastCandidates(PREEMPTOR, S)
    decision = _real(S)
    assert ["older"] == _victims(decision)
    assert isinstance(decision, Rejected)
    assert "m" == decision.nominated_node_name
    assert Step.preemption(PREEMPTOR, m, (older,)) == allows(S, S - [older])
    assert allows(S, S - smaller) is None
    assert allows(S, S - [younger]) is None


def test_a_pod_in_jeopardy_may_be_needed_for_affinity() -> None:
    """A pod with affinity to a lesser one does not preempt on its node, not even another pod.

    Without the pods in jeopardy, the needed one is missing too, and the node is not a candidate.
    """
    n = make_node("n", labels={HOST: "n"}, allocatable={"pods": 2})
    web = make_pod("web", labels={"app": "web"}, node_name="n")
    p = make_pod("p", priority=5, pod_affinity=required(near("web", HOST)))
    S = Objects.of([n, web, make_pod("other", node_name="n"), p])
    assert [["other"]] == [_names(V) for _, V in Clearances(p, S)]
    assert not ClearingEnabled(p, S)
    assert [] == _victims(_real(S))
    assert Step("Stutter", "default/p") == allows(S, S, tried=p)
    assert Refused(p, S)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_equally_important_victims_return_in_any_order(first: int) -> None:
    """The order of arrival on the node is not part of the state."""
    n = make_node("n", allocatable={"cpu": 3})
    equals = [make_pod(f"q{k}", requests={"cpu": 1}, node_name="n") for k in range(3)]
    p = make_pod("p", requests={"cpu": 2}, priority=1)
    S = Objects.of([n, *equals, p])
    assert [["q0", "q1"], ["q0", "q2"], ["q1", "q2"]] == sorted(map(_names, Reprieved(p, n, S)))
    arrived = [*equals[first:], *equals[:first]]
    decision = _real([n, *arrived, p])
    assert _names(tuple(arrived[:-1])) == _victims(decision)
    assert "Preemption" == _action(allows(S, S - arrived[:-1]))
    assert allows(S, S - equals) is None


def _action(step: Step | None) -> str:
    return "" if step is None else step.action


# What only the real scheduler knows.


def test_budgets_come_first() -> None:
    """A protected pod is kept, though it is the least casualty."""
    n, m = (make_node(name, allocatable={"pods": 1}) for name in "nm")
    guarded = make_pod("guarded", labels={"app": "web"}, node_name="n")
    other = make_pod("other", priority=3, node_name="m")
    p = make_pod("p", priority=5)
    S = Objects.of([n, m, guarded, other, p])
    assert ["guarded"] == _victims(_real(S))
    selector = near("web")["labelSelector"]
    budget = _budget(selector)
    assert Selects(budget.spec.selector, guarded)
    assert ["other"] == _victims(_real([*S, budget]))


def test_a_pod_that_waits_for_victims_does_not_preempt_again() -> None:
    """While a victim stops on its nominated node, no other node is cleared."""
    n, m = (make_node(name, allocatable={"pods": 1}) for name in "nm")
    stops: dict[str, dict[str, object]] = {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {
            "conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            ]
        },
    }
    leaving = _merged(make_pod("leaving", node_name="n"), stops)
    other = make_pod("other", priority=3, node_name="m")
    p = make_pod("p", priority=5, nominated_node_name="n")
    S = Objects.of([n, m, leaving, other, p])
    assert Waits(p, S)
    assert Refused(p, S)
    assert [] == _victims(_real(S))
    assert Step("Stutter", "default/p") == allows(S, S, tried=p)
    assert allows(S, S - [leaving]) is None
    cordoned = make_node("n", allocatable={"pods": 1}, unschedulable=True)
    S = S.put(cordoned)
    assert not Waits(p, S)
    assert ["other"] == _victims(_real(S))


def _merged(pod: Pod, more: dict[str, dict[str, object]]) -> Pod:
    fields = msgspec.to_builtins(pod)
    for part, values in more.items():
        fields[part] = {**fields[part], **values}
    return msgspec.convert(fields, Pod)


def _budget(selector: object) -> PodDisruptionBudget:
    metadata = {"name": "b", "namespace": "default"}
    return msgspec.convert(
        {"metadata": metadata, "spec": {"selector": selector}}, PodDisruptionBudget
    )


def test_preemption_policy_never() -> None:
    """The pod waits."""
    p = make_pod("p", requests={"cpu": 2}, priority=5, spec={"preemptionPolicy": "Never"})
    S = LUMPS.put(p)
    assert PreemptionEnabled(p, S)
    assert not ClearingEnabled(p, S)
    assert [] == _victims(_real(S))
    assert Step("Stutter", "default/p") == allows(S, S, tried=p)
    assert allows(S, S - SMALL_NEW) is None


def test_a_sample_misses_the_best_node() -> None:
    """With a percentage of the nodes, the best of the first hundred is not the best of all."""
    names = [f"n{k:03}" for k in range(105)]
    nodes = [make_node(name, labels={"best": "yes"} if name == "n104" else {}) for name in names]
    p = make_pod("p", node_affinity=prefer_nodes((1, label("best", "Exists"))))
    S = Objects.of([*nodes, p])
    assert [S.nodes["n104"]] == Viable(p, S)
    whole, sample = _real(S), _real(S, percentage=1)
    assert isinstance(whole, Placed)
    assert isinstance(sample, Placed)
    assert "n104" == whole.node_name != sample.node_name
    assert Feasible(p, S.nodes[sample.node_name], S)


# Nominations.

ONE = make_node("one", allocatable={"pods": 1})
TWO = make_node("two", labels={"best": "yes"}, allocatable={"pods": 1})
HEIR = make_pod("heir", priority=5, nominated_node_name="one")


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(4, False, id="lower"),
        pytest.param(5, False, id="equal"),
        pytest.param(6, True, id="higher"),
    ],
)
def test_nominations_count_unless_the_priority_is_higher(priority: int, expected: bool) -> None:
    """The node is feasible but not available."""
    p = make_pod("p", priority=priority)
    S = Objects.of([ONE, HEIR, p])
    assert (() if expected else (HEIR,)) == Nominated(p, ONE, S)
    assert Feasible(p, ONE, S)
    assert expected == Available(p, ONE, S)
    assert expected == isinstance(_real(S), Placed)
    if not expected:
        # To the page this is a step in which nothing happens though something might.
        assert Step("Stutter", "default/p") == allows(S, S, tried=p, offered=[p])
        assert allows(S, S.bind(p, ONE), offered=[p]) is None


def test_a_nominated_node_is_taken_if_available() -> None:
    """Though another one has a higher rating."""
    likes = prefer_nodes((1, label("best", "Exists")))
    heir = make_pod("heir", priority=5, nominated_node_name="one", node_affinity=likes)
    S = Objects.of([ONE, TWO, heir])
    assert [TWO] == Viable(heir, S)
    assert [ONE] == Chosen(heir, S)
    decision = _real(S, "heir")
    assert isinstance(decision, Placed)
    assert "one" == decision.node_name
    taken = S.put(make_pod("q", node_name="one", priority=9))
    assert [TWO] == Chosen(heir, taken)


def test_nominated_pods_do_not_satisfy_affinity() -> None:
    """The node must be feasible without them, too."""
    n = make_node("n", labels={HOST: "n"})
    web = make_pod("web", labels={"app": "web"}, priority=5, nominated_node_name="n")
    p = make_pod("p", pod_affinity=required(near("web", HOST)))
    S = Objects.of([n, web, p])
    assert Feasible(p, n, S.bind(web, n))
    assert not Available(p, n, S)
    assert isinstance(_real(S), Rejected)


def test_anti_affinity_of_nominated_pods_may_be_skipped() -> None:
    """It counts only if InterPodAffinity runs at all in the cycle.

    It is, once p requires something of the kind, or somebody bound avoids p, wherever that is.
    """
    n, m = (make_node(name, labels={HOST: name}) for name in "nm")
    shy = {"priority": 5, "pod_anti_affinity": required(near("web", HOST))}
    heir = make_pod("heir", nominated_node_name="n", **shy)  # type: ignore[arg-type]  # the keywords are TypedDict's
    p = make_pod("p", labels={"app": "web"})
    S = Objects.of([n, heir, p])
    assert not AffinityMatters(p, S)
    assert Available(p, n, S)
    assert isinstance(_real(S), Placed)
    S = S.put(m).put(make_pod("q", node_name="m", **shy))  # type: ignore[arg-type]  # the same
    assert AffinityMatters(p, S)
    assert Feasible(p, n, S)
    assert not Available(p, n, S)
    assert isinstance(_real(S), Rejected)


# The check of a step.

LOW, HIGH = make_pod("low"), make_pod("high", priority=5, requests={"cpu": 99})
QUEUE = Objects.of([TWO, LOW, HIGH])


def test_rejected_pods_do_not_block_others() -> None:
    """By the page's formulas they would block them for ever."""
    T = QUEUE.bind(LOW, TWO)
    assert Step("Unchanged", "default/high") == Scheduler(QUEUE, QUEUE)
    assert Scheduler(QUEUE, T) is None
    assert allows(QUEUE, T) is None
    assert Step.scheduling(LOW, TWO) == allows(QUEUE, T, offered=[LOW])


def test_no_change_is_always_allowed() -> None:
    """If a pod was tried, only if it is rejected."""
    assert Step("Unchanged", "default/high") == allows(QUEUE, QUEUE)
    assert Step("Unchanged", "default/high") == allows(QUEUE, QUEUE, tried=HIGH)
    assert Step("Stutter") == allows(QUEUE, QUEUE, offered=[LOW])
    assert allows(QUEUE, QUEUE, tried=LOW, offered=[LOW]) is None
    assert allows(QUEUE, QUEUE, tried=LOW) is None
    nobody = Objects.of([TWO])
    assert Step("Stutter") == allows(nobody, nobody)


@pytest.mark.parametrize(
    "T",
    [
        pytest.param(QUEUE.put(make_pod("new")), id="a pod came"),
        pytest.param(QUEUE - [LOW], id="a pod went"),
        pytest.param(QUEUE.put(make_node("new")), id="a node came"),
        pytest.param(QUEUE.bind(LOW, TWO) - [HIGH], id="one bound, one gone"),
        pytest.param(QUEUE.put(make_pod("low", labels={"a": "b"})), id="labels changed"),
    ],
)
def test_steps_of_others_are_not_allowed(T: Objects) -> None:
    """The scheduler does not make them."""
    assert allows(QUEUE, T, offered=[LOW]) is None


def test_abstract_state_of_a_store() -> None:
    """Finished and leaving pods and other objects are left out; assumed pods are bound."""
    done = make_pod("done", node_name="two", status={"phase": "Succeeded"})
    going = make_pod("going", node_name="two")
    store: list[object] = [TWO, LOW, HIGH, done, going, _budget({})]
    seen = abstract(store, {"default/low": "two"}, ["default/going"])
    assert Same(QUEUE.bind(LOW, TWO), seen)
    assert [key(HIGH)] == [key(p) for p in Unbound(seen)]


def test_pods_of_deleted_nodes_do_not_matter() -> None:
    """They are not in jeopardy."""
    S = Objects.of([TWO, make_pod("q", node_name="gone"), HIGH])
    assert () == Jeopardy(HIGH, TWO, S)
    assert not ClearingEnabled(HIGH, S)
