"""The cycle's paths: no nodes, PreFilter, Filter, nominated pods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kubesched.framework.plugin import PreFilterResult, Scope
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, failure, unresolvable
from kubesched.framework.status import unschedulable as refuse
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot
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
    rejected,
    rejections,
    toy,
)

POD = make_pod_info("pod", priority=5)
PENDING = Status(Code.PENDING, ("later",))
WAIT = Status(Code.WAIT, ("wait",))


def _with_guest(node_name: str, priority: int = 9, uid: str | None = None) -> Snapshot:
    """Return the nodes, with a pod that is nominated to one."""
    guest = make_pod("guest", uid=uid, nominated_node_name=node_name, priority=priority)
    return make_snapshot([make_node(name) for name in NODES], [guest])


def _only(*names: str) -> PreFilterResult[None]:
    return PreFilterResult(node_names=frozenset(names))


def _says(status: Status) -> PreFilterResult[None]:
    return PreFilterResult(status=status)


# No nodes.


def test_without_nodes_the_cycle_fails() -> None:
    """No plugin is called, and none is named as rejecting."""
    plugin = toy("P", pre_filter=_only(), filter={}, post_filter=RuntimeError())
    decision = decide([plugin], POD, make_snapshot())
    assert unresolvable("no nodes available to schedule pods") == failed(decision)
    assert [] == plugin.asked


# PreFilter.


def test_skip_at_pre_filter_skips_filter_and_add_pod() -> None:
    """Other plugins are called."""
    skips = toy("Skips", pre_filter=_says(SKIP), filter=dict.fromkeys(NODES, refuse("no")))
    other = toy("Other", pre_filter=PreFilterResult(), filter={"a": refuse("full")})
    snapshot = _with_guest("c")
    assert 2 == placed(decide([skips, other], POD, snapshot)).feasible
    assert {"pre_filter"} == set(points_asked(skips))
    assert {"pre_filter", "filter", "add_pod"} == set(points_asked(other))


def test_unresolvable_pre_filter_ends_the_phase() -> None:
    """Restrictions of earlier plugins are dropped."""
    first = toy("First", pre_filter=_only("a"))
    second = toy("Second", pre_filter=_says(unresolvable("never")))
    third = toy("Third", pre_filter=PreFilterResult(), filter={})
    decision = rejected(decide([first, second, third], POD, cluster()))
    assert "0/3 nodes are available: never." == decision.message
    assert frozenset({"Second"}) == decision.diagnosis.unschedulable_plugins
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE is decision.diagnosis.absent_status.code
    assert [] == third.asked


def test_unschedulable_pre_filter_does_not_end_the_phase() -> None:
    """The other plugins are called, the last rejection wins, and no filter runs."""
    first = toy("First", pre_filter=_says(refuse("one")))
    second = toy("Second", pre_filter=_only("a"), filter={})
    third = toy("Third", pre_filter=_says(refuse("two")))
    fourth = toy("Fourth", pre_filter=PreFilterResult(), filter={})
    decision = rejected(decide([first, second, third, fourth], POD, cluster()))
    assert "0/3 nodes are available: two." == decision.message
    assert frozenset({"Second", "Third"}) == decision.diagnosis.unschedulable_plugins
    assert Code.UNSCHEDULABLE is decision.diagnosis.absent_status.code
    assert "filter" not in points_asked(second)
    assert {"pre_filter"} == set(points_asked(fourth))


def test_unresolvable_after_unschedulable_wins() -> None:
    """It replaces the earlier rejection."""
    plugins = [
        toy("First", pre_filter=_says(refuse("one"))),
        toy("Second", pre_filter=_says(unresolvable("never"))),
    ]
    decision = rejected(decide(plugins, POD, cluster()))
    assert "0/3 nodes are available: never." == decision.message
    assert frozenset({"Second"}) == decision.diagnosis.unschedulable_plugins


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(_says(failure("broken")), "broken", id="error"),
        pytest.param(_says(WAIT), "wait", id="wait"),
        pytest.param(_says(PENDING), "later", id="pending"),
        pytest.param(ValueError("broken"), "ValueError: broken", id="exception"),
    ],
)
def test_other_codes_of_pre_filter_fail_the_cycle(answer: object, text: str) -> None:
    """Only success, Skip and the two rejections are allowed."""
    first = toy("First", pre_filter=_says(refuse("one")))
    second = toy("Second", pre_filter=answer)
    third = toy("Third", pre_filter=PreFilterResult())
    status = failed(decide([first, second, third], POD, cluster()))
    expected = Status(
        Code.ERROR, plugin="Second", error=f'running PreFilter plugin "Second": {text}'
    )
    assert expected == status
    assert [] == third.asked


def test_an_empty_set_of_names_of_one_plugin() -> None:
    """The message names that plugin."""
    decision = rejected(decide([toy("Picky", pre_filter=_only())], POD, cluster()))
    assert "0/3 nodes are available: node(s) didn't satisfy plugin Picky." == decision.message
    assert frozenset({"Picky"}) == decision.diagnosis.unschedulable_plugins
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE is decision.diagnosis.absent_status.code


def test_disjoint_sets_of_names() -> None:
    """The message names all plugins with names, sorted."""
    plugins = [toy("Z", pre_filter=_only("a", "b")), toy("A", pre_filter=_only("c"))]
    last = toy("Last", pre_filter=PreFilterResult())
    decision = rejected(decide([*plugins, last], POD, cluster()))
    text = "0/3 nodes are available: node(s) didn't satisfy plugin(s) [A Z] simultaneously."
    assert text == decision.message
    assert frozenset({"A", "Z"}) == decision.diagnosis.unschedulable_plugins
    assert [] == last.asked


def test_an_empty_intersection_replaces_an_earlier_rejection() -> None:
    """The earlier rejection was Unschedulable."""
    plugins = [toy("First", pre_filter=_says(refuse("one"))), toy("Picky", pre_filter=_only())]
    decision = rejected(decide(plugins, POD, cluster()))
    assert "0/3 nodes are available: node(s) didn't satisfy plugin Picky." == decision.message
    assert frozenset({"Picky"}) == decision.diagnosis.unschedulable_plugins


def test_only_nodes_named_by_pre_filter_are_filtered() -> None:
    """Unknown names are ignored."""
    narrow = toy("Narrow", pre_filter=_only("b", "c", "unknown"))
    wide = toy("Wide", pre_filter=_only("a", "c", "unknown"), filter={})
    decision = placed(decide([narrow, wide], POD, cluster()))
    assert ("c", 1, 1) == (decision.node_name, decision.feasible, decision.evaluated)
    assert ("filter", ("c",)) == wide.asked[-1]


def test_nodes_outside_the_names_have_the_absent_status() -> None:
    """A rejection distinguishes them from nodes that were filtered."""
    plugins = [
        toy("Z", pre_filter=_only("a", "b")),
        toy("A", pre_filter=_only("a", "b", "c"), filter={"a": refuse("x"), "b": refuse("y")}),
    ]
    decision = rejected(decide(plugins, POD, cluster()))
    absent = "node(s) didn't satisfy plugin(s) [A Z]"
    assert unresolvable(absent) == decision.diagnosis.absent_status
    assert f"0/3 nodes are available: 1 {absent}, 1 x, 1 y." == decision.message
    assert {"a": ("A", "x"), "b": ("A", "y")} == rejections(decision)
    assert frozenset({"A", "Z"}) == decision.diagnosis.unschedulable_plugins


def test_names_of_unknown_nodes_only() -> None:
    """No filter runs and every node has the absent status."""
    decision = rejected(decide([toy("P", pre_filter=_only("x"), filter={})], POD, cluster()))
    text = "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [P]."
    assert (text, {}) == (decision.message, rejections(decision))


# Filter.


def test_a_node_has_the_status_of_the_first_rejecting_filter() -> None:
    """Filters run in the profile's order."""
    plugins = [
        toy("First", filter={"a": refuse("one")}),
        toy("Second", filter={"a": unresolvable("two"), "b": unresolvable("two", "three")}),
        toy("Third", filter=dict.fromkeys(NODES, PENDING)),
    ]
    decision = rejected(decide(plugins, POD, cluster()))
    expected = {"a": ("First", "one"), "b": ("Second", "two, three"), "c": ("Third", "later")}
    assert expected == rejections(decision)
    assert "0/3 nodes are available: 1 later, 1 one, 1 three, 1 two." == decision.message
    assert frozenset({"First", "Second", "Third"}) == decision.diagnosis.unschedulable_plugins
    assert frozenset({"Third"}) == decision.diagnosis.pending_plugins


def test_without_filters_every_node_is_feasible() -> None:
    """The plugin list is empty."""
    assert 3 == placed(decide([], POD, cluster())).feasible


def test_a_success_with_reasons_is_a_success() -> None:
    """The node is feasible."""
    praise = Status(Code.SUCCESS, ("fits well",))
    assert 3 == placed(decide([toy("P", filter={"a": praise})], POD, cluster())).feasible


@pytest.mark.parametrize("scope", [Scope.NODE, Scope.ROW, Scope.CLUSTER])
@pytest.mark.parametrize("code", [Code.ERROR, Code.WAIT, Code.SKIP])
def test_other_codes_of_filter_fail_the_cycle(code: Code, scope: Scope) -> None:
    """Only success and the two rejections are allowed."""
    answer = Status(code, ("broken",))
    plugin = toy("P", filter={"b": answer}, scope=scope, sign=alike)
    expected = Status(Code.ERROR, plugin="P", error='running "P" filter plugin: broken')
    assert expected == failed(decide([plugin], POD, cluster()))


@pytest.mark.parametrize("first", list(Scope))
@pytest.mark.parametrize("second", list(Scope))
def test_a_filter_failure_on_a_rejected_node_is_ignored(first: Scope, second: Scope) -> None:
    """Upstream would not call the filter for this node."""
    plugins = [
        toy("First", filter={"a": refuse("full")}, scope=first, sign=alike),
        toy("Second", filter={"a": failure("broken")}, scope=second, sign=alike),
    ]
    assert 2 == placed(decide(plugins, POD, cluster())).feasible


@pytest.mark.parametrize("scope", list(Scope))
def test_a_filter_that_raises_fails_the_cycle(scope: Scope) -> None:
    """The message has the exception."""
    plugin = toy("P", filter=KeyError("zone"), scope=scope, sign=alike)
    text = "running \"P\" filter plugin: KeyError: 'zone'"
    assert Status(Code.ERROR, plugin="P", error=text) == failed(decide([plugin], POD, cluster()))


def test_a_costly_filter_is_called_for_survivors_only() -> None:
    """They are the nodes that no earlier filter rejects."""
    early = toy("Early", filter={"a": refuse("full")})
    costly = toy("Costly", filter={"b": refuse("none")}, survivors_only=True)
    late = toy("Late", filter={"c": refuse("late")})
    decision = cycle_of(early, costly, late).schedule_one(POD, cluster())
    expected = {"a": ("Early", "full"), "b": ("Costly", "none"), "c": ("Late", "late")}
    assert expected == rejections(decision)
    assert [("filter", ("b", "c"))] == costly.asked
    assert [("filter", NODES)] == late.asked
    decide([early, costly, late], POD, cluster())


def test_a_costly_filter_is_not_called_without_survivors() -> None:
    """All nodes were rejected before it."""
    early = toy("Early", filter=dict.fromkeys(NODES, refuse("full")))
    costly = toy("Costly", filter=RuntimeError("never asked"), survivors_only=True)
    decision = decide([early, costly], POD, cluster())
    assert dict.fromkeys(NODES, ("Early", "full")) == rejections(decision)
    assert [] == costly.asked


def test_a_costly_filters_failure_fails_the_cycle() -> None:
    """The filter fails on a survivor."""
    costly = toy("Costly", filter={"c": failure("broken")}, survivors_only=True)
    assert (
        'running "Costly" filter plugin: broken' == failed(decide([costly], POD, cluster())).message
    )


# The pod's own nominated node.


def test_a_nominated_node_that_fits_is_chosen_without_scoring() -> None:
    """It is chosen even if PreFilter's names do not include it."""
    pod = make_pod_info("pod", nominated_node_name="b")
    plugin = toy("P", pre_filter=_only("a"), filter={}, score={})
    decision = placed(decide([plugin], pod, cluster()))
    assert ("b", 1, 1) == (decision.node_name, decision.feasible, decision.evaluated)
    assert [("pre_filter", NODES), ("filter", ("b",))] == plugin.asked[:2]


def test_all_nodes_are_searched_if_the_nominated_node_does_not_fit() -> None:
    """The nominated node is among them."""
    pod = make_pod_info("pod", nominated_node_name="b")
    plugin = toy("P", filter={"b": refuse("full")}, score={"c": 10})
    decision = placed(decide([plugin], pod, cluster()))
    assert ("c", 2, 3) == (decision.node_name, decision.feasible, decision.evaluated)


def test_a_rejected_nominated_node_outside_the_names_has_its_status() -> None:
    """Other nodes outside the names have the absent one."""
    pod = make_pod_info("pod", nominated_node_name="b")
    plugin = toy("P", pre_filter=_only("a"), filter={"a": refuse("x"), "b": refuse("y")})
    decision = rejected(decide([plugin], pod, cluster()))
    assert {"a": ("P", "x"), "b": ("P", "y")} == rejections(decision)


def test_a_nominated_node_outside_the_names_is_counted_once() -> None:
    """Evaluated nodes are the feasible ones and those with a status."""
    pod = make_pod_info("pod", nominated_node_name="b")
    plugin = toy("P", pre_filter=_only("a", "c"), filter={"b": refuse("y")})
    decision = placed(decide([plugin], pod, cluster()))
    assert (2, 3) == (decision.feasible, decision.evaluated)


def test_the_plugin_that_rejected_the_nominated_node_is_named() -> None:
    """The message about absent nodes names it beside the plugins that restricted the names."""
    plugins = [toy("Z", pre_filter=_only("a")), toy("A", filter={"a": refuse("x")})]
    pod = make_pod_info("pod", nominated_node_name="a")
    decision = rejected(decide(plugins, pod, cluster()))
    text = "0/3 nodes are available: 1 x, 2 node(s) didn't satisfy plugin(s) [A Z]."
    assert text == decision.message


def test_an_unknown_nominated_node_is_ignored() -> None:
    """All nodes are searched."""
    pod = make_pod_info("pod", nominated_node_name="gone")
    assert 3 == placed(decide([toy("P", filter={})], pod, cluster())).feasible


def test_a_failure_on_the_nominated_node_is_ignored() -> None:
    """All nodes are searched."""
    pod = make_pod_info("pod", nominated_node_name="b")
    plugin = toy("P", pre_filter=_only("a", "c"), filter={"b": failure("broken")})
    decision = placed(decide([plugin], pod, cluster()))
    assert (2, 2) == (decision.feasible, decision.evaluated)


# Pods nominated to nodes.


def _room_for(guests: Sequence[str], *, others: Sequence[str] = NODES) -> type[Toy]:
    """Reject nodes that have one of the guests."""

    def answer(pods: Sequence[str]) -> Status:
        return refuse("taken") if set(guests) & set(pods) else SUCCESS

    return toy("Room", pre_filter=PreFilterResult(), filter=dict.fromkeys(others, answer))


@pytest.mark.parametrize(
    ("priority", "uid", "fits"),
    [
        pytest.param(4, None, True, id="lower"),
        pytest.param(5, None, False, id="equal"),
        pytest.param(6, None, False, id="higher"),
        pytest.param(9, "default/pod", True, id="itself"),
    ],
)
@pytest.mark.parametrize("remembers", [False, True])
def test_nominated_pods_of_equal_or_higher_priority_count(
    priority: int, uid: str | None, fits: bool, remembers: bool
) -> None:
    """Their node is filtered as if they were there."""
    snapshot = _with_guest("b", priority, uid)
    plugin = _room_for(["guest"])
    cycle = cycle_of(plugin, remembers=remembers)
    assert (3 if fits else 2) == placed(cycle.schedule_one(POD, snapshot)).feasible
    assert ([] if fits else [("add_pod", ("b", "guest"))]) == [
        asked for asked in plugin.asked if asked[0] == "add_pod"
    ]
    decide([plugin], POD, snapshot)


def test_the_status_of_the_pass_with_nominated_pods_is_reported() -> None:
    """Both passes reject the node."""

    def answer(pods: Sequence[str]) -> Status:
        return refuse("with guest") if pods else refuse("alone")

    snapshot = _with_guest("b")
    decision = decide([toy("P", filter=dict.fromkeys(NODES, answer))], POD, snapshot)
    expected = {"a": ("P", "alone"), "b": ("P", "with guest"), "c": ("P", "alone")}
    assert expected == rejections(decision)


def test_a_node_must_fit_without_nominated_pods_too() -> None:
    """Nominated pods may be placed elsewhere."""

    def answer(pods: Sequence[str]) -> Status:
        return SUCCESS if pods else refuse("alone")

    guest = make_pod("guest", nominated_node_name="b", priority=9)
    snapshot = make_snapshot([make_node("b")], [guest])
    decision = decide([toy("P", filter={"b": answer})], POD, snapshot)
    assert {"b": ("P", "alone")} == rejections(decision)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(refuse("odd"), "odd", id="rejection"),
        pytest.param(failure("broken"), "broken", id="error"),
        pytest.param(ValueError("broken"), "ValueError: broken", id="exception"),
    ],
)
def test_an_error_of_add_pod_fails_the_cycle(answer: object, text: str) -> None:
    """So does any other code than success."""
    plugin = toy("P", pre_filter=PreFilterResult(), add_pod=answer, filter={})
    snapshot = _with_guest("b")
    error = f'running AddPod on PreFilter plugin "P": {text}'
    assert Status(Code.ERROR, plugin="P", error=error) == failed(decide([plugin], POD, snapshot))


def test_a_filter_failure_with_nominated_pods_fails_the_cycle() -> None:
    """Without them the filter would succeed."""

    def answer(pods: Sequence[str]) -> Status:
        return failure("crowded") if pods else SUCCESS

    snapshot = _with_guest("b")
    decision = decide([toy("P", filter={"b": answer})], POD, snapshot)
    assert 'running "P" filter plugin: crowded' == failed(decision).message


def test_nominations_to_unknown_nodes_are_ignored() -> None:
    """The decision does not depend on them."""
    snapshot = _with_guest("gone")
    assert 3 == placed(decide([_room_for(["guest"])], POD, snapshot)).feasible


def test_the_nominated_node_is_filtered_with_its_nominated_pods() -> None:
    """It is filtered like any other node."""
    pod = make_pod_info("pod", priority=5, nominated_node_name="b")
    snapshot = _with_guest("b", priority=5)
    decision = placed(decide([_room_for(["guest"]), toy("S", score={"c": 1})], pod, snapshot))
    assert ("c", 2) == (decision.node_name, decision.feasible)


# The trace.


def test_a_trace_does_not_change_the_decision() -> None:
    """With and without one, the decision is the same."""
    plugins = [
        toy("First", pre_filter=PreFilterResult(), filter={"a": refuse("one")}),
        toy("Score", score=dict.fromkeys(NODES, 7)),
    ]
    for seed in range(10):
        quiet = cycle_of(*plugins, seed=seed).schedule_one(POD, cluster())
        for trace in (Trace(), Trace(all_filters=True)):
            assert comparable(quiet) == comparable(
                cycle_of(*plugins, seed=seed).schedule_one(POD, cluster(), trace)
            )


def test_all_filters_traces_every_filter_for_every_row() -> None:
    """The first rejection still decides."""
    plugins = [
        toy("First", filter={"a": refuse("one")}),
        toy("Second", filter={"a": refuse("two"), "b": refuse("two")}),
        toy("Skips", pre_filter=_says(SKIP), filter={}),
    ]
    trace = Trace(all_filters=True)
    decision = placed(cycle_of(*plugins).schedule_one(POD, cluster(), trace))
    assert "c" == decision.node_name
    assert ["First", "Second"] == [traced.plugin for traced in trace.filters]
    codes = [traced.answers.index.astype(np.bool_).tolist() for traced in trace.filters]
    assert [[True, False, False], [True, True, False]] == codes
    plugins_told = [trace.statuses[row].plugin for row in range(3)]
    assert ["First", "Second", ""] == plugins_told


def test_a_traced_failure_on_a_rejected_row_is_ignored() -> None:
    """Calling every filter for every row adds no failures."""
    plugins = [toy("First", filter={"a": refuse("one")}), toy("Second", filter={"a": failure("x")})]
    trace = Trace(all_filters=True)
    assert 2 == placed(cycle_of(*plugins).schedule_one(POD, cluster(), trace)).feasible
