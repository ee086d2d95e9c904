"""NodeResourcesFit: which events retry a pod that lacked resources."""

from __future__ import annotations

import pytest

from kubesched.api.core import Node, Pod
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import DeviceClass, DeviceClassSpec
from kubesched.framework.cluster_event import DEVICE_CLASS, NODE, POD, Action, ClusterEvent
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.plugins.node_resources.fit import NodeResourcesFitArgs
from kubesched.testing.builders import Amounts, make_node, make_pod
from kubesched.testing.handle import FakeHandle

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
_DEVICES_OFF = {"DRAExtendedResource": False}


def _hint(
    resource: str,
    pod: Pod,
    old: object | None,
    new: object | None,
    handle: FakeHandle | None = None,
) -> bool:
    plugin = NodeResourcesFit(NodeResourcesFitArgs(), handle or FakeHandle())
    for registration in plugin.events_to_register():
        if registration.event.resource == resource:
            assert registration.hint is not None
            return registration.hint(pod, old, new)
    raise AssertionError(resource)


def _device_class(name: str, resource: str | None = None) -> DeviceClass:
    spec = DeviceClassSpec(extended_resource_name=resource)
    return DeviceClass(metadata=ObjectMeta(name=name), spec=spec)


def test_events() -> None:
    """Deletions and scale-downs of pods, changes of nodes and of device classes."""
    expected = [
        ClusterEvent(POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
        ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        ClusterEvent(DEVICE_CLASS, Action.ADD | Action.UPDATE),
    ]
    for gates, count in (({}, 3), (_DEVICES_OFF, 2)):
        registered = NodeResourcesFit(
            NodeResourcesFitArgs(), FakeHandle(gates)
        ).events_to_register()
        assert expected[:count] == [registration.event for registration in registered]


_TARGET = make_pod("target", requests={"cpu": 2, "memory": 0, GPU: 1})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(make_pod("a", node_name="n"), None, True, id="deleted from a node"),
        pytest.param(
            make_pod("a", nominated_node_name="n"), None, True, id="deleted while nominated"
        ),
        pytest.param(make_pod("a"), None, False, id="deleted while waiting"),
        pytest.param(
            make_pod("target", requests={"cpu": 4}), _TARGET, True, id="the target itself"
        ),
        pytest.param(
            make_pod("a", requests={"cpu": 4}),
            make_pod("a", requests={"cpu": 2}),
            False,
            id="another that waits",
        ),
        pytest.param(
            make_pod("a", node_name="n", requests={"cpu": 4}),
            make_pod("a", node_name="n", requests={"cpu": 2}),
            True,
            id="frees cpu",
        ),
        pytest.param(
            make_pod("a", node_name="n", requests={"memory": 4}),
            make_pod("a", node_name="n", requests={"memory": 2}),
            False,
            id="frees what the target asks none of",
        ),
        pytest.param(
            make_pod("a", node_name="n", requests={"cpu": 2}),
            make_pod("a", node_name="n", requests={"cpu": 4}),
            False,
            id="grows",
        ),
        pytest.param(
            make_pod("a", node_name="n", requests={GPU: 1}),
            make_pod("a", node_name="n"),
            True,
            id="frees a device",
        ),
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
        pytest.param(FakeHandle(objects=[_device_class("gpu", GPU)]), True, id="a class backs it"),
        pytest.param(FakeHandle(), False, id="no class"),
        pytest.param(
            FakeHandle(_DEVICES_OFF, objects=[_device_class("gpu", GPU)]), False, id="gate off"
        ),
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
        pytest.param({GPU: 1}, None, _device_class("a", GPU), True, id="comes, explicit name"),
        pytest.param({GPU: 1}, None, _device_class("a"), False, id="comes without a name"),
        pytest.param(
            {IMPLICIT + "a": 1}, None, _device_class("a"), True, id="comes, implicit name"
        ),
        pytest.param(
            {IMPLICIT + "a": 1},
            None,
            _device_class("b"),
            False,
            id="comes, another's implicit name",
        ),
        pytest.param({GPU: 0}, None, _device_class("a", GPU), True, id="asked for, if none of it"),
        pytest.param(
            {GPU: 1}, _device_class("a"), _device_class("a", GPU), True, id="gets the name"
        ),
        pytest.param(
            {GPU: 1}, _device_class("a", GPU), _device_class("a", GPU), False, id="keeps the name"
        ),
        pytest.param(
            {GPU: 1}, _device_class("a", GPU), _device_class("a"), False, id="loses the name"
        ),
        pytest.param(
            {IMPLICIT + "a": 1},
            _device_class("a"),
            _device_class("a", GPU),
            False,
            id="the implicit name is nothing new",
        ),
        pytest.param({GPU: 1}, None, make_pod(), True, id="no class"),
    ],
)
def test_after_device_class_events(
    asked: Amounts, old: object | None, new: object, *, expected: bool
) -> None:
    """The class newly backs a resource that the pod requests."""
    assert expected == _hint(DEVICE_CLASS, make_pod(requests=asked), old, new)
