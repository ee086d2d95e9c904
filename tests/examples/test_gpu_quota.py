"""The example plugin GpuQuotas, which reads a custom resource, from its files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from kubesched.api.codec import decode_object
from kubesched.api.meta import KubeObject
from kubesched.inputs.loading import load_scheduler
from kubesched.inputs.sources import SchedulerOptions
from kubesched.testing.builders import make_node, make_pod
from tests.cli.cluster import run
from tests.loops import on_virtual_time
from tests.scheduler.running import running

from .running import EXAMPLES

PLUGIN = f"{EXAMPLES / 'plugins' / 'gpu_quota.py'}:GpuQuotas"
CLUSTER = EXAMPLES / "plugins" / "gpu_quota.yaml"
GPU = "nvidia.com/gpu"


def test_the_quota_is_read_from_the_file() -> None:
    """One pod is placed, the other one exceeds the quota."""
    result = run("simulate", CLUSTER, "--plugin", PLUGIN, "-o", "json")
    assert (0, "") == (result.exit_code, result.stderr)
    report = json.loads(result.stdout)
    assert ["research/train-0"] == [one["pod"] for one in report["placements"]]
    assert "GpuQuota research allows 1 GPUs, 1 are in use" in result.stdout


def test_runs_of_a_sweep_find_the_quota(tmp_path: Path) -> None:
    """The plugin is loaded for each run, the cluster once."""
    results = tmp_path / "results.csv"
    result = run(
        *("sweep", "--input", CLUSTER, "--plugin", PLUGIN),
        *("--seeds", "1-2", "--jobs", "1", "-o", results),
    )
    assert 0 == result.exit_code, result.stderr
    with results.open(encoding="utf-8") as rows:
        assert ["1", "1"] == [row["summary.placed"] for row in csv.DictReader(rows)]


def quota(namespace: str, gpus: int) -> KubeObject:
    """Return a quota."""
    return decode_object(
        {
            "apiVersion": "example.com/v1",
            "kind": "GpuQuota",
            "metadata": {"name": "gpus", "namespace": namespace},
            "spec": {"gpus": gpus},
        }
    )


@pytest.mark.parametrize(("namespace", "bound"), [("default", ["a", "b"]), ("other", ["a"])])
@on_virtual_time
async def test_a_changed_quota_wakes_the_pods_of_its_namespace(
    namespace: str, bound: list[str]
) -> None:
    """Others keep waiting."""
    registry = load_scheduler(SchedulerOptions(plugins=(PLUGIN,))).registry
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "GpuQuotas"}]}}}
    async with running(registry=registry, profile=profile) as cluster:
        handlers = cluster.api.handlers
        handlers.added(quota("default", 1))
        handlers.added(quota("other", 1))
        cluster.api.create(make_node("node", allocatable={"cpu": "8", "pods": "110", GPU: "4"}))
        cluster.api.create(*(make_pod(name, requests={GPU: "1"}) for name in ("a", "b")))
        await cluster.settle(10)
        assert ["a"] == list(cluster.nodes)
        handlers.updated(quota(namespace, 1), quota(namespace, 2))
        await cluster.settle(10)
        assert bound == list(cluster.nodes)
