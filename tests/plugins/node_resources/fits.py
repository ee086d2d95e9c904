"""What the tests of NodeResourcesFit share: plugins, equal nodes, answers for all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.api.core import Pod
from kubesched.config.args import complete_args
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Status
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import Amounts, Json, all_rows, make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import build

GPU, FPGA = "example.com/gpu", "other.org/fpga"
HUGE = "hugepages-2Mi"
DEVICES_OFF = {"DRAExtendedResource": False}
ALLOCATABLE: Amounts = {
    "cpu": 10,
    "memory": 20,
    "ephemeral-storage": 20,
    "pods": 32,
    GPU: 5,
    HUGE: 5,
}


def amounts(milli_cpu: int, memory: int, gpu: int | None = None) -> Amounts:
    """Return amounts of two resources or three."""
    plain: Amounts = {"cpu": f"{milli_cpu}m", "memory": memory}
    return plain if gpu is None else {**plain, GPU: gpu}


def new_plugin(
    raw: Json | None = None, gates: Mapping[str, bool] | None = None
) -> NodeResourcesFit:
    """Return the plugin with decoded arguments."""
    handle = FakeHandle(gates)
    completed = complete_args(NodeResourcesFit.name, raw, handle.feature_gates)
    return build(NodeResourcesFit, completed, handle)


def strategy_args(kind: str, *resources: tuple[str, int], shape: Sequence[Json] = ()) -> Json:
    """Return arguments with a scoring strategy, and the weights of its resources."""
    strategy: dict[str, object] = {
        "type": kind,
        "resources": [{"name": name, "weight": weight} for name, weight in resources],
    }
    if shape:
        strategy["requestedToCapacityRatio"] = {"shape": list(shape)}
    return {"scoringStrategy": strategy}


def filtered(plugin: NodeResourcesFit, pod: Pod, snapshot: Snapshot) -> list[Status]:
    """Return the answer of the filter for each node."""
    info = PodInfo(pod)
    state = plugin.pre_filter(CycleState(), info, snapshot).state
    assert state is not None
    answers = plugin.filter(state, info, snapshot.nodes)
    return [answers[row] for row in range(len(answers))]


def scored(plugin: NodeResourcesFit, pod: Pod, snapshot: Snapshot) -> list[int]:
    """Return the score of each node."""
    info = PodInfo(pod)
    state = plugin.pre_score(CycleState(), info, snapshot, all_rows(snapshot)).state
    assert state is not None
    return [int(score) for score in plugin.score(state, info, snapshot.nodes)]


def equal_nodes(
    allocatable: Amounts, used: Amounts | None = None, pods: int = 1, copies: int = 1
) -> Snapshot:
    """Return equal nodes with pods, of which the first requests `used`."""
    nodes = [make_node(f"n{i}", allocatable=allocatable) for i in range(copies)]
    bound = [
        make_pod(f"p{i}-{j}", node_name=f"n{i}", requests=None if j else used)
        for i in range(copies)
        for j in range(pods)
    ]
    return make_snapshot(nodes, bound)
