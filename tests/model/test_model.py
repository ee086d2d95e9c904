# ruff: noqa: N803, N806 - the names are those of the formulas in docs/model.md
"""The formulas of the page, with a table each, and their relation."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from kubesched.api.core import Pod
from kubesched.testing.builders import make_node, make_pod

from .clusters import ZONE, label, prefer_nodes
from .model import (
    SUBSET,
    Casualty,
    Clearances,
    Feasible,
    Front,
    Jeopardy,
    LeastCasualty,
    Preemption,
    PreemptionEnabled,
    Scheduler,
    Scheduling,
    SchedulingEnabled,
    Step,
    Viable,
)
from .ratings import NodeAffinityRating
from .state import Objects, key

SMALL, LARGE, NONE = (
    make_node("small", labels={ZONE: "a"}, allocatable={"cpu": 1}),
    make_node("large", labels={ZONE: "b"}, allocatable={"cpu": 4}),
    make_node("none", allocatable={"cpu": 0}),
)
NODES = Objects.of([SMALL, LARGE, NONE])
LIKES_A = prefer_nodes((1, label(ZONE, "In", "a")))


def _pod(name: str, cpu: int = 1, priority: int = 0, node: str = "", day: int = 1) -> Pod:
    return make_pod(
        name,
        requests={"cpu": cpu},
        priority=priority,
        node_name=node,
        start_time=f"2026-01-{day:02}T00:00:00Z" if node else None,
    )


def _names(V: tuple[Pod, ...]) -> str:
    return " ".join(q.metadata.name for q in V)


# Scheduling.


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        pytest.param(0, ["small", "large", "none"], id="everywhere"),
        pytest.param(1, ["small", "large"], id="some"),
        pytest.param(2, ["large"], id="one"),
        pytest.param(5, [], id="nowhere"),
    ],
)
def test_feasible(cpu: int, expected: list[str]) -> None:
    """Scheduling is enabled if some node is feasible."""
    p = _pod("p", cpu)
    assert expected == [name for name, n in NODES.nodes.items() if Feasible(p, n, NODES)]
    assert bool(expected) == SchedulingEnabled(p, NODES)


def test_viable() -> None:
    """The feasible nodes with the best rating; without ratings all of them."""
    p = make_pod(requests={"cpu": 1}, node_affinity=LIKES_A)
    assert [SMALL] == Viable(p, NODES)
    assert [SMALL, LARGE] == Viable(p, NODES, ratings=())
    large = make_pod(requests={"cpu": 2}, node_affinity=LIKES_A)
    assert [LARGE] == Viable(large, NODES)
    assert [] == Viable(_pod("p", 5), NODES)


def test_scheduling() -> None:
    """A step binds the pod to a viable node and changes nothing else."""
    p = make_pod("p", requests={"cpu": 1}, node_affinity=LIKES_A)
    S = NODES.put(p).put(_pod("q"))
    assert SMALL == Scheduling(p, S, S.bind(p, SMALL))
    assert Scheduling(p, S, S.bind(p, LARGE)) is None
    assert LARGE == Scheduling(p, S, S.bind(p, LARGE), ratings=())
    assert Scheduling(p, S, S) is None
    assert Scheduling(p, S, S.bind(p, SMALL) - [_pod("q")]) is None
    assert Scheduling(p, S, S.bind(p, SMALL).bind(_pod("q"), LARGE)) is None


# Preemption.

CROWD = NODES
for _q in (
    _pod("s5", priority=5, node="small"),
    _pod("l1", priority=1, node="large", day=1),
    _pod("l2", priority=2, node="large", day=2),
    _pod("l2b", priority=2, node="large", day=3),
    _pod("l5", priority=5, node="large"),
):
    CROWD = CROWD.put(_q)


@pytest.mark.parametrize(
    ("priority", "small", "large"),
    [
        pytest.param(1, "", "", id="only lower ones"),
        pytest.param(2, "", "l1", id="not its equals"),
        pytest.param(5, "", "l1 l2 l2b", id="some"),
        pytest.param(6, "s5", "l1 l2 l2b l5", id="all"),
    ],
)
def test_jeopardy(priority: int, small: str, large: str) -> None:
    """The pods bound to a node with lower priority."""
    p = _pod("p", priority=priority)
    assert [small, large, ""] == [_names(Jeopardy(p, n, CROWD)) for n in CROWD.Nodes]


def test_subset() -> None:
    """A set of n has 2 to the power of n subsets."""
    V = tuple(_pod(name) for name in "abc")
    expected = ["", "a", "b", "c", "a b", "a c", "b c", "a b c"]
    assert expected == [_names(W) for W in SUBSET(V)]


@pytest.mark.parametrize(
    ("cpu", "priority", "clearances"),
    [
        pytest.param(1, 1, [], id="nobody is lower"),
        pytest.param(1, 2, ["l1"], id="one"),
        pytest.param(2, 2, [], id="one is not enough"),
        pytest.param(3, 5, ["l1 l2 l2b"], id="all of three"),
        pytest.param(2, 5, ["l1 l2", "l1 l2b", "l2 l2b", "l1 l2 l2b"], id="two of three"),
        pytest.param(5, 9, [], id="too large for any node"),
    ],
)
def test_clearances(cpu: int, priority: int, clearances: list[str]) -> None:
    """Preemption is enabled if some node is feasible without some of the pods in jeopardy."""
    p = _pod("p", cpu, priority)
    assert clearances == [_names(V) for _, V in Clearances(p, CROWD)]
    assert bool(clearances) == PreemptionEnabled(p, CROWD)


CASUALTIES = (
    (),
    (_pod("a", priority=1, node="n", day=5),),
    (_pod("a", priority=1, node="n", day=4),),
    (_pod("a", priority=1, node="n", day=5), _pod("b", priority=0, node="n", day=9)),
    (_pod("a", priority=1, node="n", day=5), _pod("b", priority=1, node="n", day=5)),
    (_pod("a", priority=1, node="n", day=5), _pod("b", priority=1, node="n", day=2)),
    (_pod("a", priority=2, node="n", day=5),),
    (_pod("a", priority=2, node="n", day=5), _pod("b", priority=-9, node="n", day=1)),
    (_pod("a", priority=2, node="n", day=5), _pod("b", priority=0, node="n", day=1)),
)


def test_casualty() -> None:
    """Highest priority, sum, number, and the start of the last one, in this order."""
    costs = [Casualty(V) for V in CASUALTIES]
    assert all(less < more for less, more in pairwise(costs))


def test_a_pod_that_has_not_started_counts_as_the_last() -> None:
    """It is evicted first among equals."""
    fresh = (make_pod("f", priority=1),)
    assert Casualty(fresh) < Casualty(CASUALTIES[1])


def test_casualty_is_a_total_order() -> None:
    """Of any two sets one is not worse than the other, so there is a least one."""
    costs = [Casualty(V) for V in CASUALTIES]
    assert all((a <= b) or (b <= a) for a, b in product(costs, repeat=2))
    least = LeastCasualty([(SMALL, V) for V in CASUALTIES[1:]])
    assert [(SMALL, CASUALTIES[1])] == least
    assert [] == LeastCasualty([])


def test_preemption() -> None:
    """A step evicts the victims of least casualty and changes nothing else."""
    p = _pod("p", 2, 5)
    S = CROWD.put(p)
    q = {name: S.pods[f"default/{name}"] for name in ("l1", "l2", "l2b", "s5")}
    assert (LARGE, (q["l1"], q["l2b"])) == Preemption(p, S, S - [q["l1"], q["l2b"]])
    assert Preemption(p, S, S - [q["l1"], q["l2"]]) is None
    assert Preemption(p, S, S - [q["l1"]]) is None
    assert Preemption(p, S, S - [q["l1"], q["l2b"], q["s5"]]) is None
    assert Preemption(p, S, S) is None


# The scheduler.


def test_front() -> None:
    """The pods of the highest priority."""
    a, b, c = _pod("a", priority=2), _pod("b", priority=1), _pod("c", priority=2)
    assert [a, c] == Front([a, b, c])
    assert [] == Front([])


HIGH, LOW = _pod("high", 1, 9), _pod("low", 1, 0)
BOTH = NODES.put(LOW).put(HIGH)
FULL = CROWD.put(LOW).put(HIGH)
HUGE = NODES.put(_pod("huge", 9, 9)).put(LOW)


@pytest.mark.parametrize(
    ("S", "T", "expected"),
    [
        pytest.param(BOTH, BOTH.bind(HIGH, LARGE), Step.scheduling(HIGH, LARGE), id="scheduling"),
        pytest.param(BOTH, BOTH.bind(LOW, LARGE), None, id="not its turn"),
        pytest.param(BOTH, BOTH.bind(HIGH, NONE), None, id="not feasible"),
        pytest.param(BOTH, BOTH, None, id="something was enabled"),
        pytest.param(BOTH, BOTH - [LOW], None, id="nobody may leave without need"),
        pytest.param(
            FULL,
            FULL - [FULL.pods["default/l1"]],
            Step.preemption(HIGH, LARGE, (FULL.pods["default/l1"],)),
            id="preemption",
        ),
        pytest.param(FULL, FULL - [FULL.pods["default/s5"]], None, id="not the least casualty"),
        pytest.param(FULL, FULL.bind(HIGH, LARGE), None, id="no room yet"),
        pytest.param(HUGE, HUGE, Step("Unchanged", "default/huge"), id="nothing is enabled"),
        pytest.param(HUGE, HUGE.bind(LOW, LARGE), None, id="who cannot go holds up the rest"),
        pytest.param(NODES, NODES, None, id="nobody is unbound"),
    ],
)
def test_scheduler(S: Objects, T: Objects, expected: Step | None) -> None:
    """One of highest priority is scheduled, else preempts, else nothing happens."""
    assert expected == Scheduler(S, T)


def test_preemption_reserves_nothing() -> None:
    """An equal pod that arrived since may be bound in the next step."""
    S = FULL - [FULL.pods["default/l1"]]
    rival = _pod("rival", 1, 9)
    S = S.put(rival)
    for winner in (HIGH, rival):
        T = S.bind(winner, LARGE)
        assert Step.scheduling(winner, LARGE) == Scheduler(S, T)
        assert not SchedulingEnabled(S.pods[key(rival if winner is HIGH else HIGH)], T)


def test_weights_decide() -> None:
    """Without any, all feasible nodes are viable."""
    p = make_pod("p", requests={"cpu": 1}, node_affinity=LIKES_A)
    S = NODES.put(p)
    assert Scheduler(S, S.bind(p, LARGE), ((1, NodeAffinityRating),)) is None
    assert Step.scheduling(p, LARGE) == Scheduler(S, S.bind(p, LARGE), ())
