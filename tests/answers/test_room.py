"""The room for more pods equals what placing them one after another finds."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.answers.room import StoppingReason, parse_pod_shape, room_for_pod, room_for_shape
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.decision import Placed
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.simulator.clusters import GATES, cluster_of, configuration_of

TAINT: Final = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}

remembering = partial(cluster_of, remembers=True)


# Shapes of amounts.


def test_a_shape_is_parsed() -> None:
    """CPU in millicores, everything else in whole units."""
    shape = parse_pod_shape("cpu=1500m, memory=2Gi,nvidia.com/gpu=1")
    assert shape == {"cpu": 1500, "memory": 2 << 30, "nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "it asks for nothing; write cpu=2,memory=4Gi"),
        ("cpu", "'cpu' is not a RESOURCE=AMOUNT; write cpu=2,memory=4Gi"),
        ("cpu=", "'cpu=' is not a RESOURCE=AMOUNT; write cpu=2,memory=4Gi"),
        ("cpu=two", "cpu: 'two' is not a quantity; write 2, 500m or 4Gi"),
        ("cpu=0", "cpu: 0 is not more than 0"),
        ("memory=-1Gi", "memory: -1Gi is not more than 0"),
        ("cpu=1,cpu=2", "cpu is given twice; write it once"),
        ("pods=3", "pods is what is counted; name what one pod requests"),
    ],
)
def test_errors_name_the_wrong_part_of_a_shape(text: str, error: str) -> None:
    """The message says what would be right."""
    with pytest.raises(ValueError, match=re.escape(error)):
        parse_pod_shape(text)


AMOUNTS: Final = st.fixed_dictionaries(
    {"cpu": st.integers(1, 9).map(str), "memory": st.integers(1, 9).map(lambda n: f"{n}Gi")}
)
NODES: Final = st.lists(
    st.tuples(AMOUNTS, st.integers(0, 4), st.sampled_from(["a", "b"])), min_size=1, max_size=4
).map(
    lambda made: [
        make_node(f"n{at}", labels={"zone": zone}, allocatable={**amounts, "pods": pods})
        for at, (amounts, pods, zone) in enumerate(made)
    ]
)


@st.composite
def occupied(draw: st.DrawFn) -> list[KubeObject]:
    """Return nodes with pods, some of which request more than the node has."""
    nodes = draw(NODES)
    pods = [
        make_pod(f"p{at}", node_name=draw(st.sampled_from(nodes)).metadata.name, requests=amounts)
        for at, amounts in enumerate(draw(st.lists(AMOUNTS, max_size=4)))
    ]
    return [*nodes, *pods]


@pytest.mark.slow
@settings(max_examples=60)
@given(occupied(), AMOUNTS)
def test_room_for_amounts_equals_room_for_a_pod_of_these_requests(
    objects: list[KubeObject], amounts: dict[str, str]
) -> None:
    """Where only amounts decide, division and placing agree on every node."""
    cluster = remembering(*objects)
    text = ",".join(f"{name}={amount}" for name, amount in amounts.items())
    divided = room_for_shape(cluster.cache.nodes, parse_pod_shape(text), text)
    placed = room_for_pod(cluster, make_pod(requests=amounts))
    assert divided.per_row.tolist() == placed.per_row.tolist()
    assert divided.room.total == placed.room.total == divided.per_row.sum()


# Pods.


PODS: Final = st.builds(
    make_pod,
    labels=st.just({"app": "web"}),
    requests=AMOUNTS,
    host_ports=st.sampled_from([[], [80]]),
    node_selector=st.sampled_from([{}, {"zone": "a"}]),
    topology_spread_constraints=st.sampled_from([[], [SPREAD]]),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(occupied(), PODS)
def test_room_equals_placing_pod_after_pod(objects: list[KubeObject], pod: Pod) -> None:
    """The twin remembers no answers and has a cluster of its own."""
    found = room_for_pod(remembering(*objects), pod)
    placed: list[KubeObject] = []
    while True:
        cluster = cluster_of(*objects, *placed)
        decision = cluster.schedule_one(PodInfo(pod))
        if not isinstance(decision, Placed):
            break
        placed.append(_bound(pod, f"copy-{len(placed)}", decision.node_name))
    if not pod.spec.topology_spread_constraints:
        on = [item.spec.node_name for item in placed if isinstance(item, Pod)]
        names = [item.metadata.name for item in objects if isinstance(item, Node)]
        assert found.per_row.tolist() == [on.count(name) for name in names]
    assert found.room.total == len(placed)


def _bound(pod: Pod, name: str, node_name: str) -> Pod:
    metadata = replace(pod.metadata, name=name, uid=name)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node_name))


def test_taints_and_cordons_reduce_the_room_for_a_pod() -> None:
    """They do not reduce the room for amounts."""
    cluster = remembering(
        make_node("free", allocatable={"cpu": "2", "pods": 9}),
        make_node("tainted", allocatable={"cpu": "3", "pods": 9}, taints=[TAINT]),
        make_node("cordoned", allocatable={"cpu": "4", "pods": 9}, unschedulable=True),
    )
    pod = make_pod(requests={"cpu": "1"})
    amounts = room_for_shape(cluster.cache.nodes, {"cpu": 1000}, "cpu=1")
    assert amounts.per_row.tolist() == [2, 3, 4]
    placed = room_for_pod(cluster, pod)
    assert placed.per_row.tolist() == [2, 0, 0]
    assert placed.room.stopped_by == (
        StoppingReason("Insufficient cpu", 1),
        StoppingReason("node(s) had untolerated taint(s)", 1),
        StoppingReason("node(s) were unschedulable", 1),
    )


def test_copies_are_not_gated_bound_or_preempting() -> None:
    """Copies are new pods without gates and node, and evict nothing."""
    low = make_pod("low", node_name="n", requests={"cpu": "1"}, priority=1)
    node = make_node("n", allocatable={"cpu": "3", "pods": 9})
    for pod in (
        make_pod("gated", requests={"cpu": "1"}, scheduling_gates=["example.com/wait"]),
        make_pod("bound", requests={"cpu": "1"}, node_name="n"),
        make_pod("high", requests={"cpu": "1"}, priority=9),
    ):
        there = [pod] if pod.spec.node_name else []
        found = room_for_pod(remembering(node, low, *there), pod)
        assert found.room.total == 2 - len(there)


def test_copies_leave_room_for_nominated_pods() -> None:
    """The scheduler leaves it, too."""
    nominated = make_pod("n", requests={"cpu": "2"}, priority=5, nominated_node_name="n")
    cluster = remembering(make_node("n", allocatable={"cpu": "3", "pods": 9}), nominated)
    assert room_for_pod(cluster, make_pod("p", requests={"cpu": "1"})).room.total == 1


def test_room_without_node_resources_fit_is_finite() -> None:
    """Kubelets count pods even if the configuration disables the plugin."""
    disabled = {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}
    endless = configuration_of(profiles=[{"plugins": disabled}])
    for pod in (make_pod(), make_pod(labels={"app": "web"}, topology_spread_constraints=[SPREAD])):
        cluster = ClusterState(in_tree_setup(GATES, endless))
        cluster.load([make_node("n", labels={"zone": "a"}, allocatable={"pods": 3})])
        assert room_for_pod(cluster, pod).room.total == 3


def test_the_cluster_does_not_change() -> None:
    """The copies are removed before the answer is returned."""
    node = make_node("n", allocatable={"cpu": "3", "pods": 9})
    cluster = remembering(node, make_pod("a", node_name="n", requests={"cpu": "1"}))
    pod = make_pod("b", requests={"cpu": "1"})
    assert [room_for_pod(cluster, pod).room.total for _ in range(2)] == [2, 2]
    assert cluster.cache.nodes.pod_counts.tolist() == [1]
    cluster.cache.check()


@pytest.mark.parametrize(
    ("pod", "error"),
    [
        (make_pod(spec={"schedulerName": "other"}), "it is for the scheduler other; name one"),
        (make_pod(spec={"resourceClaims": [{"name": "gpu"}]}), "it uses devices"),
    ],
)
def test_pods_that_cannot_be_copied(pod: Pod, error: str) -> None:
    """The message gives the reason."""
    with pytest.raises(ValueError, match=error):
        room_for_pod(remembering(make_node("n")), pod)
