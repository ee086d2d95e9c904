"""Filters and scores of a profile in which PreFilter or PreScore of the plugin do not run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kubesched.explain.explain import explain_decision
from kubesched.framework.plugin import FilterPlugin, NoState, PreFilterResult, Scope, ScorePlugin
from kubesched.framework.status import Code, NodeToStatus, Status, failure, unschedulable
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import Decision
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_pod_info
from tests.scheduler.toys import (
    NODES,
    Toy,
    alike,
    cluster,
    comparable,
    cycle_of,
    decide,
    failed,
    placed,
    points_asked,
    profile_of,
    rejections,
    toy,
)

POD = make_pod_info("pod")
NO = unschedulable("no")
GONE = NoState(failure("gone"))
SCOPES = pytest.mark.parametrize("scope", [Scope.CLUSTER, Scope.NODE, Scope.ROW])
FILTER_GONE = Status(Code.ERROR, plugin="P", error='running "P" filter plugin: gone')
SCORE_GONE = Status(
    Code.ERROR, plugin="P", error='running Score plugins: plugin "P" failed with: gone'
)


def _stateful(plugin: type[Toy], state: object) -> type[Toy]:
    """Let a toy return this state, or raise it, if PreFilter or PreScore do not run."""

    def make(self: object, *args: object) -> Any:
        if isinstance(state, Exception):
            raise state
        return state

    return type(plugin.__name__, (plugin,), {"filter_state": make, "score_state": make})


def _without_states(plugin: type[Toy]) -> type[Toy]:
    """Let a toy inherit the base classes' states, as most plugins do."""
    said = {"filter_state": FilterPlugin.filter_state, "score_state": ScorePlugin.score_state}
    return type(plugin.__name__, (plugin,), said)


def _rejecting(*names: str) -> type[Toy]:
    return toy("First", filter=dict.fromkeys(names, NO))


# Filter.


@SCOPES
def test_filter_without_state_fails(scope: Scope) -> None:
    """Only on rows that no earlier filter rejects."""
    plugin = _stateful(toy("P", filter={}, scope=scope, sign=alike), GONE)
    assert FILTER_GONE == failed(decide([_rejecting("a", "b"), plugin], POD, cluster()))
    assert [] == plugin.asked


@SCOPES
def test_a_missing_state_does_not_matter_if_all_rows_are_rejected(scope: Scope) -> None:
    """Earlier filters rejected them."""
    plugin = _stateful(toy("P", filter={}, scope=scope, sign=alike), GONE)
    decision = decide([_rejecting(*NODES), plugin], POD, cluster())
    assert dict.fromkeys(NODES, ("First", "no")) == rejections(decision)


@SCOPES
def test_a_missing_state_matters_once_a_row_reaches_the_filter(scope: Scope) -> None:
    """Remembered answers do not hide it."""
    snapshot = cluster()
    crowded = toy(
        "First",
        filter=dict.fromkeys(NODES, lambda pods: unschedulable("full") if pods else Status()),
        scope=Scope.ROW,
        sign=alike,
    )
    plugin = _stateful(toy("P", filter={}, scope=scope, sign=alike), GONE)
    others = [make_pod_info(f"on-{name}", node_name=name) for name in NODES]
    for row, other in enumerate(others):
        snapshot.nodes.add_pod(other, row)
    cycle = cycle_of(crowded, plugin, remembers=True)
    assert 3 == len(rejections(cycle.schedule_one(POD, snapshot)))
    snapshot.nodes.remove_pod(others[1], 1)
    assert FILTER_GONE == failed(cycle.schedule_one(POD, snapshot))


@SCOPES
def test_a_rejection_in_place_of_a_state(scope: Scope) -> None:
    """It is the plugin's status for every row."""
    plugin = _stateful(toy("P", filter={}, scope=scope, sign=alike), NoState(NO))
    decision = decide([_rejecting("a"), plugin], POD, cluster())
    assert {"a": ("First", "no"), "b": ("P", "no"), "c": ("P", "no")} == rejections(decision)


@SCOPES
def test_a_state_that_raises(scope: Scope) -> None:
    """The exception fails the rows that need the state, and no others."""
    plugin = _stateful(toy("P", filter={}, scope=scope, sign=alike), KeyError("x"))
    text = "running \"P\" filter plugin: KeyError: 'x'"
    assert text == failed(decide([plugin], POD, cluster())).message
    assert 3 == len(rejections(decide([_rejecting(*NODES), plugin], POD, cluster())))


@SCOPES
def test_filter_gets_the_state_of_filter_state(scope: Scope) -> None:
    """If PreFilter does not run; Skip is not possible."""

    class Minded(toy("P", filter={}, scope=scope, sign=alike)):  # type: ignore[misc]  # made by a function
        def filter_state(self, *args: object) -> object:
            return "b"

        def filter(self, state: object, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
            return NodeToStatus.rejecting(np.array([name != state for name in nodes.names]), NO)

    assert "b" == placed(decide([Minded], POD, cluster())).node_name


def test_filter_state_is_not_called_if_pre_filter_runs() -> None:
    """The state is the one that pre_filter returns."""
    plugin = _stateful(toy("P", pre_filter=PreFilterResult[None](), filter={}), GONE)
    assert 3 == placed(decide([plugin], POD, cluster())).feasible
    assert () == profile_of(plugin).filters_without_pre_filter


def test_a_filter_without_filter_state_fails() -> None:
    """The message says that its pre_filter did not run."""
    plugin = _without_states(toy("P", filter={}))
    text = "there is no state, because pre_filter is not enabled"
    assert failed(decide([plugin], POD, cluster())).message.endswith(text)


def test_a_missing_state_with_nominated_pods() -> None:
    """The failure is the same, also if single rows are filtered."""
    plugin = _stateful(toy("P", filter={}), GONE)
    cycle, snapshot = cycle_of(plugin), cluster()
    state = placed(cycle_of(toy("Q", filter={})).schedule_one(POD, snapshot)).cycle
    state.filter_states["P"] = GONE
    node = snapshot.nodes.take(np.array([0]))
    profile = cycle.profile
    assert FILTER_GONE == profile.filter_with_nominated_pods(state, POD, snapshot, node)
    assert [FILTER_GONE] * 3 == [
        profile.filter_rows(state, POD, snapshot.nodes.take(np.arange(3)))[row] for row in range(3)
    ]


# Score.


@SCOPES
def test_score_without_state_fails(scope: Scope) -> None:
    """If there is more than one feasible node."""
    plugin = _stateful(toy("P", score={}, scope=scope, sign=alike), GONE)
    assert SCORE_GONE == failed(decide([plugin], POD, cluster()))
    assert "c" == placed(decide([_rejecting("a", "b"), plugin], POD, cluster())).node_name


@SCOPES
def test_score_gets_the_state_of_score_state(scope: Scope) -> None:
    """The row that it names has the best score."""

    class Minded(toy("P", score={}, scope=scope, sign=alike)):  # type: ignore[misc]  # made by a function
        def score_state(self, *args: object) -> object:
            return "b"

        def score(self, state: object, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
            return np.array([100 * (name == state) for name in nodes.names], np.int64)

    assert "b" == placed(decide([Minded], POD, cluster())).node_name


def test_the_first_failing_score_plugin_is_reported() -> None:
    """All plugins score before any of them normalizes."""
    odd = toy("Odd", score={"a": 7000})
    broken = toy("Broken", score={}, normalize=ValueError("x"))
    plugin = _stateful(toy("P", score={}), GONE)
    assert SCORE_GONE == failed(decide([odd, broken, plugin], POD, cluster()))
    assert "Normalize" in failed(decide([odd, broken], POD, cluster())).message


def test_a_score_without_score_state_fails() -> None:
    """The message says that its pre_score did not run."""
    text = "there is no state, because pre_score is not enabled"
    plugin = _without_states(toy("P", score={}))
    assert failed(decide([plugin], POD, cluster())).message.endswith(text)


# Remembering, explaining.


def test_remembered_states_are_made_once() -> None:
    """If they depend on the signature alone; others are made each time."""
    made: list[str] = []

    def counting(scope: Scope) -> type[Toy]:
        def make(self: Toy, *args: object) -> None:
            made.append(self.name)

        plugin = toy(scope.name, filter={}, score={}, scope=scope, sign=alike)
        return type(scope.name, (plugin,), {"filter_state": make, "score_state": make})

    snapshot = cluster()
    cycle = cycle_of(*map(counting, (Scope.CLUSTER, Scope.NODE, Scope.ROW)), remembers=True)
    for _ in range(3):
        placed(cycle.schedule_one(POD, snapshot))
    assert {"CLUSTER": 6, "NODE": 2, "ROW": 4} == {name: made.count(name) for name in made}


@pytest.mark.parametrize("all_filters", [False, True])
def test_explain_with_a_missing_state(all_filters: bool) -> None:
    """It is explained like other failures, also if every filter runs."""
    plugin = _stateful(toy("P", filter={}), GONE)
    snapshot, trace = cluster(), Trace(all_filters=all_filters)
    cycle: SchedulingCycle = cycle_of(_rejecting("a"), plugin)
    decision: Decision = cycle.schedule_one(POD, snapshot, trace)
    assert comparable(cycle_of(_rejecting("a"), plugin).schedule_one(POD, snapshot)) == comparable(
        decision
    )
    report = explain_decision(cycle.profile, snapshot, trace, decision)
    assert FILTER_GONE.message == report.message
    assert [] == points_asked(plugin)
