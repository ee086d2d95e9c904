"""Explanations agree with the decisions of untraced cycles, for random clusters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.explain.explain import explain_decision, explain_gate
from kubesched.explain.report import PodExplanation, PodOutcome
from kubesched.framework.status import unresolvable
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.scheduler.toys import rejected_nodes
from tests.simulator.clusters import cluster_of

TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def explain(cluster: ClusterState, pod: Pod, *, all_filters: bool = False) -> PodExplanation:
    """Explain the decision for the pod."""
    info = PodInfo(pod)
    profile = cluster.profile_of(info)
    assert profile is not None
    trace = Trace(all_filters=all_filters)
    decision = cluster.schedule_one(info, trace)
    return explain_decision(profile, cluster.snapshot(), trace, decision)


# What the property is about: clusters where every kind of rejection happens.

nodes_of_clusters = st.lists(
    st.builds(
        lambda cpu, disk, zone, tainted, cordoned: {
            "allocatable": {"cpu": cpu},
            "labels": {"disk": disk, **({"zone": zone} if zone else {})},
            "taints": [TAINT] if tainted else [],
            "unschedulable": cordoned,
        },
        st.sampled_from(["1", "2", "4"]),
        st.sampled_from(["ssd", "hdd"]),
        st.sampled_from(["a", "b", ""]),
        st.booleans(),
        st.integers(0, 9).map(lambda number: number == 0),
    ),
    min_size=1,
    max_size=6,
)
bound_pods = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(["500m", "1", "2"]),
        st.integers(0, 2),
        st.sampled_from(["web", "db"]),
        st.booleans(),
    ),
    max_size=8,
)
incoming_pods = st.builds(
    lambda cpu, priority, selector, tolerates, spread, ports: make_pod(
        "incoming",
        priority=priority,
        labels={"app": "web"},
        requests={"cpu": cpu},
        node_selector=selector,
        tolerations=[{"operator": "Exists"}] if tolerates else [],
        host_ports=ports,
        topology_spread_constraints=[
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
        if spread
        else [],
    ),
    st.sampled_from(["500m", "1", "3", "9"]),
    st.sampled_from([0, 5]),
    st.sampled_from([None, {"disk": "ssd"}]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(), (80,)]),
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod], Pod]:
    """Draw nodes, pods on and nominated to them, and a pod to place."""
    nodes = [make_node(f"node-{at}", **fields) for at, fields in enumerate(draw(nodes_of_clusters))]
    pods = []
    for at, (row, cpu, priority, app, is_nominated) in enumerate(draw(bound_pods)):
        where = f"node-{row % len(nodes)}"
        pods.append(
            make_pod(
                f"pod-{at}",
                labels={"app": app},
                priority=priority + 5 * is_nominated,
                requests={"cpu": cpu},
                host_ports=(80,) if at % 4 == 0 else (),
                start_time=None if is_nominated else f"2026-01-01T00:00:{at:02}Z",
                nominated_node_name=where if is_nominated else "",
                node_name="" if is_nominated else where,
            )
        )
    return nodes, pods, draw(incoming_pods)


def assert_rejections_agree(report: PodExplanation, decision: Decision) -> None:
    """Assert that each node's first rejection is that of the untraced cycle."""
    assert isinstance(decision, Rejected)
    expected = {
        name: (status.plugin, status.code.label, tuple(sorted(status.all_reasons)))
        for name, status in rejected_nodes(decision.diagnosis).items()
    }
    firsts = {v.node: v.rejections[0] for v in report.nodes if v.tried and v.rejections}
    assert expected == {name: (a.plugin, a.code, a.reasons) for name, a in firsts.items()}
    assert decision.message == report.message
    chosen = report.preemption.chosen if report.preemption is not None else ""
    assert (decision.nominated_node_name or "") == chosen


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(clusters())
def test_agrees_with_the_untraced_cycle(drawn: tuple[list[Node], list[Pod], Pod]) -> None:
    """Outcome, feasible nodes, first rejections, message and preemption equal the decision's."""
    nodes, pods, pod = drawn
    decision = cluster_of(*nodes, *pods).schedule_one(PodInfo(pod))
    report = explain(cluster_of(*nodes, *pods), pod)
    feasible = [verdict.node for verdict in report.nodes if verdict.feasible]
    assert report.feasible_count == len(feasible)
    if isinstance(decision, Placed):
        assert report.outcome is PodOutcome.SCHEDULABLE
        assert decision.feasible == len(feasible)
        assert decision.node_name == report.node
        assert decision.node_name in (report.ties or [*feasible, *report.ties])
    else:
        assert report.outcome is PodOutcome.UNSCHEDULABLE
        assert not feasible
        assert_rejections_agree(report, decision)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(clusters())
def test_asking_all_filters_changes_nothing_else(drawn: tuple[list[Node], list[Pod], Pod]) -> None:
    """With all filters a node's first rejection and everything else stay; more rejections come."""
    nodes, pods, pod = drawn
    usual = explain(cluster_of(*nodes, *pods), pod)
    every = explain(cluster_of(*nodes, *pods), pod, all_filters=True)
    assert usual.node == every.node
    assert usual.scores == every.scores
    assert usual.message == every.message
    for one, other in zip(usual.nodes, every.nodes, strict=True):
        assert one.feasible == other.feasible
        assert one.rejections == other.rejections[: len(one.rejections)]
        plugins = [answer.plugin for answer in other.rejections]
        assert len(plugins) == len(set(plugins))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(clusters())
def test_scores_add_up(drawn: tuple[list[Node], list[Pod], Pod]) -> None:
    """Totals are the sums of the weighted scores, ranks follow them, the node is of rank 1."""
    nodes, pods, pod = drawn
    report = explain(cluster_of(*nodes, *pods), pod)
    totals = [node.total for node in report.scores]
    assert totals == sorted(totals, reverse=True)
    for node in report.scores:
        assert node.total == sum(score.weighted for score in node.scores)
        assert node.rank == 1 + sum(total > node.total for total in totals)
        for score in node.scores:
            assert score.weighted == score.normalized * score.weight
    if report.scores:
        assert report.node in [node.node for node in report.scores if node.rank == 1]


# Single cases.


def test_rejections_have_details() -> None:
    """Details have the node's own amounts and taints."""
    nodes = [make_node("a", allocatable={"cpu": "1"}), make_node("b", taints=[TAINT])]
    report = explain(cluster_of(*nodes), make_pod(requests={"cpu": "2"}))
    details = {v.node: v.rejections[0].detail for v in report.nodes}
    assert details == {"a": "cpu: requested 2, free 1 of 1", "b": "taint dedicated=gpu:NoSchedule"}


def test_a_plugin_rejects_a_node_with_nominated_pods_once() -> None:
    """For what it rejects without them, even if there is more with them."""
    promised = make_pod("promised", priority=9, requests={"cpu": "3"}, nominated_node_name="a")
    cluster = cluster_of(make_node("a", allocatable={"memory": "8Gi"}), promised)
    pod = make_pod(requests={"cpu": "2", "memory": "9Gi"})
    report = explain(cluster, pod, all_filters=True)
    assert ["Insufficient memory"] == [one.message for one in report.nodes[0].rejections]


def test_nominated_pods_are_named_where_they_decide() -> None:
    """For a node that is full only with nominated pods, the detail names them."""
    promised = make_pod("promised", priority=9, requests={"cpu": "3"}, nominated_node_name="a")
    report = explain(cluster_of(make_node("a"), promised), make_pod(requests={"cpu": "2"}))
    (verdict,) = report.nodes
    assert verdict.rejections[0].plugin == "NodeResourcesFit"
    assert verdict.rejections[0].detail == (
        "cpu: requested 2, free 1 of 4 with the pods nominated to the node (default/promised)"
    )


def test_own_nomination_is_tried_first() -> None:
    """If the nominated node fits, no other is tried."""
    pod = make_pod(nominated_node_name="b")
    report = explain(cluster_of(make_node("a"), make_node("b")), pod)
    assert report.nominated_hit
    assert ("b", "b") == (report.node, report.nominated_node)
    assert [(v.node, v.tried, v.feasible) for v in report.nodes] == [
        ("a", False, False),
        ("b", True, True),
    ]


def test_pod_rejected_as_a_whole() -> None:
    """If PreFilter rejects the pod, no node is tried and all have that answer."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    report = explain(cluster_of(make_node("a"), make_node("b")), make_pod(volumes=volumes))
    assert report.pre_filter is not None
    assert report.pre_filter.reasons == ('persistentvolumeclaim "missing" not found',)
    assert [(v.tried, v.rejections[0].reasons) for v in report.nodes] == [
        (False, ('persistentvolumeclaim "missing" not found',)),
        (False, ('persistentvolumeclaim "missing" not found',)),
    ]


def test_no_nodes() -> None:
    """An empty cluster has upstream's message and nothing else."""
    report = explain(cluster_of(), make_pod())
    assert report.outcome is PodOutcome.UNSCHEDULABLE
    assert report.message == "no nodes available to schedule pods"
    assert report.pre_filter is None


def test_events_are_those_of_the_rejecting_plugins() -> None:
    """Only plugins that rejected the pod are listed, with their events."""
    report = explain(cluster_of(make_node("a", taints=[TAINT])), make_pod())
    (entry,) = report.retry_after
    assert entry.plugin == "TaintToleration"
    assert entry.events == ("Node added", "Node taints updated", "Pod tolerations updated")


def test_gate() -> None:
    """A gated pod has the PreEnqueue plugin's answer and no nodes."""
    cluster = cluster_of(make_node("a"))
    info = PodInfo(make_pod(scheduling_gates=["wait"]))
    profile = cluster.profile_of(info)
    assert profile is not None
    report = explain_gate(profile, info, unresolvable("waiting").by("SchedulingGates"), 1)
    assert report.outcome is PodOutcome.GATED
    assert report.held_by is not None
    assert report.held_by.plugin == "SchedulingGates"
    assert [entry.plugin for entry in report.retry_after] == ["SchedulingGates"]


def test_narrowed() -> None:
    """A narrowed report keeps the other parts."""
    report = explain(cluster_of(make_node("a"), make_node("b")), make_pod())
    narrow = report.narrowed(frozenset({"a"}))
    assert [verdict.node for verdict in narrow.nodes] == ["a"]
    assert [score.node for score in narrow.scores] == ["a"]
    assert narrow.feasible_count == 2
