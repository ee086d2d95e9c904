"""Measures time and memory of a long simulation.

A cluster of 1,000 nodes runs for 10,000 virtual hours: pods of three priorities arrive and end, a
deployment scales up and down, nodes are drained and fail. `python -m benchmarks.long` prints JSON.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

import msgspec

from benchmarks.throughput import peak_rss_mib
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario

HOURS: Final = 10_000
NODES: Final = 1_000
SAMPLES: Final = 40
PODS_PER_HOUR: Final = 20
_FLAT_SHARE: Final = 0.1
_SECONDS_PER_HOUR: Final = 3600
_MEBIBYTE: Final = 1 << 20
_STATM: Final = Path("/proc/self/statm")


class LongRun(msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        nodes: Number of nodes.
        virtual_hours: Duration on the simulation's clock.
        pods: Number of pods created.
        bound: Number of bindings.
        decisions: Number of decisions.
        seconds: Wall time.
        cpu_seconds: CPU time.
        rss_mib: Memory of the process, sampled after equal numbers of decisions; empty if the
            system does not report it.
        peak_rss_mib: Peak memory.
        growth: The mean of the last quarter of the samples over that of the second, minus 1.
        is_flat: Whether that is less than a tenth.
    """

    nodes: int
    virtual_hours: int
    pods: int
    bound: int
    decisions: int
    seconds: float
    cpu_seconds: float
    rss_mib: tuple[float, ...]
    peak_rss_mib: int
    growth: float
    is_flat: bool


class MemoryLog:
    """Samples the memory of this process as decisions are made.

    Attributes:
        samples: Mebibytes.
    """

    def __init__(self, every: int) -> None:
        self.samples: list[float] = []
        self._every = every
        self._lines = 0

    def write(self, _line: bytes) -> None:
        """Count a line of the decision log."""
        self._lines += 1
        if self._lines % self._every == 0 and _STATM.exists():
            pages = int(_STATM.read_text().split()[1])
            self.samples.append(round(pages * os.sysconf("SC_PAGE_SIZE") / _MEBIBYTE, 1))


def growth(samples: Sequence[float]) -> float:
    """Return by what share the mean of the last quarter of samples exceeds that of the second.

    The first quarter is left out, because the cluster is filling up.
    """
    quarter = len(samples) // 4
    if not quarter:
        return 0.0
    early = sum(samples[quarter : 2 * quarter]) / quarter
    late = sum(samples[-quarter:]) / quarter
    return round(late / early - 1, 4)


def scenario(nodes: int, hours: int) -> dict[str, Any]:
    """Return the scenario; only the number of nodes depends on the size."""
    batch = {"runTime": {"exponential": "20h"}, "restart": True}
    return {
        "version": 1,
        "name": f"{hours:,} hours of {nodes:,} nodes",
        "duration": f"{hours}h",
        "seed": 1,
        "nodes": [
            {
                "name": "node",
                "count": nodes,
                "allocatable": {"cpu": 16, "memory": "64Gi"},
                "zones": ["a", "b", "c"],
            }
        ],
        "priorityClasses": [{"name": "high", "value": 1000}, {"name": "low", "value": -10}],
        "workloads": [
            {
                "name": "batch",
                "pods": {"perHour": PODS_PER_HOUR * 0.7, **batch},
                "requests": {"cpu": 2, "memory": "4Gi"},
            },
            {
                "name": "urgent",
                "pods": {"perHour": PODS_PER_HOUR * 0.1, **batch},
                "requests": {"cpu": 8, "memory": "32Gi"},
                "priorityClassName": "high",
            },
            {
                "name": "background",
                "pods": {"perHour": PODS_PER_HOUR * 0.2, **batch},
                "requests": {"cpu": 1, "memory": "1Gi"},
                "priorityClassName": "low",
            },
            {
                "name": "web",
                "deployment": {
                    "replicas": 60,
                    "scale": [
                        {"at": f"{at}h", "replicas": 40 + 40 * (at // 100 % 2)}
                        for at in range(100, hours, 100)
                    ],
                },
                "disruptionBudget": {"maxUnavailable": "10%"},
                "requests": {"cpu": 1, "memory": "2Gi"},
            },
        ],
        "events": [
            {"at": "10h", "every": "24h", "drain": {"count": 2}},
            {"at": "14h", "every": "24h", "uncordon": {}},
            {"at": "20h", "every": "100h", "fail": {"count": 1, "duration": "2h"}},
        ],
    }


def measure_long(nodes: int = NODES, hours: int = HOURS) -> LongRun:
    """Run the simulation and return its figures."""
    found = load_scenario(scenario(nodes, hours))
    # A placed pod is two lines of the log: decided and bound.
    memory = MemoryLog(max(1, 2 * PODS_PER_HOUR * hours // SAMPLES))
    wall, cpu = perf_counter(), process_time()
    report = simulate(found, in_tree_registry(), write_decision=memory.write)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    grown = growth(memory.samples)
    return LongRun(
        nodes=report.totals.nodes,
        virtual_hours=round(report.duration_seconds / _SECONDS_PER_HOUR),
        pods=report.totals.arrived,
        bound=report.totals.bound,
        decisions=report.totals.attempts,
        seconds=round(wall, 1),
        cpu_seconds=round(cpu, 1),
        rss_mib=tuple(memory.samples),
        peak_rss_mib=peak_rss_mib(),
        growth=grown,
        is_flat=grown < _FLAT_SHARE,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--hours", type=int, default=HOURS)
    options = parser.parse_args(arguments)
    found = measure_long(options.nodes, options.hours)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
