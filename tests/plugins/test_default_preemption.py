"""Tests of DefaultPreemption: results, chosen nodes, and number of nodes tried."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject
from kubesched.api.policy import PodDisruptionBudget
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.report import Criterion, PreemptionReport
from kubesched.framework.status import SUCCESS, NodeToStatus, Status, failure, unschedulable
from kubesched.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_pod, make_snapshot
from tests.framework.preemption.cluster import make_budget
from tests.scheduler.running import make_group

from .preempting import (
    HALF,
    HIGH,
    HUGE,
    LARGE,
    LOW,
    MEDIUM,
    MIDDLE,
    NEGATIVE,
    ONE_POD,
    SMALL,
    UU,
    Accept,
    U,
    found,
    handle_of,
    node,
    pod_on,
    post_filter,
    report_of,
)

FOO, KEPT, FREE = ({"matchLabels": {"app": app}} for app in ("foo", "kept", "free"))

# Results.


def test_result_without_victims_holds_until_a_pod_of_lower_priority_comes() -> None:
    """The same statuses give the same result, as long as no pod has a lower priority."""
    handle = handle_of()
    plugin = DefaultPreemption(DefaultPreemptionArgs(), handle)
    pod, statuses = PodInfo(make_pod("pod", priority=HIGH, requests=LARGE)), NodeToStatus.of([U])

    def ask(other: Pod) -> PostFilterResult:
        snapshot, cycle = make_snapshot([node("n1")], [other]), CycleState()
        assert handle.pre_filter(cycle, pod, snapshot).is_success
        return plugin.post_filter(cycle, pod, snapshot, statuses)

    first = ask(pod_on("n1", "equal", HIGH, HALF))
    assert first is ask(pod_on("n1", "equal", HIGH, HALF))
    assert "n1" == ask(pod_on("n1", "lower", LOW, HALF)).nominated_node_name
    assert "" == ask(pod_on("n1", "equal", HIGH, HALF)).nominated_node_name


NO_ROOM = {"cpu": "200m"}
INSUFFICIENT = "Insufficient cpu"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"


@pytest.mark.parametrize(
    ("priority", "room", "priorities", "statuses", "message"),
    [
        pytest.param(LOW, [ONE_POD], [LOW], [U], f"1 {NO_VICTIMS}", id="equal-priority"),
        pytest.param(HIGH, [ONE_POD], [LOW], [UU], f"1 {NO_HELP}", id="unresolvable"),
        pytest.param(
            HIGH, [NO_ROOM] * 2, [LOW] * 2, [U, U], f"2 {INSUFFICIENT}", id="not-enough-room"
        ),
        pytest.param(
            HIGH,
            [ONE_POD, NO_ROOM, ONE_POD],
            [HIGH, LOW, HIGH],
            [U, U, U],
            f"1 {INSUFFICIENT}, 2 {NO_VICTIMS}",
            id="mixed-reasons",
        ),
        pytest.param(
            HIGH,
            [NO_ROOM] * 4,
            [LOW] * 2,
            [U, U, UU, UU],
            f"2 {INSUFFICIENT}, 2 {NO_HELP}",
            id="untried-nodes-count",
        ),
    ],
)
def test_no_candidate(
    priority: int,
    room: list[Mapping[str, str | int]],
    priorities: list[int],
    statuses: list[Status],
    message: str,
) -> None:
    """Without a candidate, the nomination is cleared and the message has the reason."""
    nodes = [node(f"n{at}", each) for at, each in enumerate(room)]
    bound = [pod_on(f"n{at}", f"p{at}", each) for at, each in enumerate(priorities)]
    pod = make_pod("p", priority=priority, requests=LARGE)
    result = post_filter(pod, make_snapshot(nodes, bound), statuses=statuses)
    text = f"preemption: 0/{len(nodes)} nodes are available: {message}."
    assert (unschedulable(text), "", ()) == (
        result.status,
        result.nominated_node_name,
        result.victims,
    )


@pytest.mark.parametrize(
    ("priority", "bound", "budgets", "expected"),
    [
        pytest.param(HIGH, [pod_on("n1", "p1")], [], "n1", id="one-node"),
        pytest.param(
            MIDDLE,
            [pod_on("n1", "p1", HIGH), pod_on("n2", "p2", LOW)],
            [],
            "n2",
            id="the-only-one-with-victims",
        ),
        pytest.param(
            HUGE,
            [
                pod_on("n1", "p1", HIGH, labels={"app": "free"}),
                pod_on("n1", "p2", LOW, labels={"app": "kept"}),
                pod_on("n2", "p3", MIDDLE, labels={"app": "kept"}),
            ],
            [make_budget("b", KEPT), make_budget("b2", FREE, allowed=2**31 - 1)],
            "n2",
            id="lowest-highest-priority-of-equal-violations",
        ),
    ],
)
def test_candidate(
    priority: int, bound: list[Pod], budgets: list[PodDisruptionBudget], expected: str
) -> None:
    """With a candidate the pod is nominated there."""
    names = sorted({pod.spec.node_name for pod in bound})
    snapshot = make_snapshot([node(name, ONE_POD) for name in names], bound, budgets)
    result = post_filter(make_pod("p", priority=priority), snapshot)
    assert (SUCCESS, expected) == (result.status, result.nominated_node_name)
    report = report_of(result)
    assert report.choice is not None
    assert (report.choice.victims, expected) == (result.victims, report.chosen)


def test_ineligible_pod_keeps_its_nomination() -> None:
    """A pod that may not preempt gets a reason and keeps its nomination."""
    snapshot = make_snapshot([node("n1", ONE_POD)], [pod_on("n1", "p1")])
    pod = make_pod("p", priority=HIGH, spec={"preemptionPolicy": "Never", "priority": HIGH})
    result = post_filter(pod, snapshot)
    reason = "not eligible due to preemptionPolicy=Never."
    assert (unschedulable(f"preemption: {reason}"), None) == (
        result.status,
        result.nominated_node_name,
    )
    assert isinstance(result.details, PreemptionReport)
    assert reason == result.details.reason


def test_no_nodes() -> None:
    """A cluster without nodes is an error."""
    result = post_filter(make_pod("p"), make_snapshot())
    assert (failure("preemption: no nodes available"), None) == (
        result.status,
        result.nominated_node_name,
    )


def test_a_contradiction_is_an_error() -> None:
    """A node that was rejected but needs no victim makes the whole preemption an error."""
    snapshot = make_snapshot([node("n1")], [pod_on("n1", "p1")])
    result = post_filter(make_pod("p", priority=HIGH), snapshot, plugins=[Accept])
    text = 'preemption: expected at least one victim pod on node "n1"'
    assert (failure(text), None) == (result.status, result.nominated_node_name)


# Which node it chooses.


@pytest.mark.parametrize(
    ("bound", "best", "decided_by"),
    [
        pytest.param(
            [
                pod_on("n1", "a", MIDDLE, SMALL),
                pod_on("n1", "b", NEGATIVE, SMALL),
                pod_on("n1", "c", NEGATIVE, SMALL),
                pod_on("n2", "d", MIDDLE, LARGE),
                pod_on("n2", "e", NEGATIVE, MEDIUM),
                pod_on("n3", "f", MIDDLE, MEDIUM),
                pod_on("n3", "g", NEGATIVE, SMALL),
                pod_on("n3", "h", LOW, SMALL),
            ],
            ("n2",),
            Criterion.PRIORITY_SUM,
            id="sum-of-shifted-priorities",
        ),
        pytest.param(
            [
                pod_on("n1", "a", MIDDLE, MEDIUM, second=4),
                pod_on("n1", "b", MIDDLE, MEDIUM, second=2),
                pod_on("n2", "c", MIDDLE, MEDIUM, second=5),
                pod_on("n2", "d", MIDDLE, MEDIUM, second=1),
                pod_on("n3", "e", MIDDLE, MEDIUM, second=3),
                pod_on("n3", "f", MIDDLE, MEDIUM, second=6),
            ],
            ("n3",),
            Criterion.START_TIME,
            id="latest-earliest-start",
        ),
    ],
)
def test_choice(bound: list[Pod], best: tuple[str, ...], decided_by: Criterion) -> None:
    """The order between candidates is applied to what the dry run finds."""
    names = sorted({pod.spec.node_name for pod in bound})
    snapshot = make_snapshot([node(name) for name in names], bound)
    result = post_filter(make_pod("p", priority=HIGH, requests=HALF), snapshot)
    report = report_of(result)
    assert (best, decided_by) == (report.best, report.decided_by)


# How many nodes it tries.


@pytest.mark.parametrize(
    ("percentage", "absolute", "tried"), [(10, 100, 5), (40, 1, 2), (100, 1, 5)]
)
def test_how_many_nodes_are_tried(percentage: int, absolute: int, tried: int) -> None:
    """The arguments say how many candidates are enough; the default of 100 is all of a few."""
    args = DefaultPreemptionArgs(
        min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute
    )
    names = [f"n{number}" for number in range(5)]
    bound = [pod_on(name, f"p-{name}", MIDDLE, LARGE) for name in names]
    snapshot = make_snapshot([node(name) for name in names], bound)
    result = post_filter(make_pod("p", priority=HIGH, requests=LARGE), snapshot, args=args)
    assert tried == len(found(result))


def test_goes_on_until_a_candidate_violates_nothing() -> None:
    """The dry run continues while all candidates violate a budget."""
    protected = {"n1", "n2", "n5"}
    names = [f"n{number}" for number in range(1, 6)]
    bound = [
        pod_on(n, f"p-{n}", MIDDLE, LARGE, labels={"app": "foo" if n in protected else "bar"})
        for n in names
    ]
    snapshot = make_snapshot([node(name) for name in names], bound, [make_budget("b", FOO)])
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=40, min_candidate_nodes_absolute=2)
    for _ in range(20):
        pod = make_pod("p", priority=HIGH, requests=LARGE)
        assert post_filter(pod, snapshot, args=args).nominated_node_name in {"n3", "n4"}


# Pod groups.


PLACEMENT = "not eligible due to placement-based pod group scheduling limitation"
AS_A_WHOLE = "not eligible due to workload aware preemption enabled"


@pytest.mark.parametrize(
    ("places", "preempts", "group_name", "reason"),
    [
        pytest.param(False, False, "placed", "", id="gates-off"),
        pytest.param(True, False, "placed", PLACEMENT, id="placed-group"),
        pytest.param(True, True, "placed", PLACEMENT, id="placed-group-comes-first"),
        pytest.param(True, False, "plain", "", id="group-without-constraints"),
        pytest.param(True, True, "plain", AS_A_WHOLE, id="group-preempts-as-a-whole"),
        pytest.param(False, True, "missing", AS_A_WHOLE, id="group-is-not-looked-up"),
        pytest.param(True, False, "missing", "pod group for pod not found", id="no-group"),
    ],
)
def test_pod_groups(places: bool, preempts: bool, group_name: str, reason: str) -> None:
    """Pods of groups do not preempt one by one where the group is scheduled as a whole."""
    gates = {
        "GenericWorkload": True,
        "GangScheduling": True,
        "TopologyAwareWorkloadScheduling": places,
        "WorkloadAwarePreemption": preempts,
    }
    groups: list[KubeObject] = [make_group("plain"), make_group("placed", key="rack")]
    snapshot = make_snapshot([node("n1", ONE_POD)], [pod_on("n1", "p1")], groups)
    spec = {"schedulingGroup": {"podGroupName": group_name}}
    result = post_filter(make_pod("p", priority=HIGH, spec=spec), snapshot, gates=gates)
    expected = unschedulable(f"preemption: {reason}") if reason else SUCCESS
    assert (expected, None if reason else "n1") == (result.status, result.nominated_node_name)
