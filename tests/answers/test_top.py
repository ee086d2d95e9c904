"""Requests are added up per node, pool, zone, namespace, priority and owner."""

from __future__ import annotations

from typing import Final

import pytest

from kubesched.answers.room import room_for_shape
from kubesched.answers.top import TopGroup, TopReport, pool_label_of, top
from kubesched.simulator.cluster import ClusterState
from kubesched.testing.builders import make_node, make_pod
from tests.simulator.clusters import cluster_of

from .trials import owner_metadata

POOL: Final = "eks.amazonaws.com/nodegroup"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
GPU: Final = "nvidia.com/gpu"


def small() -> ClusterState:
    """Return three nodes, one with GPUs, four pods on them and two pending ones."""
    return cluster_of(
        make_node("a", labels={ZONE: "x", POOL: "small"}, allocatable={"cpu": "4"}),
        make_node("b", labels={ZONE: "y", POOL: "small"}, allocatable={"cpu": "4"}),
        make_node("c", labels={ZONE: "y"}, allocatable={"cpu": "8", GPU: 2}, unschedulable=True),
        make_pod("1", node_name="a", requests={"cpu": "1"}, namespace="shop", priority=7),
        make_pod("2", node_name="a", requests={"cpu": "2"}, namespace="shop"),
        make_pod("3", node_name="b", requests={"cpu": "500m"}, namespace="batch"),
        make_pod("4", node_name="c", requests={"cpu": "1", GPU: 1}, namespace="batch"),
        make_pod("5", requests={"cpu": "3"}, namespace="shop", priority=7),
        make_pod("6", requests={"memory": "1Gi", GPU: 4}, namespace="lab"),
    )


def numbers(report: TopReport, resource: str = "cpu") -> dict[str, tuple[int, int]]:
    """Return name -> (requested, allocatable), in the order of the rows."""
    uses = {row.name: row.use_of(resource) for row in report.rows}
    return {name: (use.requested, use.allocatable) for name, use in uses.items()}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (TopGroup.NODES, {"a": (3000, 4000), "b": (500, 4000), "c": (1000, 8000)}),
        (TopGroup.POOLS, {"small": (3500, 8000), "": (1000, 8000)}),
        (TopGroup.ZONES, {"x": (3000, 4000), "y": (1500, 12000)}),
        (TopGroup.NAMESPACES, {"shop": (3000, 16000), "batch": (1500, 16000), "lab": (0, 16000)}),
        (TopGroup.PRIORITIES, {"0": (3500, 16000), "7": (1000, 16000)}),
    ],
)
def test_allocatable_of_groups(group: TopGroup, expected: dict[str, tuple[int, int]]) -> None:
    """Groups of nodes have their own allocatable, groups of pods the cluster's."""
    assert numbers(top(small(), group, pool_label=POOL)) == expected


@pytest.mark.parametrize("group", TopGroup)
def test_rows_add_up_to_the_total(group: TopGroup) -> None:
    """No pod is counted twice, and none is left out."""
    report = top(small(), group, pool_label=POOL)
    for use in report.total.resources:
        found = [row.use_of(use.resource) for row in report.rows]
        assert sum(each.requested for each in found) == use.requested
        if group.is_of_nodes:
            assert sum(each.allocatable for each in found) == use.allocatable
    if not group.is_of_nodes:
        pending = [row.pending for row in report.rows if row.pending is not None]
        assert sum(each.pods for each in pending) == report.pending.pods == 2


def test_pending_pods_are_counted_separately() -> None:
    """They count on no node; their resources are listed even if no node has them."""
    report = top(small(), TopGroup.NODES)
    assert report.pending.pods == 2
    assert report.pending.requests == {"cpu": 3000, "memory": 1 << 30, GPU: 4}
    lab = next(row for row in top(small(), TopGroup.NAMESPACES).rows if row.name == "lab")
    assert lab.pending is not None
    assert (lab.nodes, lab.pending.pods, lab.pending.requests[GPU]) == (0, 1, 4)


def test_terminating_pods_are_not_pending() -> None:
    """A pod that is deleted before it is bound needs no node."""
    gone = make_pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert top(cluster_of(make_node("n"), gone), TopGroup.NODES).pending.pods == 0


def test_node_counts_of_groups() -> None:
    """A group of nodes counts its nodes, a group of pods the nodes of its pods."""
    zones = {row.name: (row.nodes, row.cordoned) for row in top(small(), TopGroup.ZONES).rows}
    assert zones == {"x": (1, 0), "y": (2, 1)}
    spaces = {row.name: row.nodes for row in top(small(), TopGroup.NAMESPACES).rows}
    assert spaces == {"shop": 1, "batch": 2, "lab": 0}
    total = top(small(), TopGroup.NAMESPACES).total
    assert (total.nodes, total.cordoned) == (3, 1)


@pytest.mark.parametrize(
    ("sort_by", "expected"),
    [
        ("cpu", ["a", "c", "b"]),
        (GPU, ["c", "a", "b"]),
        ("name", ["a", "b", "c"]),
        ("pods", ["a", "b", "c"]),
        ("room", ["c", "b", "a"]),
    ],
)
def test_order_of_rows(sort_by: str, expected: list[str]) -> None:
    """The largest share first, then the largest amount, then by name."""
    report = top(small(), TopGroup.NODES, sort_by=sort_by, room="cpu=1")
    assert [row.name for row in report.rows] == expected


def test_priorities_are_sorted_by_value() -> None:
    """A class is shown by name, other priorities as numbers; the highest is first."""
    cluster = cluster_of(
        make_node("n"),
        make_pod("a", node_name="n", priority=10, spec={"priorityClassName": "high"}),
        make_pod("b", node_name="n", priority=9),
        make_pod("c", node_name="n", priority=100),
    )
    rows = top(cluster, TopGroup.PRIORITIES, sort_by="name").rows
    assert [(row.name, row.priority) for row in rows] == [("100", 100), ("high", 10), ("9", 9)]


def test_equal_zone_names_in_two_regions() -> None:
    """They are two groups."""
    nodes = [
        make_node(f"n{at}", labels={ZONE: zone, REGION: region})
        for at, (zone, region) in enumerate([("1", "eu"), ("1", "us"), ("2", "us")])
    ]
    names = [row.name for row in top(cluster_of(*nodes), TopGroup.ZONES, sort_by="name").rows]
    assert names == ["eu/1", "us/1", "us/2"]


def test_the_room_of_a_zone_is_the_sum_of_its_nodes() -> None:
    """Room adds up like requests."""
    cluster = small()
    report = top(cluster, TopGroup.ZONES, room="cpu=1")
    assert {row.name: row.room for row in report.rows} == {"x": 1, "y": 10}
    assert report.total.room == 11
    assert report.room == room_for_shape(cluster.cache.nodes, {"cpu": 1000}, "cpu=1").room


# Pools.


def test_pools_are_found_by_label() -> None:
    """The first well-known label that any node has."""
    kinds = {"node.kubernetes.io/instance-type": "large"}
    assert pool_label_of(cluster_of(make_node("n")).cache.nodes) == ""
    assert pool_label_of(cluster_of(make_node("n", labels=kinds)).cache.nodes) == next(iter(kinds))
    both = [make_node("n", labels=kinds), make_node("m", labels={POOL: "p"})]
    assert pool_label_of(cluster_of(*both).cache.nodes) == POOL


# Owners.


def test_equal_owner_names_in_two_namespaces() -> None:
    """They are two owners."""
    pods = [
        make_pod(str(at), node_name="n", namespace=namespace, metadata=owner_metadata("Job", "j"))
        for at, namespace in enumerate(["a", "b", "a"])
    ]
    rows = top(cluster_of(make_node("n"), *pods), TopGroup.OWNERS).rows
    counts = {
        f"{row.kind} {row.namespace}/{row.name}": row.use_of("pods").requested for row in rows
    }
    assert counts == {"Job a/j": 2, "Job b/j": 1}
