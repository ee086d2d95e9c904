"""Nine nodes without a GPU, six with: each way reserves them for pods that need them."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from .running import EXAMPLES, Json, node_of, simulate

HERE = EXAMPLES / "gpu-nodes"
NODES, PODS = HERE / "nodes.yaml", HERE / "pods.yaml"
TAINTS = (HERE / "taints-and-tolerations",)
AFFINITY = (NODES, HERE / "node-affinity")
RATINGS = (NODES, PODS, "--config", HERE / "scoring" / "scheduler-config.yaml")
PLUGIN = (NODES, PODS, "--plugin", f"{EXAMPLES / 'plugins' / 'reserve_nodes.py'}:ReserveNodes")
UNCONFIGURED = (NODES, PODS)
NEWCOMERS = ("--pods", HERE / "newcomers.yaml")
RUSH = (*NEWCOMERS, "--pods", HERE / "rush.yaml")

WAYS = [
    pytest.param(TAINTS, id="taints-and-tolerations"),
    pytest.param(AFFINITY, id="node-affinity"),
    pytest.param(RATINGS, id="ratings-alone"),
    pytest.param(PLUGIN, id="plugin"),
]
NEED_A_GPU = ("train", "infer")


def _on_gpu_nodes(places: dict[str, str], *apps: str) -> int:
    return sum(
        node.startswith("gpu-") for pod, node in places.items() if pod.rpartition("-")[0] in apps
    )


def _documents(file: Path) -> list[Json]:
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def _nodes(file: Path) -> list[Json]:
    return [item for item in _documents(file) if item["kind"] == "Node"]


def _needs_a_gpu(pod: Json) -> bool:
    return "nvidia.com/gpu" in pod["spec"]["containers"][0]["resources"]["requests"]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_only_gpu_pods_are_on_gpu_nodes(way: tuple[object, ...], seed: int) -> None:
    """All pods are placed."""
    report = simulate(*way, "--seed", seed)
    places = node_of(report)
    assert (49, []) == (report["summary"]["placed"], report["unplaced"])
    assert 13 == _on_gpu_nodes(places, *NEED_A_GPU)
    assert 0 == _on_gpu_nodes(places, "web", "batch")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_configuration_other_pods_use_gpu_nodes(seed: int) -> None:
    """Pods that need whole GPU nodes then fit nowhere."""
    report = simulate(*UNCONFIGURED, "--seed", seed)
    assert 20 < _on_gpu_nodes(node_of(report), "web", "batch")
    assert ["default/train-1", "default/train-2", "default/train-3"] == [
        pod["pod"] for pod in report["unplaced"]
    ]


@pytest.mark.parametrize(
    ("way", "newcomers", "rush", "waiting"),
    [
        pytest.param(TAINTS, 0, 0, 6, id="taints-keep-off-who-knows-nothing"),
        pytest.param(AFFINITY, 4, 6, 0, id="affinity-takes-everybody-to-play-along"),
        pytest.param(RATINGS, 0, 6, 0, id="ratings-give-way-when-there-is-no-room"),
    ],
)
def test_pods_without_tolerations_or_affinity_on_gpu_nodes(
    way: tuple[object, ...], newcomers: int, rush: int, waiting: int
) -> None:
    """Their number by way, with few pods and with many."""
    assert newcomers == _on_gpu_nodes(node_of(simulate(*way, *NEWCOMERS)), "report")
    report = simulate(*way, *RUSH)
    assert (rush, waiting) == (
        _on_gpu_nodes(node_of(report), "report"),
        report["summary"]["unplaced"],
    )


def test_the_tainted_nodes_differ_in_the_taint_alone() -> None:
    """Without taints they equal the example's nodes."""
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    tainted = _nodes(TAINTS[0] / "nodes.yaml")
    specs = {node["metadata"]["name"]: node.pop("spec", {}) for node in tainted}
    assert _nodes(NODES) == tainted
    assert {name: {"taints": [taint]} if name.startswith("gpu") else {} for name in specs} == specs


def test_the_tolerating_pods_differ_in_the_toleration_alone() -> None:
    """Pods that need a GPU have it; the others are unchanged."""
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    expected = copy.deepcopy(_documents(PODS))
    for pod in filter(_needs_a_gpu, expected):
        pod["spec"]["tolerations"] = [toleration]
    assert expected == _documents(TAINTS[0] / "pods.yaml")


def test_the_affine_pods_differ_in_the_affinity_alone() -> None:
    """Each has one required term: nodes with a GPU, or nodes without."""
    expected = copy.deepcopy(_documents(PODS))
    for pod in expected:
        operator = "Exists" if _needs_a_gpu(pod) else "DoesNotExist"
        term = {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": operator}]}
        pod["spec"]["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
            }
        }
    assert expected == _documents(HERE / "node-affinity" / "pods.yaml")
