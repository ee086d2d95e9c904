"""NodeResourcesFit: extended resources that devices back."""

from __future__ import annotations

import pytest

from kubesched.api.meta import KubeObject
from kubesched.framework.plugin import UNSIGNED
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.plugins.node_resources.fit import NodeResourcesFitArgs
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.dynamic_resources.cluster import gpu_class
from tests.plugins.dynamic_resources.objects import DRIVER, device, device_class, slice_of
from tests.plugins.node_resources.fits import (
    DEVICES_OFF,
    FPGA,
    GPU,
    filtered,
    new_plugin,
    scored,
    strategy_args,
)


@pytest.mark.parametrize(
    ("resource", "offered", "gates", "expected"),
    [
        pytest.param(GPU, 0, {}, True, id="a class backs it"),
        pytest.param(GPU, 1, {}, False, id="the node offers it itself, too little"),
        pytest.param(FPGA, 0, {}, False, id="no class backs it"),
        pytest.param("deviceclass.resource.kubernetes.io/gpu", 0, {}, True, id="implicit name"),
        pytest.param("deviceclass.resource.kubernetes.io/x", 0, {}, False, id="unknown class"),
        pytest.param(GPU, 0, DEVICES_OFF, False, id="gate off"),
    ],
)
@pytest.mark.parametrize("copies", [1, 12])
def test_resources_backed_by_devices_are_not_rejected(
    resource: str, offered: int, gates: dict[str, bool], copies: int, *, expected: bool
) -> None:
    """If devices back a resource that the node lacks, this plugin does not reject it."""
    nodes = [make_node(f"n{i}", allocatable={resource: offered}) for i in range(copies)]
    snapshot = make_snapshot(nodes, objects=[gpu_class()])
    statuses = filtered(new_plugin(None, gates), make_pod(requests={resource: 2}), snapshot)
    assert [expected] * copies == [status.is_success for status in statuses]


@pytest.mark.parametrize("copies", [1, 9])
def test_devices_are_scored(copies: int) -> None:
    """Matching devices count as allocatable if the node lacks the resource."""
    expression = f'device.attributes["{DRIVER}"].size > 10'
    devices = [device(f"d{at}", {"size": size}) for at, size in enumerate((5, 20, 20, 20, 20))]
    nodes = [
        make_node("dra"),
        make_node("plugin", allocatable={GPU: 2}),
        *(make_node(f"bare{i}") for i in range(copies)),
    ]
    objects: list[KubeObject] = [
        device_class("gpu", expression, extended_resource_name=GPU),
        slice_of(devices, node_name="dra"),
    ]
    snapshot = make_snapshot(nodes, objects=objects)
    plugin = new_plugin(strategy_args("MostAllocated", (GPU, 1)))
    assert [25, 50, *[0] * copies] == scored(plugin, make_pod(requests={GPU: 1}), snapshot)


def test_signature() -> None:
    """Equal requests have equal signatures; requests that devices back are unsigned."""
    plain = new_plugin()
    plugin = NodeResourcesFit(NodeResourcesFitArgs(), FakeHandle(objects=[gpu_class()]))
    off = NodeResourcesFit(NodeResourcesFitArgs(), FakeHandle(DEVICES_OFF, objects=[gpu_class()]))
    one, two = (PodInfo(make_pod(name, requests={"cpu": 1})) for name in ("a", "b"))
    more = PodInfo(make_pod(requests={"cpu": 2}))
    gpu, none = PodInfo(make_pod(requests={GPU: 1})), PodInfo(make_pod(requests={GPU: 0}))
    whole = PodInfo(make_pod(spec={"resources": {"requests": {"cpu": 1}}}))
    assert plugin.sign(one) == plugin.sign(two)
    assert len({plugin.sign(one), plugin.sign(more), plugin.sign(whole)}) == 3
    assert UNSIGNED is plugin.sign(gpu)
    assert UNSIGNED is not plain.sign(gpu)
    assert UNSIGNED is not plugin.sign(none)
    assert UNSIGNED is not off.sign(gpu)
