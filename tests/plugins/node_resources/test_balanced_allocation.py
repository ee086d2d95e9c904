"""NodeResourcesBalancedAllocation."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.config.args import ResourceSpec, complete_args
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import UNSIGNED
from kubesched.plugins.node_resources.balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from kubesched.plugins.node_resources.scoring import Demands
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import Amounts, all_rows, make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import build
from tests.plugins.dynamic_resources.cluster import gpu_class
from tests.plugins.node_resources.fits import GPU, amounts


def _plugin(*resources: str, handle: FakeHandle | None = None) -> NodeResourcesBalancedAllocation:
    handle = handle or FakeHandle()
    raw: dict[str, object] = {"resources": [{"name": name} for name in resources]}
    completed = complete_args(NodeResourcesBalancedAllocation.name, raw, handle.feature_gates)
    return build(NodeResourcesBalancedAllocation, completed, handle)


def _score(
    plugin: NodeResourcesBalancedAllocation, allocatable: Amounts, used: Amounts, asked: Amounts
) -> int | None:
    """Score one node; None if the pod is skipped."""
    bound = make_pod("bound", node_name="node", requests=used)
    snapshot = make_snapshot([make_node(allocatable=allocatable)], [bound])
    pod = PodInfo(make_pod(requests=asked))
    result = plugin.pre_score(CycleState(), pod, snapshot, all_rows(snapshot))
    if result.status.is_skip:
        return None
    assert result.state is not None
    return int(plugin.score(result.state, pod, snapshot.nodes)[0])


@pytest.mark.parametrize(
    ("allocatable", "used", "asked", "expected"),
    [
        pytest.param(amounts(4000, 10000), {}, amounts(3000, 5000), 68, id="less even"),
        pytest.param(amounts(6000, 10000), {}, amounts(3000, 5000), 75, id="even"),
        pytest.param(
            amounts(10000, 20000), amounts(3000, 0), amounts(3000, 5000), 73, id="cpu in use"
        ),
        pytest.param(
            amounts(10000, 20000), amounts(3000, 5000), amounts(3000, 5000), 74, id="both in use"
        ),
        pytest.param(
            amounts(10000, 50000), amounts(3000, 5000), amounts(3000, 5000), 70, id="wide memory"
        ),
        pytest.param(amounts(3000, 5000), amounts(3000, 0), amounts(0, 5000), 100, id="evens out"),
        pytest.param(amounts(3000, 5000), {}, amounts(0, 5000), 50, id="unbalances"),
        pytest.param(amounts(0, 0), {}, amounts(3000, 5000), 75, id="a node without resources"),
        pytest.param(amounts(0, 10000), {}, amounts(3000, 5000), 75, id="a node without cpu"),
        pytest.param(amounts(4000, 10000), {}, {}, None, id="best effort"),
    ],
)
def test_cpu_and_memory(
    allocatable: Amounts, used: Amounts, asked: Amounts, expected: int | None
) -> None:
    """Half the gain in balance is added to 75; pods without requests are skipped."""
    assert expected == _score(_plugin(), allocatable, used, asked)


@pytest.mark.parametrize(
    ("used", "asked", "expected"),
    [
        pytest.param(amounts(3000, 5000, 3), {GPU: 1}, 75, id="some in use"),
        pytest.param(amounts(3000, 5000, 0), {GPU: 1}, 76, id="none in use"),
        pytest.param(amounts(3000, 5000, 3), amounts(0, 0), None, id="nothing asked for"),
    ],
)
def test_three_resources(used: Amounts, asked: Amounts, expected: int | None) -> None:
    """With more than two resources the spread is the standard deviation."""
    plugin = _plugin("cpu", "memory", GPU)
    assert expected == _score(plugin, amounts(3500, 40000, 8), used, asked)


def test_unrequested_devices_do_not_count() -> None:
    """An extended resource that the pod does not request is ignored, CPU is not."""
    asked, used, there = amounts(1000, 1000), amounts(0, 0, 8), amounts(4000, 4000, 8)
    assert _score(_plugin(), there, used, asked) == _score(
        _plugin("cpu", "memory", GPU), there, used, asked
    )


def test_one_row_answers_as_in_the_table() -> None:
    """A selection gives each row's score; so do many rows, some of them lacking a resource."""
    plugin = _plugin("cpu", "memory", GPU)
    nodes = [
        make_node(f"n{i}", allocatable=amounts(i % 3 * 1000, 4000 + i, i % 2 * 8))
        for i in range(24)
    ]
    pods = [
        make_pod(f"p{i}", node_name=f"n{i}", requests=amounts(100 * i, 200 * i, i % 3))
        for i in range(24)
    ]
    snapshot = make_snapshot(nodes, pods)
    pod = PodInfo(make_pod(requests=amounts(500, 700, 1)))
    state = plugin.pre_score(CycleState(), pod, snapshot, all_rows(snapshot)).state
    assert state is not None
    ones = [snapshot.nodes.take(np.array([row])) for row in range(24)]
    expected = [int(plugin.score(state, pod, one)[0]) for one in ones]
    assert expected == plugin.score(state, pod, snapshot.nodes).tolist()
    assert expected == [plugin.score_row(state, pod, snapshot.nodes, row) for row in range(24)]
    assert 0 == plugin.score_row(Demands(), pod, snapshot.nodes, 0)
    assert len(set(expected)) > 3


def test_default_args() -> None:
    """By default cpu and memory are balanced."""
    resources = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
    args = NodeResourcesBalancedAllocationArgs(resources=resources)
    assert args == NodeResourcesBalancedAllocation.decode_args(None, FakeHandle(), "args")


def test_wrong_args_are_reported_together() -> None:
    """Names are unique and weights are 1."""
    resources = [{"name": "cpu", "weight": 2}, {"name": "cpu"}]
    with pytest.raises(ConfigError) as caught:
        NodeResourcesBalancedAllocation.decode_args({"resources": resources}, FakeHandle(), "args")
    expected = [
        "args.resources[0].weight: Invalid value: 2: must be 1",
        'args.resources[1].name: Duplicate value: "cpu"',
    ]
    assert expected == [str(field_error) for field_error in caught.value.errors]


def test_signature() -> None:
    """Equal requests have equal signatures; requests that devices back are unsigned."""
    backed = PodInfo(make_pod(requests={GPU: 1}))
    assert UNSIGNED is not _plugin("cpu", GPU).sign(backed)
    plugin = _plugin("cpu", GPU, handle=FakeHandle(objects=[gpu_class()]))
    one, two = (PodInfo(make_pod(name, requests={"cpu": 1})) for name in ("a", "b"))
    more = PodInfo(make_pod(requests={"cpu": 2}))
    assert plugin.sign(one) == plugin.sign(two)
    assert plugin.sign(one) != plugin.sign(more)
    assert UNSIGNED is plugin.sign(backed)


def test_class_without_slices_adds_nothing() -> None:
    """A class without devices does not add its resource to the score."""
    snapshot = make_snapshot([make_node()], objects=[gpu_class()])
    pod = PodInfo(make_pod(requests={"cpu": 1, GPU: 1}))
    plugin = _plugin("cpu", GPU)
    state = plugin.pre_score(CycleState(), pod, snapshot, all_rows(snapshot)).state
    assert state is not None
    assert [75] == plugin.score(state, pod, snapshot.nodes).tolist()
