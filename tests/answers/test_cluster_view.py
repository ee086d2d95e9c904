from __future__ import annotations

from typing import Any

from kubesched import Cluster
from kubesched.answers.cluster_view import ClusterView, PendingGroup
from kubesched.simulator.playback import WorkloadOnNodes
from tests.cli.cluster import Json, node, owned, pod


def _node(name: str, zone: str, **status: Any) -> Json:
    labels = {"topology.kubernetes.io/zone": zone, "karpenter.sh/nodepool": f"pool-{zone}"}
    found = node(name, labels=labels)
    found["status"] |= status
    return found


def _view(*objects: Json) -> ClusterView:
    return Cluster.from_objects(objects).view()


def _causes(view: ClusterView) -> list[tuple[int, bool, tuple[str, ...]]]:
    return [(group.count, group.fits, group.reasons) for group in view.pending]


def test_nodes_are_sorted_by_zone_and_name() -> None:
    """Neighbours on the map are of one zone."""
    view = _view(_node("n3", "b"), _node("n2", "a"), _node("n1", "b"))
    assert ("n2", "n1", "n3") == view.nodes.names
    assert ("a", "b") == view.zones
    assert (0, 1, 1) == view.nodes.zones
    assert ("pool-a", "pool-b") == view.pools
    assert "karpenter.sh/nodepool" == view.pool_label


def test_amounts_are_per_resource_and_node() -> None:
    """They are the sums of the requests of the node's pods; pods are a resource of their own."""
    view = _view(_node("n1", "a"), _node("n2", "a"), pod("p", "1500m", node_name="n2"))
    assert ("cpu", "memory", "pods") == view.resources
    assert ((4000, 4000), (8 << 30, 8 << 30), (110, 110)) == view.nodes.allocatable
    assert ((0, 1500), (0, 1 << 30), (0, 1)) == view.nodes.requested


def test_cordoned_and_failed_nodes_are_marked() -> None:
    """A node without a Ready condition counts as ready."""
    failed = [{"type": "Ready", "status": "Unknown"}]
    cordoned = _node("n1", "a")
    cordoned["spec"]["unschedulable"] = True
    view = _view(cordoned, _node("n2", "a", conditions=failed))
    assert (True, False) == view.nodes.cordoned
    assert (True, False) == view.nodes.ready


def test_pods_are_counted_by_workload() -> None:
    """Pods of one controller with equal requests are one entry."""
    pods = [
        owned(pod(f"db-{number}", "1", node_name="n1", priority=5), "db", "StatefulSet")
        for number in range(2)
    ]
    view = _view(_node("n1", "a"), *pods, pod("lone", "500m", node_name="n1"))
    assert (
        WorkloadOnNodes("StatefulSet", "shop", "db", 5, "", {"cpu": 1000, "memory": 1 << 30}),
        WorkloadOnNodes("Pod", "shop", "lone", 0, "", {"cpu": 500, "memory": 1 << 30}),
    ) == view.workloads
    assert ((0, 2, 1, 1),) == view.nodes.pods


def test_pending_pods_are_grouped_by_cause() -> None:
    """The largest group first; pods that fit have no reasons."""
    view = _view(
        _node("n1", "a"),
        pod("big-1", "9"),
        pod("big-2", "8"),
        pod("fits", "1"),
        pod("gated", "1", schedulingGates=[{"name": "later"}]),
        pod("other", "1", schedulerName="another"),
    )
    assert 5 == view.pending_pods
    assert [
        (2, False, ("Insufficient cpu",)),
        (1, True, ()),
        (1, False, ("waiting for scheduling gates: [later]",)),
        (1, False, ("for the scheduler another",)),
    ] == _causes(view)


def test_a_group_has_the_report_on_its_firstpod() -> None:
    """It includes the changes that would help."""
    (group,) = _view(_node("n1", "a"), pod("big-1", "9"), pod("big-2", "9")).pending
    assert group.why is not None
    sentence = "Pod shop/big-1 does not fit the only node, which has too little cpu."
    assert sentence == group.why.sentence
    assert "lower the cpu request of container main from 9 to 4" == group.why.changes[0].sentence
    assert ("shop/big-1", "shop/big-2") == group.pods
    assert ("Pod shop/big-1", "Pod shop/big-2") == group.workloads


def test_the_report_is_on_a_pod_that_evicts_nothing() -> None:
    """One that may evict others is not stuck; the other needs a change."""
    running = pod("runs", "3", node_name="n1", priority=0)
    urgent, stuck = pod("urgent", "3", priority=9), pod("stuck", "3", priority=0)
    (group,) = _view(_node("n1", "a"), running, urgent, stuck).pending
    assert group.why is not None
    assert ("shop/stuck", 2) == (group.why.pod, group.count)
    assert group.why.changes


def test_small_groups_have_no_report() -> None:
    """Finding changes takes long, so only the largest groups have a report."""
    pods = [pod(f"p-{n}", "1", nodeSelector={"no": str(n)}, priority=n) for n in range(3)]
    gates = [pod(f"g-{n}", "1", schedulingGates=[{"name": f"g{n}"}]) for n in range(12)]
    view = _view(_node("n1", "a"), *pods, *gates)
    answered = [group.why is not None for group in view.pending]
    assert [True] * 10 + [False] * 3 == answered
    assert isinstance(view.pending[0], PendingGroup)
    assert 3 == view.pending[0].count
