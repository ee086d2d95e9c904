"""Measures a simulation of a GPU trace with its arrival times, spread and packed.

The openb trace is not part of the repository; without its directory the small examples/openb-like
is used. `python -m benchmarks.openb --trace DIRECTORY` prints JSON.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

import msgspec

from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario

_LOOK_ALIKE: Final = Path(__file__).resolve().parent.parent / "examples" / "openb-like"
_TRACE_FILES: Final = ("openb_node_list_all_node.csv", "openb_pod_list_default.csv.gz")
_LOOK_ALIKE_FILES: Final = ("nodes.csv", "pods.csv")
_PACK: Final[dict[str, Any]] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [
                                {"name": "nvidia.com/gpu", "weight": 10},
                                {"name": "cpu", "weight": 1},
                                {"name": "memory", "weight": 1},
                            ],
                        }
                    },
                }
            ],
        }
    ],
}


class Replay(msgspec.Struct, frozen=True):
    """The run of one configuration.

    Attributes:
        nodes: Number of nodes.
        pods: Number of pods.
        bound: Number of bound pods.
        virtual_days: Duration of the trace.
        seconds: Wall time.
        cpu_seconds: CPU time.
        gpu_fragmented: The share of free GPUs that an average pod could not use; None if unknown.
    """

    nodes: int
    pods: int
    bound: int
    virtual_days: float
    seconds: float
    cpu_seconds: float
    gpu_fragmented: float | None


def files(directory: Path | None) -> tuple[Path, Path]:
    """Return the paths of the lists of nodes and pods."""
    if directory is None:
        return _LOOK_ALIKE / _LOOK_ALIKE_FILES[0], _LOOK_ALIKE / _LOOK_ALIKE_FILES[1]
    return directory / _TRACE_FILES[0], directory / _TRACE_FILES[1]


def replay(nodes: Path, pods: Path, days: int, configuration: dict[str, Any]) -> Replay:
    """Simulate a trace with a scheduler configuration; an empty one is the default."""
    scenario = load_scenario(
        {
            "version": 1,
            "name": pods.stem,
            "duration": f"{24 * days}h",
            "nodes": [{"trace": str(nodes)}],
            "workloads": [{"name": "openb", "trace": {"pods": str(pods)}}],
            "scheduler": {"configuration": configuration},
        }
    )
    wall, cpu = perf_counter(), process_time()
    report = simulate(scenario, in_tree_registry())
    wall, cpu = perf_counter() - wall, process_time() - cpu
    gpus = [
        each.mean_fragmentation for each in report.resources if each.resource == "nvidia.com/gpu"
    ]
    return Replay(
        nodes=report.totals.nodes,
        pods=report.totals.arrived,
        bound=report.totals.bound,
        virtual_days=round(report.duration_seconds / 86_400, 1),
        seconds=round(wall, 2),
        cpu_seconds=round(cpu, 2),
        gpu_fragmented=gpus[0] if gpus else None,
    )


def measure_openb(directory: Path | None = None, days: int = 150) -> dict[str, Replay]:
    """Simulate the trace spread and packed."""
    nodes, pods = files(directory)
    configurations = {"spread": {}, "pack": _PACK}
    return {name: replay(nodes, pods, days, each) for name, each in configurations.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate the trace and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, metavar="DIRECTORY")
    parser.add_argument("--days", type=int, default=150)
    options = parser.parse_args(arguments)
    found = measure_openb(options.trace, options.days)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
