"""Tests of DefaultPreemption: upstream's cases with the real filters, arguments, gates, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.scheduling import PodGroup
from kubesched.config.faults import ConfigError
from kubesched.framework.cluster_event import POD, Action, ClusterEvent
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import FilterPlugin, Plugin, PostFilterResult
from kubesched.framework.preemption.order import Criterion
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.status import (
    SUCCESS,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.plugins.node_resources_fit import NodeResourcesFit
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import KubernetesObject
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle

Found: TypeAlias = "dict[str, tuple[set[str], int]]"

U = unschedulable()
UU = unresolvable()

NEGATIVE, LOW, MIDDLE, HIGH, HUGE = -100, 0, 100, 1000, 10_000
SMALL = {"cpu": "100m", "memory": "100"}
MEDIUM = {"cpu": "200m", "memory": "200"}
LARGE = {"cpu": "300m", "memory": "300"}
HALF = {"cpu": "500m", "memory": "500"}

HAS_FOO = {"matchExpressions": [{"key": "foo", "operator": "Exists"}]}


class Refuse(FilterPlugin[None]):
    """Rejects every node."""

    name: ClassVar = "Refuse"

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject."""
        return NodeToStatus.everywhere(len(nodes), unschedulable("refused"))


class Accept(FilterPlugin[None]):
    """Lets every node pass."""

    name: ClassVar = "Accept"

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Pass."""
        return NodeToStatus.passing(len(nodes))


def node(name: str, zone: str = "", **allocatable: str | int) -> Node:
    """Build a node with two small pods' room, labelled with its host name and zone."""
    labels = {"hostname": name, "zone": zone} if zone else {"hostname": name}
    return make_node(name, labels=labels, allocatable=allocatable or {**HALF, "pods": 32})


def pod_on(
    node_name: str,
    name: str,
    priority: int = LOW,
    requests: Mapping[str, str | int] | None = None,
    second: int = 0,
    **fields: object,
) -> Pod:
    """Build a pod on a node; `second` is when it started."""
    start = f"2026-01-01T00:00:{second:02}Z"
    return make_pod_info(
        name,
        node_name=node_name,
        priority=priority,
        requests=requests,
        start_time=start,
        **fields,
    ).pod


def budget(allowed: int, app: str = "foo", disrupted: Sequence[str] = ()) -> PodDisruptionBudget:
    """Build a budget about the pods of an app."""
    return msgspec.convert(
        {
            "metadata": {"name": f"budget-of-{app}", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


def group(name: str, *, is_placed: bool = False) -> PodGroup:
    """Build a pod group, with a topology constraint if its pods are placed together."""
    constraints = {"schedulingConstraints": {"topology": [{"key": "rack"}]}} if is_placed else {}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return msgspec.convert({"metadata": metadata, "spec": constraints}, PodGroup)


def handle_of(
    plugins: Sequence[type[Plugin]] = (NodeResourcesFit,), gates: Mapping[str, bool] | None = None
) -> FakeHandle:
    """Return a handle with these filters."""
    handle = FakeHandle(gates)
    handle.plugins.extend(
        plugin(plugin.decode_args(None, handle, ""), handle) for plugin in plugins
    )
    return handle


def post_filter(
    pod: Pod,
    snapshot: Snapshot,
    *,
    statuses: Sequence[Status] = (),
    plugins: Sequence[type[Plugin]] = (NodeResourcesFit,),
    args: DefaultPreemptionArgs | None = None,
    gates: Mapping[str, bool] | None = None,
) -> PostFilterResult:
    """Ask the plugin; without `statuses` every node was rejected."""
    handle = handle_of(plugins, gates)
    cycle, info = CycleState(), PodInfo(pod)
    assert handle.pre_filter(cycle, info, snapshot).is_success
    given = statuses or [U] * len(snapshot.nodes)
    plugin = DefaultPreemption(args or DefaultPreemptionArgs(), handle)
    return plugin.post_filter(cycle, info, snapshot, NodeToStatus.of(given))


def report_of(result: PostFilterResult) -> PreemptionReport:
    """Return the details."""
    assert isinstance(result.details, PreemptionReport)
    return result.details


def found(result: PostFilterResult) -> Found:
    """Return node -> (names of victims, violations)."""
    return {
        candidate.node_name: ({v.name for v in candidate.victims}, candidate.pdb_violations)
        for candidate in report_of(result).candidates
    }


# What the plugin says.

ONE_POD = {"cpu": 4, "memory": "1Gi", "pods": 1}


@pytest.mark.parametrize(
    ("priority", "requests", "bound", "nodes", "statuses", "message"),
    [
        pytest.param(
            LOW,
            None,
            [pod_on("n1", "p1")],
            [node("n1", **ONE_POD)],
            [U],
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="equal-priority",
        ),
        pytest.param(
            HIGH,
            None,
            [pod_on("n1", "p1")],
            [node("n1", **ONE_POD)],
            [UU],
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="unresolvable",
        ),
        pytest.param(
            HIGH,
            LARGE,
            [pod_on("n1", "p1"), pod_on("n2", "p2")],
            [node("n1", cpu="200m"), node("n2", cpu="200m")],
            [U, U],
            "0/2 nodes are available: 2 Insufficient cpu.",
            id="not-enough-without-them",
        ),
        pytest.param(
            HIGH,
            LARGE,
            [pod_on("n1", "p1", HIGH), pod_on("n2", "p2"), pod_on("n3", "p3", HIGH)],
            [node("n1", **ONE_POD), node("n2", cpu="200m"), node("n3", **ONE_POD)],
            [U, U, U],
            "0/3 nodes are available: 1 Insufficient cpu, "
            "2 No preemption victims found for incoming pod.",
            id="mixed-reasons",
        ),
        pytest.param(
            HIGH,
            LARGE,
            [pod_on("n1", "p1"), pod_on("n2", "p2")],
            [node(f"n{number}", cpu="200m") for number in (1, 2, 3, 4)],
            [U, U, UU, UU],
            "0/4 nodes are available: 2 Insufficient cpu, "
            "2 Preemption is not helpful for scheduling.",
            id="untried-nodes-count",
        ),
    ],
)
def test_no_candidate(
    priority: int,
    requests: Mapping[str, str | int] | None,
    bound: list[Pod],
    nodes: list[Node],
    statuses: list[Status],
    message: str,
) -> None:
    """Without a candidate the nomination goes and the message says why."""
    pod = make_pod("p", priority=priority, requests=requests)
    result = post_filter(pod, make_snapshot(nodes, bound), statuses=statuses)
    assert (unschedulable(f"preemption: {message}"), "", ()) == (
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
            [budget(0, "kept"), budget(2**31 - 1, "free")],
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
    snapshot = make_snapshot([node(name, **ONE_POD) for name in names], bound, budgets)
    result = post_filter(make_pod("p", priority=priority), snapshot)
    assert (SUCCESS, expected) == (result.status, result.nominated_node_name)
    report = report_of(result)
    chosen = report.chosen_candidate
    assert chosen is not None
    assert (chosen.victims, expected) == (result.victims, report.chosen)


def test_ineligible_pod_keeps_its_nomination() -> None:
    """A pod that may not preempt gets a reason, and its nomination is left alone."""
    snapshot = make_snapshot([node("n1", **ONE_POD)], [pod_on("n1", "p1")])
    pod = make_pod("p", priority=HIGH, spec={"preemptionPolicy": "Never", "priority": HIGH})
    result = post_filter(pod, snapshot)
    reason = "not eligible due to preemptionPolicy=Never."
    assert (unschedulable(f"preemption: {reason}"), None) == (
        result.status,
        result.nominated_node_name,
    )
    assert PreemptionReport(eligible=False, reason=reason) == result.details


def test_no_nodes() -> None:
    """A cluster without nodes is an error, should it ever get here."""
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


# Whom it finds: upstream's dry runs.


@pytest.mark.parametrize(
    ("requests", "bound", "budgets", "expected"),
    [
        pytest.param(
            LARGE,
            [pod_on("n1", "p1", MIDDLE, LARGE), pod_on("n2", "p2", MIDDLE, LARGE)],
            [],
            {"n1": ({"p1"}, 0), "n2": ({"p2"}, 0)},
            id="both-nodes",
        ),
        pytest.param(
            LARGE,
            [pod_on("n1", "p1", HIGH, LARGE), pod_on("n2", "p2", HUGE, LARGE)],
            [],
            {},
            id="nobody-of-lower-priority",
        ),
        pytest.param(
            LARGE,
            [
                pod_on("n1", "small", LOW, SMALL),
                pod_on("n1", "large", MIDDLE, LARGE),
                pod_on("n2", "p2", MIDDLE, LARGE),
            ],
            [],
            {"n1": ({"large"}, 0), "n2": ({"p2"}, 0)},
            id="a-less-important-small-pod-stays",
        ),
        pytest.param(
            LARGE,
            [
                pod_on("n1", "a", MIDDLE, SMALL),
                pod_on("n1", "b", LOW, SMALL),
                pod_on("n1", "c", MIDDLE, MEDIUM, second=1),
                pod_on("n1", "d", HIGH, SMALL),
                pod_on("n2", "p2", HIGH, LARGE),
            ],
            [],
            {"n1": ({"b", "c"}, 0)},
            id="mixed-priorities",
        ),
        pytest.param(
            LARGE,
            [
                pod_on("n1", "young", LOW, SMALL, second=5),
                pod_on("n1", "old", LOW, SMALL, second=4),
                pod_on("n1", "c", MIDDLE, MEDIUM, second=3),
                pod_on("n1", "d", HIGH, SMALL, second=2),
                pod_on("n2", "p2", HIGH, LARGE, second=1),
            ],
            [],
            {"n1": ({"young", "c"}, 0)},
            id="the-younger-of-equal-priority-goes",
        ),
        pytest.param(
            HALF,
            [pod_on("n1", name, MIDDLE, MEDIUM, labels={"app": "foo"}) for name in ("a", "b")],
            [budget(1)],
            {"n1": ({"a", "b"}, 1)},
            id="one-violation",
        ),
        pytest.param(
            HALF,
            [pod_on("n1", name, MIDDLE, MEDIUM, labels={"app": "foo"}) for name in ("a", "b")],
            [budget(1, disrupted=["other"])],
            {"n1": ({"a", "b"}, 1)},
            id="somebody-else-is-disrupted",
        ),
        pytest.param(
            HALF,
            [pod_on("n1", name, MIDDLE, MEDIUM, labels={"app": "foo"}) for name in ("a", "b")],
            [budget(1, disrupted=["b"])],
            {"n1": ({"a", "b"}, 0)},
            id="one-is-disrupted-already",
        ),
        pytest.param(
            HALF,
            [pod_on("n1", name, MIDDLE, SMALL, labels={"app": "foo"}) for name in ("a", "b", "c")],
            [budget(1, disrupted=["c"])],
            {"n1": ({"a", "b", "c"}, 1)},
            id="one-of-three-is-disrupted",
        ),
        pytest.param(
            MEDIUM,
            [
                pod_on("n1", "important", MIDDLE, MEDIUM),
                pod_on("n1", "protected", LOW, MEDIUM, labels={"app": "foo"}),
            ],
            [budget(0)],
            {"n1": ({"important"}, 0)},
            id="a-protected-pod-comes-back-first",
        ),
    ],
)
def test_victims_by_resources(
    requests: Mapping[str, str | int],
    bound: list[Pod],
    budgets: list[PodDisruptionBudget],
    expected: Found,
) -> None:
    """The least important pods go, protected ones last."""
    names = sorted({pod.spec.node_name for pod in bound})
    snapshot = make_snapshot([node(name) for name in names], bound, budgets)
    result = post_filter(make_pod("p", priority=HIGH, requests=requests), snapshot)
    assert expected == found(result)


def test_refusing_filter() -> None:
    """A filter that refuses whatever pods are there leaves no candidate."""
    bound = [pod_on("n1", "p1", MIDDLE), pod_on("n2", "p2", MIDDLE)]
    snapshot = make_snapshot([node("n1"), node("n2")], bound)
    result = post_filter(make_pod("p", priority=HIGH), snapshot, plugins=[Refuse])
    assert {} == found(result)
    expected = dict.fromkeys(["n1", "n2"], unschedulable("refused").by("Refuse"))
    assert expected == report_of(result).node_statuses


def test_victims_by_anti_affinity() -> None:
    """Only the pod whose anti-affinity keeps the preemptor out goes."""
    terms = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": HAS_FOO, "topologyKey": "hostname"}
        ]
    }
    bound = [
        pod_on("n1", "hostile", LOW, SMALL, labels={"foo": ""}, pod_anti_affinity=terms),
        pod_on("n1", "b", MIDDLE, SMALL),
        pod_on("n1", "c", HIGH, SMALL),
        pod_on("n2", "d", HIGH, SMALL),
    ]
    pod = make_pod("p", priority=HIGH, requests=SMALL, labels={"foo": ""})
    snapshot = make_snapshot([node("n1"), node("n2")], bound)
    result = post_filter(pod, snapshot, plugins=[NodeResourcesFit, InterPodAffinity])
    assert {"n1": ({"hostile"}, 0)} == found(result)


def test_victims_by_topology_spread() -> None:
    """Pods go where that evens out the pods per zone and per host."""
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": HAS_FOO,
        }
        for key in ("zone", "hostname")
    ]
    foo: dict[str, str] = {"foo": ""}
    bound = [
        pod_on("a", "a1", MIDDLE, labels=foo),
        pod_on("a", "a2", LOW, labels=foo),
        pod_on("b", "b1", LOW, labels=foo),
        pod_on("x", "x1", HIGH, labels=foo),
        pod_on("x", "x2", HIGH, labels=foo),
    ]
    nodes = [node("a", "zone1"), node("b", "zone1"), node("x", "zone2")]
    pod = make_pod("p", priority=HIGH, labels=foo, topology_spread_constraints=constraints)
    result = post_filter(pod, make_snapshot(nodes, bound), plugins=[PodTopologySpread])
    assert {"a": ({"a2"}, 0), "b": ({"b1"}, 0)} == found(result)


# Which node it chooses.


@pytest.mark.parametrize(
    ("bound", "best", "decided_by"),
    [
        pytest.param(
            [pod_on("n2", "p2", MIDDLE, LARGE), pod_on("n1", "p1", MIDDLE, LARGE)],
            ("n1", "n2"),
            Criterion.NAME,
            id="equal",
        ),
        pytest.param(
            [
                pod_on("n1", "a", MIDDLE, MEDIUM),
                pod_on("n1", "b", MIDDLE, LARGE),
                pod_on("n2", "c", MIDDLE, MEDIUM),
                pod_on("n2", "d", LOW, MEDIUM),
                pod_on("n3", "e", LOW, MEDIUM),
                pod_on("n3", "f", LOW, MEDIUM),
            ],
            ("n3",),
            Criterion.HIGHEST_PRIORITY,
            id="lowest-highest-priority",
        ),
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
    ("args", "tried"),
    [
        pytest.param(DefaultPreemptionArgs(), 5, id="defaults-try-small-clusters-whole"),
        pytest.param(
            DefaultPreemptionArgs(
                min_candidate_nodes_percentage=40, min_candidate_nodes_absolute=1
            ),
            2,
            id="two-of-five",
        ),
        pytest.param(
            DefaultPreemptionArgs(
                min_candidate_nodes_percentage=40, min_candidate_nodes_absolute=1
            ).trying_all_nodes(),
            5,
            id="all",
        ),
    ],
)
def test_how_many_nodes_are_tried(args: DefaultPreemptionArgs, tried: int) -> None:
    """The arguments say how many candidates are enough."""
    names = [f"n{number}" for number in range(5)]
    bound = [pod_on(name, f"p-{name}", MIDDLE, LARGE) for name in names]
    snapshot = make_snapshot([node(name) for name in names], bound)
    result = post_filter(make_pod("p", priority=HIGH, requests=LARGE), snapshot, args=args)
    assert tried == len(found(result))


def test_goes_on_until_a_candidate_violates_nothing() -> None:
    """Enough candidates are not enough while all of them violate a budget."""
    protected = {"n1", "n2", "n5"}
    names = [f"n{number}" for number in range(1, 6)]
    bound = [
        pod_on(n, f"p-{n}", MIDDLE, LARGE, labels={"app": "foo" if n in protected else "bar"})
        for n in names
    ]
    snapshot = make_snapshot([node(name) for name in names], bound, [budget(0)])
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=40, min_candidate_nodes_absolute=2)
    for _ in range(20):
        pod = make_pod("p", priority=HIGH, requests=LARGE)
        assert post_filter(pod, snapshot, args=args).nominated_node_name in {"n3", "n4"}


# Pod groups.


@pytest.mark.parametrize(
    ("places", "preempts", "group_name", "reason"),
    [
        pytest.param(False, False, "placed", "", id="gates-off"),
        pytest.param(
            True,
            False,
            "placed",
            "not eligible due to placement-based pod group scheduling limitation",
            id="placed-group",
        ),
        pytest.param(
            True,
            True,
            "placed",
            "not eligible due to placement-based pod group scheduling limitation",
            id="placed-group-comes-first",
        ),
        pytest.param(True, False, "plain", "", id="group-without-constraints"),
        pytest.param(
            True,
            True,
            "plain",
            "not eligible due to workload aware preemption enabled",
            id="group-preempts-as-a-whole",
        ),
        pytest.param(
            False,
            True,
            "missing",
            "not eligible due to workload aware preemption enabled",
            id="group-is-not-looked-up",
        ),
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
    groups: list[KubernetesObject] = [group("plain"), group("placed", is_placed=True)]
    snapshot = make_snapshot([node("n1", **ONE_POD)], [pod_on("n1", "p1")], groups)
    spec = {"schedulingGroup": {"podGroupName": group_name}}
    result = post_filter(make_pod("p", priority=HIGH, spec=spec), snapshot, gates=gates)
    expected = unschedulable(f"preemption: {reason}") if reason else SUCCESS
    assert (expected, None if reason else "n1") == (result.status, result.nominated_node_name)


# The gate before the queue.


class RunningEvictions:
    """Says of one preemptor that its victims are being evicted."""

    def __init__(self, uid: str) -> None:
        self.uid = uid

    def is_running(self, preemptor_uid: str) -> bool:
        """Compare."""
        return preemptor_uid == self.uid


class EvictingHandle(FakeHandle):
    """A handle that evicts."""

    def __init__(self, uid: str, gates: Mapping[str, bool]) -> None:
        super().__init__(gates)
        self.evictions = RunningEvictions(uid)


WAITING = unresolvable("waiting for the preemption for this pod to be finished")
GROUP_WAITING = unresolvable("waiting for the preemption for this pod group to be finished")
GROUP_GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}


@pytest.mark.parametrize(
    ("gates", "running", "group_name", "expected"),
    [
        pytest.param({}, "p", None, WAITING, id="same-pod"),
        pytest.param({}, "other", None, SUCCESS, id="another-pod"),
        pytest.param({"SchedulerAsyncPreemption": False}, "p", None, SUCCESS, id="gate-off"),
        pytest.param({}, "uid-of-g", "g", SUCCESS, id="groups-do-not-preempt"),
        pytest.param(GROUP_GATES, "uid-of-g", "g", GROUP_WAITING, id="same-group"),
        pytest.param(GROUP_GATES, "uid-of-other", "g", SUCCESS, id="another-group"),
        pytest.param(GROUP_GATES, "p", "g", SUCCESS, id="the-group-counts-not-the-pod"),
        pytest.param(GROUP_GATES, "p", "missing", SUCCESS, id="no-group"),
        pytest.param(GROUP_GATES, "p", None, WAITING, id="pod-without-group"),
    ],
)
def test_pre_enqueue(
    gates: Mapping[str, bool], running: str, group_name: str | None, expected: Status
) -> None:
    """The preemptor waits while its victims are being evicted."""
    plugin = DefaultPreemption(DefaultPreemptionArgs(), EvictingHandle(running, gates))
    spec = {"schedulingGroup": {"podGroupName": group_name}} if group_name else {}
    snapshot = make_snapshot(objects=[group("g")])
    assert expected == plugin.pre_enqueue(make_pod_info("p", uid="p", spec=spec), snapshot)


def test_pre_enqueue_where_nobody_evicts() -> None:
    """A handle that does not evict holds nobody back."""
    plugin = DefaultPreemption(DefaultPreemptionArgs(), FakeHandle())
    assert plugin.pre_enqueue(make_pod_info("p"), make_snapshot()).is_success


def test_events() -> None:
    """A deleted pod lets the gate be looked at again, but is no reason to try on its own."""
    (registration,) = DefaultPreemption(DefaultPreemptionArgs(), FakeHandle()).events_to_register()
    assert ClusterEvent(POD, Action.DELETE) == registration.event
    assert registration.hint is not None
    assert not registration.hint(make_pod("p"), make_pod("gone"), None)
    without = FakeHandle({"SchedulerAsyncPreemption": False})
    assert not DefaultPreemption(DefaultPreemptionArgs(), without).events_to_register()


# Arguments.

BOTH_ZERO = [
    "args.minCandidateNodesPercentage: Invalid value: 0: "
    "cannot be zero at the same time as minCandidateNodesAbsolute",
    "args.minCandidateNodesAbsolute: Invalid value: 0: "
    "cannot be zero at the same time as minCandidateNodesPercentage",
]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(None, DefaultPreemptionArgs(), id="defaults"),
        pytest.param({}, DefaultPreemptionArgs(), id="empty"),
        pytest.param(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "DefaultPreemptionArgs",
                "minCandidateNodesPercentage": 0,
            },
            DefaultPreemptionArgs(min_candidate_nodes_percentage=0),
            id="absolute-alone",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 0},
            DefaultPreemptionArgs(
                min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=0
            ),
            id="percentage-alone",
        ),
    ],
)
def test_args(raw: dict[str, object] | None, expected: DefaultPreemptionArgs) -> None:
    """Absent arguments have defaults."""
    assert expected == DefaultPreemption.decode_args(raw, FakeHandle(), "args")


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        pytest.param(
            {"minCandidateNodesPercentage": -1, "minCandidateNodesAbsolute": -1},
            [
                "args.minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
                "args.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
            id="negative",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 101},
            ["args.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
            id="more-than-all",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            BOTH_ZERO,
            id="both-zero",
        ),
    ],
)
def test_faulty_args(raw: dict[str, object], faults: list[str]) -> None:
    """All faults are found, with their fields."""
    with pytest.raises(ConfigError) as raised:
        DefaultPreemption.decode_args(raw, FakeHandle(), "args")
    assert faults == [str(fault) for fault in raised.value.faults]


# Victims are few: a definition that does not say how they are found.


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from([LOW, MIDDLE]), st.integers(1, 3)), min_size=1, max_size=6),
    st.sets(st.integers(0, 5)),
)
def test_no_victim_could_stay(
    wanted: int, pods: list[tuple[int, int]], protected: set[int]
) -> None:
    """After the victims are gone the pod fits, and with any one of them back it does not."""
    cpus = max(5, sum(cpu for _, cpu in pods))
    bound = [
        pod_on("n1", f"p{at}", priority, {"cpu": cpu}, at, labels={"app": str(at in protected)})
        for at, (priority, cpu) in enumerate(pods)
    ]
    snapshot = make_snapshot([node("n1", cpu=cpus, pods=99)], bound, [budget(0, "True")])
    result = post_filter(make_pod("p", priority=HIGH, requests={"cpu": wanted}), snapshot)
    free = cpus - sum(cpu for _, cpu in pods)
    sizes = np.array([pods[int(victim.name[1:])][1] for victim in result.victims])
    if wanted <= free:
        assert failure('preemption: expected at least one victim pod on node "n1"') == result.status
    else:
        assert free + sizes.sum() >= wanted
        assert (free + sizes.sum() - sizes < wanted).all()
