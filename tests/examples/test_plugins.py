"""The example plugins, for a whole table and for one row."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.framework.plugin import FilterPlugin, ScorePlugin
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_table
from kubesched.testing.handle import FakeHandle

from .running import EXAMPLES, node_of, plugin_module, simulate

PLUGINS = EXAMPLES / "plugins"
GPU = "nvidia.com/gpu"
NODES = (EXAMPLES / "gpu-nodes" / "nodes.yaml", EXAMPLES / "gpu-nodes" / "pods.yaml")


TABLE = make_table(
    [
        make_node("none"),
        make_node("half", allocatable={GPU: 4}),
        make_node("free", allocatable={GPU: 4}),
    ],
    [make_pod("train", node_name="half", requests={GPU: 2})],
)
PODS = [
    pytest.param(make_pod_info("web", requests={"cpu": 1}), [True, False, False], id="no-gpu"),
    pytest.param(make_pod_info("infer", requests={GPU: 1}), [True, True, True], id="gpu"),
]


@pytest.mark.parametrize(("pod", "passed"), PODS)
@pytest.mark.parametrize("name", ["keep_gpu_nodes_free", "reserve_nodes"])
def test_filters_reject_gpu_nodes_for_other_pods(
    name: str, pod: PodInfo, passed: list[bool]
) -> None:
    """In the table and for one row."""
    module = plugin_module(name)
    plugin = cast(
        "FilterPlugin[None]",
        module.KeepGpuNodesFree(None, FakeHandle())
        if name == "keep_gpu_nodes_free"
        else module.ReserveNodes(module.ReserveNodesArgs(), FakeHandle()),
    )
    whole = plugin.filter(None, pod, TABLE)
    alone = [plugin.filter(None, pod, TABLE.take(np.array([row])))[0] for row in range(3)]
    assert passed == whole.passed.tolist()
    assert [whole[row] for row in range(3)] == alone


def test_the_score_prefers_full_nodes() -> None:
    """In the table and for one row."""
    plugin = cast("ScorePlugin[None]", plugin_module("pack_gpus").PackGpus(None, FakeHandle()))
    pod = make_pod_info("infer", requests={GPU: 1})
    alone = [int(plugin.score(None, pod, TABLE.take(np.array([row])))[0]) for row in range(3)]
    assert [0, 2, 4] == alone == plugin.score(None, pod, TABLE).tolist()


def test_all_field_errors_of_arguments_are_reported_with_their_path() -> None:
    """An empty resource, for example."""
    with pytest.raises(ConfigError) as refused:
        plugin_module("reserve_nodes").ReserveNodes.decode_args(
            {"resource": ""}, FakeHandle(), "args"
        )
    assert ["args.resource: Required value: name a resource"] == [
        str(field_error) for field_error in refused.value.errors
    ]


def test_packing_leaves_nodes_free() -> None:
    """With the example's configuration, pods with one GPU fill three nodes first."""
    report = simulate(
        *NODES,
        "--config",
        PLUGINS / "scheduler-config.yaml",
        "--plugin",
        f"{PLUGINS / 'reserve_nodes.py'}:ReserveNodes",
        "--plugin",
        f"{PLUGINS / 'pack_gpus.py'}:PackGpus",
    )
    infer = [node for pod, node in node_of(report).items() if pod.startswith("infer")]
    assert [2, 4, 4] == sorted(infer.count(node) for node in set(infer))
