"""NodeResourcesFit: which nodes fit, why others do not, and its arguments."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.config.args import ResourceSpec
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SUCCESS, Status, unresolvable, unschedulable
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.plugins.node_resources.fit import NodeResourcesFitArgs, ScoringStrategy
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import Amounts, Json, make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.node_resources.fits import (
    ALLOCATABLE,
    FPGA,
    GPU,
    HUGE,
    equal_nodes,
    filtered,
    new_plugin,
    strategy_args,
)

CPU, MEMORY = "Insufficient cpu", "Insufficient memory"


@pytest.mark.parametrize("copies", [1, 12])
@pytest.mark.parametrize(
    ("used", "asked", "expected"),
    [
        pytest.param({"cpu": 10}, {}, SUCCESS, id="nothing asked for"),
        pytest.param({"cpu": 5}, {"cpu": 5}, SUCCESS, id="exactly"),
        pytest.param({"cpu": 6}, {"cpu": 5}, unschedulable(CPU), id="cpu"),
        pytest.param(
            {"cpu": 9, "memory": 19},
            {"cpu": 2, "memory": 2},
            unschedulable(CPU, MEMORY),
            id="both",
        ),
        pytest.param({}, {"memory": 21}, unresolvable(MEMORY), id="never"),
        pytest.param(
            {"cpu": 9}, {"cpu": 2, "memory": 21}, unresolvable(CPU, MEMORY), id="one of them never"
        ),
        pytest.param(
            {"ephemeral-storage": 11},
            {"ephemeral-storage": 10},
            unschedulable("Insufficient ephemeral-storage"),
            id="storage",
        ),
        pytest.param({GPU: 3}, {GPU: 3}, unschedulable(f"Insufficient {GPU}"), id="gpu"),
        pytest.param({GPU: 5}, {GPU: 0}, SUCCESS, id="no gpu"),
        pytest.param({}, {FPGA: 1}, unresolvable(f"Insufficient {FPGA}"), id="no node has it"),
        pytest.param({HUGE: 3}, {HUGE: 4}, unschedulable(f"Insufficient {HUGE}"), id="huge pages"),
        pytest.param({"cpu": 10}, {"memory": 1}, SUCCESS, id="another is used up"),
    ],
)
def test_requests(used: Amounts, asked: Amounts, expected: Status, copies: int) -> None:
    """A request must be free; if the node is too small, eviction does not help."""
    snapshot = equal_nodes(ALLOCATABLE, used, copies=copies)
    assert [expected] * copies == filtered(new_plugin(), make_pod(requests=asked), snapshot)


@pytest.mark.parametrize("copies", [1, 12])
@pytest.mark.parametrize(
    ("pods", "asked", "reasons"),
    [
        pytest.param(2, {}, ("Too many pods",), id="best effort"),
        pytest.param(2, {"cpu": 10}, ("Too many pods", "Insufficient cpu"), id="and cpu"),
        pytest.param(1, {}, (), id="one more"),
    ],
)
def test_pods(pods: int, asked: Amounts, reasons: tuple[str, ...], copies: int) -> None:
    """Each pod takes one slot; eviction can make room."""
    snapshot = equal_nodes({**ALLOCATABLE, "pods": 2}, {"cpu": 1}, pods, copies)
    expected = unschedulable(*reasons) if reasons else SUCCESS
    assert [expected] * copies == filtered(new_plugin(), make_pod(requests=asked), snapshot)


@pytest.mark.parametrize(
    ("container", "init", "expected"),
    [
        pytest.param({"cpu": 3}, {"cpu": 8}, True, id="init containers run before"),
        pytest.param({"cpu": 3}, {"cpu": 11}, False, id="a large init container"),
    ],
)
def test_init_containers(container: Amounts, init: Amounts, *, expected: bool) -> None:
    """Requests of init containers are not added to those of later containers."""
    pod = make_pod(
        containers=[{"name": "c", "resources": {"requests": container}}],
        init_containers=[{"name": "i", "resources": {"requests": init}}],
    )
    assert expected == filtered(new_plugin(), pod, equal_nodes(ALLOCATABLE))[0].is_success


def test_overhead_counts() -> None:
    """The pod's overhead is part of its request."""
    pod = make_pod(requests={"cpu": 5}, spec={"overhead": {"cpu": "5001m"}})
    status = filtered(new_plugin(), pod, equal_nodes(ALLOCATABLE))[0]
    assert unresolvable(CPU) == status


@pytest.mark.parametrize(
    ("args", "asked", "expected"),
    [
        pytest.param({"ignoredResources": [FPGA]}, {FPGA: 1}, True, id="resource"),
        pytest.param({"ignoredResources": [GPU]}, {FPGA: 1}, False, id="another resource"),
        pytest.param({"ignoredResourceGroups": ["other.org"]}, {FPGA: 1}, True, id="group"),
        pytest.param({"ignoredResourceGroups": ["org"]}, {FPGA: 1}, False, id="part of the group"),
        pytest.param(
            {"ignoredResources": ["cpu"]}, {"cpu": 11}, False, id="cpu is not an extension"
        ),
        pytest.param({"ignoredResources": [HUGE]}, {HUGE: 6}, False, id="nor are huge pages"),
    ],
)
def test_ignored_resources(args: Json, asked: Amounts, *, expected: bool) -> None:
    """Extended resources can be ignored, by name or by group."""
    status = filtered(new_plugin(args), make_pod(requests=asked), equal_nodes(ALLOCATABLE))[0]
    assert expected == status.is_success


def test_describe_gives_quantities() -> None:
    """Requested, free and allocatable amounts; one part per reason."""
    snapshot = equal_nodes(
        {"cpu": 4, "memory": "8Gi", "pods": 2, GPU: 2}, {"cpu": "2500m", "memory": "7Gi"}, pods=2
    )
    pod = PodInfo(make_pod(requests={"cpu": 3, "memory": "1536Mi", GPU: 3}))
    plugin = new_plugin()
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    expected = (
        "pods: requested 1, free 0 of 2; cpu: requested 3, free 1.5 of 4; "
        "memory: requested 1.5Gi, free 1Gi of 8Gi; example.com/gpu: requested 3, free 2 of 2"
    )
    assert expected == plugin.describe(state, pod, snapshot.nodes.take(np.array([0])))


def test_changed_selections() -> None:
    """Filter sees the pods that were added to or removed from a selection of rows."""
    snapshot = equal_nodes({"cpu": 4}, {"cpu": 3})
    plugin, pod = new_plugin(), PodInfo(make_pod(requests={"cpu": 2}))
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    row = snapshot.nodes.take(np.array([0]))
    assert not plugin.filter(state, pod, row)[0].is_success
    row.remove_pod(next(iter(row.pods[0].values())))
    assert plugin.filter(state, pod, row)[0].is_success
    row.add_pod(PodInfo(make_pod("other", requests={"cpu": "2001m"})))
    assert not plugin.filter(state, pod, row)[0].is_success


def test_more_requests_than_bits() -> None:
    """A pod may request more resources than an int64 has bits."""
    asked = {f"example.com/r{i:03}": 1 for i in range(80)}
    snapshot = make_snapshot([make_node(f"n{i}") for i in range(10)])
    status = filtered(new_plugin(), make_pod(requests=asked), snapshot)[9]
    assert tuple(f"Insufficient {name}" for name in asked) == status.reasons


def test_few_of_many_requests_are_missing() -> None:
    """Rows are grouped by their missing resources, also if there are too many groups to count."""
    asked = {f"example.com/r{i:03}": 1 for i in range(30)}
    nodes = [
        make_node(f"n{i}", allocatable={f"example.com/r{j:03}": 1 for j in range(30) if j != i})
        for i in range(20)
    ]
    statuses = filtered(new_plugin(), make_pod(requests=asked), make_snapshot(nodes))
    expected = [(f"Insufficient example.com/r{i:03}",) for i in range(20)]
    assert expected == [status.reasons for status in statuses]


# Arguments.


RATIO = "scoringStrategy.requestedToCapacityRatio"
RESOURCES, WEIGHT = "scoringStrategy.resources", "weight: Invalid value"
OUT_OF_RANGE = "not in valid range (0, 100]"


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        pytest.param(
            {"ignoredResources": ["a b"]},
            ['ignoredResources[0]: Invalid value: "a b": name part must consist of'],
            id="no label name",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["a.com/gpu"]},
            ['ignoredResourceGroups[0]: Invalid value: "a.com/gpu": resource group name can\'t c'],
            id="a resource instead of a group",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "Best"}},
            ['scoringStrategy.type: Unsupported value: "Best": supported values: "LeastAlloca'],
            id="unknown strategy",
        ),
        pytest.param(
            {"scoringStrategy": {}},
            ['scoringStrategy.type: Unsupported value: "": supported values:'],
            id="no strategy",
        ),
        pytest.param(
            strategy_args("MostAllocated", ("cpu", 101), ("memory", -1)),
            [
                f"{RESOURCES}[0].{WEIGHT}: 101: resource weight of cpu {OUT_OF_RANGE}",
                f"{RESOURCES}[1].{WEIGHT}: -1: resource weight of memory {OUT_OF_RANGE}",
            ],
            id="weights",
        ),
        pytest.param(
            strategy_args("RequestedToCapacityRatio"),
            [f"{RATIO}: Required value: must be specified when type is RequestedToCapacityRatio"],
            id="no shape",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "RequestedToCapacityRatio", RATIO.rpartition(".")[2]: {}}},
            [f"{RATIO}.shape: Required value: at least one point must be specified"],
            id="empty shape",
        ),
        pytest.param(
            strategy_args("LeastAllocated", shape=[{"utilization": 0, "score": 0}]),
            [f"{RATIO}: Forbidden: must be nil when type is not RequestedToCapacityRatio"],
            id="shape of another strategy",
        ),
    ],
)
def test_wrong_args(args: Json, errors: list[str]) -> None:
    """Every field error is reported, with its path and upstream's text."""
    with pytest.raises(ConfigError) as caught:
        new_plugin(args)
    found = [str(error) for error in caught.value.errors]
    assert errors == [
        text.removeprefix("args.")[: len(error)] for text, error in zip(found, errors, strict=True)
    ]


def test_default_args() -> None:
    """By default nodes with the least cpu and memory allocated score best."""
    resources = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("LeastAllocated", resources))
    assert args == NodeResourcesFit.decode_args(None, FakeHandle(), "args")
