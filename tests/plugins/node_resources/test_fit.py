"""NodeResourcesFit: filtering, ranking, arguments, signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.api.field_errors import ConfigError
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.resource import (
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import UNSIGNED
from kubesched.framework.status import Code, Status
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import Amounts, Json, all_rows, make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle

GPU, FPGA = "example.com/gpu", "other.org/fpga"
HUGE = "hugepages-2Mi"
_DEVICES_OFF = {"DRAExtendedResource": False}


def _plugin(raw: Json | None = None, gates: Mapping[str, bool] | None = None) -> NodeResourcesFit:
    handle = FakeHandle(gates)
    args = NodeResourcesFit.decode_args(None if raw is None else dict(raw), handle, "args")
    return NodeResourcesFit(args, handle)


def _strategy(kind: str, *resources: tuple[str, int], shape: Sequence[Json] = ()) -> Json:
    strategy: dict[str, object] = {
        "type": kind,
        "resources": [{"name": name, "weight": weight} for name, weight in resources],
    }
    if shape:
        strategy["requestedToCapacityRatio"] = {"shape": list(shape)}
    return {"scoringStrategy": strategy}


def _filter(plugin: NodeResourcesFit, pod: Pod, snapshot: Snapshot) -> list[Status]:
    info = PodInfo(pod)
    state = plugin.pre_filter(CycleState(), info, snapshot).state
    assert state is not None
    answers = plugin.filter(state, info, snapshot.nodes)
    return [answers[row] for row in range(len(answers))]


def _score(plugin: NodeResourcesFit, pod: Pod, snapshot: Snapshot) -> list[int]:
    info = PodInfo(pod)
    state = plugin.pre_score(CycleState(), info, snapshot, all_rows(snapshot)).state
    assert state is not None
    return [int(score) for score in plugin.score(state, info, snapshot.nodes)]


def _cluster(
    allocatable: Amounts, used: Amounts | None = None, pods: int = 1, copies: int = 1
) -> Snapshot:
    """Equal nodes with pods, of which the first requests `used`."""
    nodes = [make_node(f"n{i}", allocatable=allocatable) for i in range(copies)]
    bound = [
        make_pod(f"p{i}-{j}", node_name=f"n{i}", requests=None if j else used)
        for i in range(copies)
        for j in range(pods)
    ]
    return make_snapshot(nodes, bound)


_ALLOCATABLE: Amounts = {
    "cpu": 10,
    "memory": 20,
    "ephemeral-storage": 20,
    "pods": 32,
    GPU: 5,
    HUGE: 5,
}


@pytest.mark.parametrize("copies", [1, 12])
@pytest.mark.parametrize(
    ("used", "asked", "code", "reasons"),
    [
        pytest.param({"cpu": 10}, {}, Code.SUCCESS, (), id="nothing asked for"),
        pytest.param({"cpu": 5}, {"cpu": 5}, Code.SUCCESS, (), id="exactly"),
        pytest.param({"cpu": 6}, {"cpu": 5}, Code.UNSCHEDULABLE, ("Insufficient cpu",), id="cpu"),
        pytest.param(
            {"cpu": 9, "memory": 19},
            {"cpu": 2, "memory": 2},
            Code.UNSCHEDULABLE,
            ("Insufficient cpu", "Insufficient memory"),
            id="both",
        ),
        pytest.param(
            {},
            {"memory": 21},
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            ("Insufficient memory",),
            id="never",
        ),
        pytest.param(
            {"cpu": 9},
            {"cpu": 2, "memory": 21},
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            ("Insufficient cpu", "Insufficient memory"),
            id="one of them never",
        ),
        pytest.param(
            {"ephemeral-storage": 11},
            {"ephemeral-storage": 10},
            Code.UNSCHEDULABLE,
            ("Insufficient ephemeral-storage",),
            id="storage",
        ),
        pytest.param({GPU: 3}, {GPU: 3}, Code.UNSCHEDULABLE, (f"Insufficient {GPU}",), id="gpu"),
        pytest.param({GPU: 5}, {GPU: 0}, Code.SUCCESS, (), id="no gpu"),
        pytest.param(
            {},
            {FPGA: 1},
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            (f"Insufficient {FPGA}",),
            id="a resource no node has",
        ),
        pytest.param(
            {HUGE: 3}, {HUGE: 4}, Code.UNSCHEDULABLE, (f"Insufficient {HUGE}",), id="huge pages"
        ),
        pytest.param({"cpu": 10}, {"memory": 1}, Code.SUCCESS, (), id="another is used up"),
    ],
)
def test_requests(
    used: Amounts, asked: Amounts, code: Code, reasons: tuple[str, ...], copies: int
) -> None:
    """A request must be free; if the node is too small, eviction does not help."""
    snapshot = _cluster(_ALLOCATABLE, used, copies=copies)
    expected = [Status(code, reasons)] * copies
    assert expected == _filter(_plugin(), make_pod(requests=asked), snapshot)


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
    snapshot = _cluster({**_ALLOCATABLE, "pods": 2}, {"cpu": 1}, pods, copies)
    expected = Status(Code.UNSCHEDULABLE if reasons else Code.SUCCESS, reasons)
    assert [expected] * copies == _filter(_plugin(), make_pod(requests=asked), snapshot)


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
    assert expected == _filter(_plugin(), pod, _cluster(_ALLOCATABLE))[0].is_success


def test_overhead_counts() -> None:
    """The pod's overhead is part of its request."""
    pod = make_pod(requests={"cpu": 5}, spec={"overhead": {"cpu": "5001m"}})
    status = _filter(_plugin(), pod, _cluster(_ALLOCATABLE))[0]
    assert Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("Insufficient cpu",)) == status


@pytest.mark.parametrize(
    ("args", "asked", "expected"),
    [
        pytest.param({"ignoredResources": [FPGA]}, {FPGA: 1}, True, id="resource"),
        pytest.param({"ignoredResources": [GPU]}, {FPGA: 1}, False, id="another resource"),
        pytest.param({"ignoredResourceGroups": ["other.org"]}, {FPGA: 1}, True, id="group"),
        pytest.param({"ignoredResourceGroups": ["org"]}, {FPGA: 1}, False, id="part of the group"),
        pytest.param({"ignoredResources": ["cpu"]}, {"cpu": 11}, False, id="cpu is no extension"),
        pytest.param({"ignoredResources": [HUGE]}, {HUGE: 6}, False, id="nor are huge pages"),
    ],
)
def test_ignored_resources(args: Json, asked: Amounts, *, expected: bool) -> None:
    """Extended resources can be ignored, by name or by group."""
    status = _filter(_plugin(args), make_pod(requests=asked), _cluster(_ALLOCATABLE))[0]
    assert expected == status.is_success


def test_describe_gives_quantities() -> None:
    """Requested, free and allocatable amounts; one part per reason."""
    snapshot = _cluster(
        {"cpu": 4, "memory": "8Gi", "pods": 2, GPU: 2}, {"cpu": "2500m", "memory": "7Gi"}, pods=2
    )
    pod = PodInfo(make_pod(requests={"cpu": 3, "memory": "1536Mi", GPU: 3}))
    plugin = _plugin()
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    expected = (
        "pods: requested 1, free 0 of 2; cpu: requested 3, free 1.5 of 4; "
        "memory: requested 1.5Gi, free 1Gi of 8Gi; example.com/gpu: requested 3, free 2 of 2"
    )
    assert expected == plugin.describe(state, pod, snapshot.nodes.take(np.array([0])))


# Scores.


@pytest.mark.parametrize(
    ("args", "allocatable", "used", "asked", "expected"),
    [
        pytest.param(
            None,
            {"cpu": "4000m", "memory": 10000},
            None,
            {"cpu": "3000m", "memory": 5000},
            37,
            id="least",
        ),
        pytest.param(
            _strategy("LeastAllocated", ("cpu", 1), ("memory", 2)),
            {"cpu": "4000m", "memory": 10000},
            None,
            {"cpu": "3000m", "memory": 5000},
            41,
            id="least, weighted",
        ),
        pytest.param(
            None,
            {"cpu": "10000m", "memory": 20000},
            {"cpu": "3000m", "memory": 5000},
            {"cpu": "3000m", "memory": 5000},
            45,
            id="least, in use",
        ),
        pytest.param(
            None,
            {"cpu": "10000m", "memory": 20000},
            {"cpu": "3000m", "memory": 0},
            {"cpu": "3000m", "memory": 5000},
            57,
            id="least, an explicit 0 is no missing request",
        ),
        pytest.param(None, {"cpu": 0, "memory": 0}, None, {"cpu": 1}, 0, id="nothing allocatable"),
        pytest.param(
            None,
            {"cpu": 1, "memory": 0},
            None,
            {"cpu": "100m"},
            90,
            id="resources with 0 allocatable do not count",
        ),
        pytest.param(
            None, {"cpu": 1, "memory": "400Mi"}, None, {}, 70, id="defaults of the pod: 90 and 50"
        ),
        pytest.param(None, {"cpu": 1, "memory": "800Mi"}, {}, {}, 65, id="defaults of a bound pod"),
        pytest.param(
            _strategy("MostAllocated"),
            {"cpu": "4000m", "memory": 10000},
            None,
            {"cpu": "3000m", "memory": 5000},
            62,
            id="most",
        ),
        pytest.param(
            _strategy("MostAllocated", (GPU, 1), ("cpu", 1)),
            {"cpu": 4, GPU: 8},
            {"cpu": 1, GPU: 2},
            {"cpu": 1, GPU: 2},
            50,
            id="most, devices",
        ),
        pytest.param(
            _strategy("MostAllocated", (GPU, 9), ("cpu", 1)),
            {"cpu": 4, GPU: 8},
            {"cpu": 1, GPU: 2},
            {"cpu": 2},
            75,
            id="most, devices not asked for",
        ),
        pytest.param(
            _strategy(
                "RequestedToCapacityRatio",
                ("cpu", 1),
                ("memory", 1),
                shape=[{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
            ),
            {"cpu": "4000m", "memory": 10000},
            None,
            {"cpu": "3000m", "memory": 5000},
            38,
            id="ratio, rounded to the nearest",
        ),
        pytest.param(
            _strategy("LeastAllocated", ("pods", 1), ("ephemeral-storage", 1)),
            {"ephemeral-storage": 100},
            {"ephemeral-storage": 10},
            {"ephemeral-storage": 20},
            70,
            id="pods are not scored",
        ),
        pytest.param(
            _strategy("LeastAllocated", ("memory", 1)),
            {"memory": 10**17},
            None,
            {"memory": 0},
            -84,
            id="a hundred petabytes overflow",
        ),
        pytest.param(
            _strategy("LeastAllocated", ("memory", 1)),
            {"memory": 100},
            {"memory": 2**63 - 1},
            {"memory": 1},
            100,
            id="the sum of requests overflows",
        ),
        pytest.param(
            _strategy("MostAllocated", *((f"example.com/r{i}", 1) for i in range(70))),
            {f"example.com/r{i}": 2 for i in range(70)},
            None,
            {f"example.com/r{i}": 1 for i in range(70)},
            50,
            id="more resources than bits",
        ),
    ],
)
@pytest.mark.parametrize("copies", [1, 12])
def test_scores(
    args: Json | None,
    allocatable: Amounts,
    used: Amounts | None,
    asked: Amounts,
    expected: int,
    copies: int,
) -> None:
    """The strategies on nodes with and without a pod."""
    snapshot = _cluster(allocatable, used, 0 if used is None else 1, copies)
    assert [expected] * copies == _score(_plugin(args), make_pod(requests=asked), snapshot)


def test_pod_level_requests_are_filtered_but_not_scored() -> None:
    """Upstream's scorer reads only the containers' requests, here with defaults."""
    pod = make_pod(spec={"resources": {"requests": {"cpu": 3, "memory": "300Mi"}}})
    snapshot = _cluster({"cpu": 2, "memory": "400Mi"}, pods=0)
    assert ("Insufficient cpu",) == _filter(_plugin(), pod, snapshot)[0].reasons
    assert [(95 + 50) // 2] == _score(_plugin(), pod, snapshot)


# Devices that back an extended resource.


def _device_class(
    name: str = "gpu", resource: str | None = GPU, expression: str = ""
) -> DeviceClass:
    selectors = (DeviceSelector(cel=CELDeviceSelector(expression=expression)),)
    return DeviceClass(
        metadata=ObjectMeta(name=name),
        spec=DeviceClassSpec(
            extended_resource_name=resource, selectors=selectors if expression else ()
        ),
    )


def _slice(node_name: str, *sizes: int) -> ResourceSlice:
    devices = tuple(
        Device(name=f"dev-{i}", attributes={"size": DeviceAttribute(int_value=size)})
        for i, size in enumerate(sizes)
    )
    return ResourceSlice(
        metadata=ObjectMeta(name=node_name),
        spec=ResourceSliceSpec(
            driver="d.example.com",
            pool=ResourcePool(name=node_name, generation=1, resource_slice_count=1),
            node_name=node_name,
            devices=devices,
        ),
    )


@pytest.mark.parametrize(
    ("resource", "offered", "gates", "expected"),
    [
        pytest.param(GPU, 0, {}, True, id="a class backs it"),
        pytest.param(GPU, 1, {}, False, id="the node offers it itself, too little"),
        pytest.param(FPGA, 0, {}, False, id="no class backs it"),
        pytest.param("deviceclass.resource.kubernetes.io/gpu", 0, {}, True, id="implicit name"),
        pytest.param("deviceclass.resource.kubernetes.io/x", 0, {}, False, id="unknown class"),
        pytest.param(GPU, 0, _DEVICES_OFF, False, id="gate off"),
    ],
)
@pytest.mark.parametrize("copies", [1, 12])
def test_resources_backed_by_devices_are_not_rejected(
    resource: str, offered: int, gates: dict[str, bool], copies: int, *, expected: bool
) -> None:
    """If devices back a resource that the node lacks, this plugin does not reject it."""
    nodes = [make_node(f"n{i}", allocatable={resource: offered}) for i in range(copies)]
    snapshot = make_snapshot(nodes, objects=[_device_class()])
    statuses = _filter(_plugin(None, gates), make_pod(requests={resource: 2}), snapshot)
    assert [expected] * copies == [status.is_success for status in statuses]


@pytest.mark.parametrize("copies", [1, 9])
def test_devices_are_scored(copies: int) -> None:
    """Matching devices count as allocatable if the node lacks the resource."""
    expression = 'device.attributes["d.example.com"].size > 10'
    nodes = [
        make_node("dra"),
        make_node("plugin", allocatable={GPU: 2}),
        *(make_node(f"bare{i}") for i in range(copies)),
    ]
    objects: list[KubeObject] = [
        _device_class(expression=expression),
        _slice("dra", 5, 20, 20, 20, 20),
    ]
    snapshot = make_snapshot(nodes, objects=objects)
    plugin = _plugin(_strategy("MostAllocated", (GPU, 1)))
    assert [25, 50, *[0] * copies] == _score(plugin, make_pod(requests={GPU: 1}), snapshot)


def test_signature() -> None:
    """Equal requests have equal signatures; requests that devices back are unsigned."""
    device_class = DeviceClass(
        metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(extended_resource_name=GPU)
    )
    plain = _plugin()
    plugin = NodeResourcesFit(None, FakeHandle(objects=[device_class]))
    off = NodeResourcesFit(None, FakeHandle(_DEVICES_OFF, objects=[device_class]))
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


# Arguments.


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        pytest.param(
            {"ignoredResources": ["a b"]},
            [("ignoredResources[0]", 'Invalid value: "a b": name part must consist of')],
            id="no label name",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["example.com/gpu"]},
            [
                (
                    "ignoredResourceGroups[0]",
                    "Invalid value: \"example.com/gpu\": resource group name can't contain '/'",
                )
            ],
            id="a resource instead of a group",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "Best"}},
            [
                (
                    "scoringStrategy.type",
                    'Unsupported value: "Best": supported values: "LeastAllocated", "MostAllo',
                )
            ],
            id="unknown strategy",
        ),
        pytest.param(
            {"scoringStrategy": {}},
            [("scoringStrategy.type", 'Unsupported value: "": supported values:')],
            id="no strategy",
        ),
        pytest.param(
            _strategy("MostAllocated", ("cpu", 101), ("memory", -1)),
            [
                (
                    "scoringStrategy.resources[0].weight",
                    "Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
                ),
                (
                    "scoringStrategy.resources[1].weight",
                    "Invalid value: -1: resource weight of memory not in valid range (0, 100]",
                ),
            ],
            id="weights",
        ),
        pytest.param(
            _strategy("RequestedToCapacityRatio"),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio",
                    "Required value: must be specified when type is RequestedToCapacityRatio",
                )
            ],
            id="no shape",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {},
                }
            },
            [
                (
                    "scoringStrategy.requestedToCapacityRatio.shape",
                    "Required value: at least one point must be specified",
                )
            ],
            id="empty shape",
        ),
        pytest.param(
            _strategy("LeastAllocated", shape=[{"utilization": 0, "score": 0}]),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio",
                    "Forbidden: must be nil when type is not RequestedToCapacityRatio",
                )
            ],
            id="shape of another strategy",
        ),
    ],
)
def test_wrong_args(args: Json, errors: list[tuple[str, str]]) -> None:
    """Every field error is reported, with its path and upstream's text."""
    with pytest.raises(ConfigError) as caught:
        _plugin(args)
    found = caught.value.errors
    assert [f"args.{path}" for path, _ in errors] == [field_error.path for field_error in found]
    assert all(f.message.startswith(text) for f, (_, text) in zip(found, errors, strict=True))


def test_default_args() -> None:
    """Least allocated cpu and memory; a weight of 0 counts as 1."""
    decode = NodeResourcesFit.decode_args
    args = decode(None, FakeHandle(), "args")
    strategy = args.scoring_strategy
    assert "LeastAllocated" == strategy.type
    assert [("cpu", 1), ("memory", 1)] == [(spec.name, spec.weight) for spec in strategy.resources]
    assert args == decode({"scoringStrategy": {"type": "LeastAllocated"}}, FakeHandle(), "args")
    weights = decode(dict(_strategy("MostAllocated", (GPU, 0))), FakeHandle(), "args")
    assert [1] == [spec.weight for spec in weights.scoring_strategy.resources]


# All rows at once against one node at a time.

_NAMES = ("cpu", "memory", "ephemeral-storage", GPU, FPGA, HUGE, "kubernetes.io/x")
_REQUESTS = st.dictionaries(st.sampled_from(_NAMES), st.integers(0, 6), max_size=4)
_NODES = st.lists(
    st.tuples(
        st.fixed_dictionaries({name: st.integers(0, 9) for name in _NAMES}),
        st.integers(0, 3),
        st.lists(_REQUESTS, max_size=3),
    ),
    min_size=1,
    max_size=12,
)


def _fits(
    pod: Amounts, node: Amounts, slots: int, used: Sequence[Amounts]
) -> tuple[Code, set[str]]:
    """Answer for one node, from the specification; whole units of everything."""
    reasons = {"Too many pods"} if len(used) + 1 > slots else set()
    never = False
    for name, amount in pod.items():
        free = int(node[name]) - sum(int(other.get(name, 0)) for other in used)
        if int(amount) > 0 and int(amount) > free:
            reasons.add(f"Insufficient {name}")
            never = never or int(amount) > int(node[name])
    if never:
        return Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons
    return (Code.UNSCHEDULABLE if reasons else Code.SUCCESS), reasons


@pytest.mark.slow
@given(_NODES, _REQUESTS)
def test_filter_equals_the_twin(
    cluster: list[tuple[Amounts, int, list[Amounts]]], asked: Amounts
) -> None:
    """Each row gets the twin's answer, alone, among few rows and among many."""
    copies = 4
    nodes: list[Node] = []
    pods: list[Pod] = []
    for i, (allocatable, slots, used) in enumerate(cluster * copies):
        nodes.append(make_node(f"n{i}", allocatable={**allocatable, "pods": slots}))
        pods += [make_pod(f"p{i}-{j}", node_name=f"n{i}", requests=u) for j, u in enumerate(used)]
    few, many = make_snapshot(nodes[: len(cluster)], pods), make_snapshot(nodes, pods)
    plugin, pod = _plugin(), PodInfo(make_pod(requests=asked))
    state = plugin.pre_filter(CycleState(), pod, many).state
    assert state is not None
    expected = [_fits(asked, *node) for node in cluster]
    for table in (few.nodes, many.nodes):
        answers = plugin.filter(state, pod, table)
        found = [(answers[row].code, set(answers[row].reasons)) for row in range(len(answers))]
        assert expected * (len(found) // len(cluster)) == found
    for row, (code, reasons) in enumerate(expected):
        one = many.nodes.take(np.array([row]))
        status = plugin.filter(state, pod, one)[0]
        assert (code, reasons) == (status.code, set(status.reasons))
        assert status == plugin.filter_row(state, pod, many.nodes, row)
        assert bool(reasons) == bool(plugin.describe(state, pod, one))


@pytest.mark.slow
@given(_NODES, _REQUESTS, st.sampled_from(["LeastAllocated", "MostAllocated"]))
def test_one_row_scores_as_in_the_table(
    cluster: list[tuple[Amounts, int, list[Amounts]]], asked: Amounts, kind: str
) -> None:
    """Rows with different resources get the same scores together and one by one."""
    nodes: list[Node] = []
    pods: list[Pod] = []
    for i, (allocatable, _, used) in enumerate(cluster * 9):
        nodes.append(make_node(f"n{i}", allocatable=allocatable))
        pods += [make_pod(f"p{i}-{j}", node_name=f"n{i}", requests=u) for j, u in enumerate(used)]
    snapshot = make_snapshot(nodes, pods)
    plugin = _plugin(_strategy(kind, *((name, at + 1) for at, name in enumerate(_NAMES))))
    info = PodInfo(make_pod(requests=asked))
    state = plugin.pre_score(CycleState(), info, snapshot, all_rows(snapshot)).state
    assert state is not None
    ones = [snapshot.nodes.take(np.array([row])) for row in range(len(cluster))]
    expected = [int(plugin.score(state, info, one)[0]) for one in ones]
    assert expected * 9 == plugin.score(state, info, snapshot.nodes).tolist()
    for row, score in enumerate(expected):
        assert score == plugin.score_row(state, info, snapshot.nodes, row)


def test_changed_selections() -> None:
    """Filter sees the pods that were added to or removed from a selection of rows."""
    snapshot = _cluster({"cpu": 4}, {"cpu": 3})
    plugin, pod = _plugin(), PodInfo(make_pod(requests={"cpu": 2}))
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
    status = _filter(_plugin(), make_pod(requests=asked), snapshot)[9]
    assert tuple(f"Insufficient {name}" for name in asked) == status.reasons


def test_few_of_many_requests_are_missing() -> None:
    """Rows are grouped by their missing resources, also if there are too many groups to count."""
    asked = {f"example.com/r{i:03}": 1 for i in range(30)}
    nodes = [
        make_node(f"n{i}", allocatable={f"example.com/r{j:03}": 1 for j in range(30) if j != i})
        for i in range(20)
    ]
    statuses = _filter(_plugin(), make_pod(requests=asked), make_snapshot(nodes))
    expected = [(f"Insufficient example.com/r{i:03}",) for i in range(20)]
    assert expected == [status.reasons for status in statuses]
