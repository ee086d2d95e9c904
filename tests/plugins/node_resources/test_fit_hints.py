"""NodeResourcesFit: which events retry a pod that lacked resources."""

from __future__ import annotations

import pytest

from kubesched.api.core import Node, Pod
from kubesched.framework.cluster_event import DEVICE_CLASS, NODE, POD, Action, ClusterEvent
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.plugins.node_resources.fit import NodeResourcesFitArgs
from kubesched.testing.builders import Amounts, make_node, make_pod
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import hint_of
from tests.plugins.dynamic_resources.cluster import gpu_class
from tests.plugins.dynamic_resources.objects import device_class
from tests.plugins.node_resources.fits import DEVICES_OFF, GPU

IMPLICIT = "deviceclass.resource.kubernetes.io/"


def _hint(
    resource: str,
    pod: Pod,
    old: object | None,
    new: object | None,
    handle: FakeHandle | None = None,
) -> bool:
    plugin = NodeResourcesFit(NodeResourcesFitArgs(), handle or FakeHandle())
    return hint_of(plugin, resource)(pod, old, new)


A, B = device_class("a"), device_class("b")
A_WITH_GPU = device_class("a", extended_resource_name=GPU)


def test_events() -> None:
    """Deletions and scale-downs of pods, changes of nodes and of device classes."""
    expected = [
        ClusterEvent(POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
        ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        ClusterEvent(DEVICE_CLASS, Action.ADD | Action.UPDATE),
    ]
    for gates, count in (({}, 3), (DEVICES_OFF, 2)):
        registered = NodeResourcesFit(
            NodeResourcesFitArgs(), FakeHandle(gates)
        ).events_to_register()
        assert expected[:count] == [registration.event for registration in registered]


_TARGET = make_pod("target", requests={"cpu": 2, "memory": 0, GPU: 1})


def _on_node(**requests: int) -> Pod:
    return make_pod("a", node_name="n", requests=requests)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(_on_node(), None, True, id="deleted from a node"),
        pytest.param(make_pod(nominated_node_name="n"), None, True, id="deleted while nominated"),
        pytest.param(make_pod(), None, False, id="deleted while waiting"),
        pytest.param(
            make_pod("target", requests={"cpu": 4}), _TARGET, True, id="the target itself"
        ),
        pytest.param(
            make_pod(requests={"cpu": 4}),
            make_pod(requests={"cpu": 2}),
            False,
            id="another that waits",
        ),
        pytest.param(_on_node(cpu=4), _on_node(cpu=2), True, id="frees cpu"),
        pytest.param(_on_node(memory=4), _on_node(memory=2), False, id="frees nothing asked for"),
        pytest.param(_on_node(cpu=2), _on_node(cpu=4), False, id="grows"),
        pytest.param(_on_node(**{GPU: 1}), _on_node(), True, id="frees a device"),
        pytest.param(make_node(), make_node(), True, id="no pods"),
    ],
)
def test_after_pod_events(old: object, new: object | None, *, expected: bool) -> None:
    """The event must free a resource that the pod requests."""
    assert expected == _hint(POD, _TARGET, old, new)


def test_shrinking_is_seen_in_the_status() -> None:
    """A resize frees resources only once the status says so."""

    def bound(wanted: int, in_force: int) -> Pod:
        container = {"name": "c", "resources": {"requests": {"cpu": wanted}}}
        status = {"name": "c", "resources": {"requests": {"cpu": in_force}}}
        return make_pod(
            "a", node_name="n", containers=[container], status={"containerStatuses": [status]}
        )

    assert not _hint(POD, _TARGET, bound(4, 4), bound(2, 4))
    assert _hint(POD, _TARGET, bound(2, 4), bound(2, 2))


def _node(**amounts: int | str) -> Node:
    return make_node(allocatable={"pods": 10, "memory": 10, **amounts})


@pytest.mark.parametrize(
    ("asked", "old", "new", "expected"),
    [
        pytest.param({"cpu": 2}, None, _node(cpu=2), True, id="a node that fits comes"),
        pytest.param({"cpu": 2}, None, _node(cpu=1), False, id="a node that is too small comes"),
        pytest.param({}, None, _node(pods=0), False, id="a node that takes no pods comes"),
        pytest.param({"cpu": 2}, _node(cpu=1), _node(cpu=2), True, id="cpu grew"),
        pytest.param({"cpu": 2}, _node(cpu=3), _node(cpu=4), True, id="cpu grew further"),
        pytest.param({"cpu": 2}, _node(cpu=4), _node(cpu=3), False, id="cpu shrank"),
        pytest.param(
            {"cpu": 2}, _node(cpu=4), _node(cpu=4, memory=99), False, id="memory grew, unasked"
        ),
        pytest.param(
            {"memory": 0}, _node(), _node(memory=99), False, id="memory grew, asked for 0"
        ),
        pytest.param({}, _node(pods=3), _node(pods=4), True, id="more pods"),
        pytest.param({}, _node(pods=4), _node(pods=4, cpu=99), False, id="best effort"),
        pytest.param({"cpu": 2}, _node(cpu=4), None, False, id="the node went"),
        pytest.param({"cpu": 2}, None, make_pod(), True, id="no node"),
    ],
)
def test_after_node_events(
    asked: Amounts, old: object | None, new: object | None, *, expected: bool
) -> None:
    """The pod fits the empty node, and an amount that it requests has grown."""
    assert expected == _hint(NODE, make_pod(requests=asked), old, new)


@pytest.mark.parametrize(
    ("handle", "expected"),
    [
        pytest.param(FakeHandle(objects=[gpu_class()]), True, id="a class backs it"),
        pytest.param(FakeHandle(), False, id="no class"),
        pytest.param(FakeHandle(DEVICES_OFF, objects=[gpu_class()]), False, id="gate off"),
    ],
)
def test_nodes_may_have_devices(handle: FakeHandle, *, expected: bool) -> None:
    """A node that lacks the resource may have devices for it."""
    pod = make_pod(requests={GPU: 1})
    assert expected == _hint(NODE, pod, None, make_node(), handle)
    assert expected == _hint(NODE, pod, make_node(), make_node(), handle)


@pytest.mark.parametrize(
    ("asked", "old", "new", "expected"),
    [
        pytest.param({GPU: 1}, None, A_WITH_GPU, True, id="comes, explicit name"),
        pytest.param({GPU: 1}, None, A, False, id="comes without a name"),
        pytest.param({IMPLICIT + "a": 1}, None, A, True, id="comes, implicit name"),
        pytest.param({IMPLICIT + "a": 1}, None, B, False, id="comes, another's implicit name"),
        pytest.param({GPU: 0}, None, A_WITH_GPU, True, id="asked for, if none of it"),
        pytest.param({GPU: 1}, A, A_WITH_GPU, True, id="gets the name"),
        pytest.param({GPU: 1}, A_WITH_GPU, A_WITH_GPU, False, id="keeps the name"),
        pytest.param({GPU: 1}, A_WITH_GPU, A, False, id="loses the name"),
        pytest.param({IMPLICIT + "a": 1}, A, A_WITH_GPU, False, id="keeps the implicit name"),
        pytest.param({GPU: 1}, None, make_pod(), True, id="no class"),
    ],
)
def test_after_device_class_events(
    asked: Amounts, old: object | None, new: object, *, expected: bool
) -> None:
    """The class newly backs a resource that the pod requests."""
    assert expected == _hint(DEVICE_CLASS, make_pod(requests=asked), old, new)
