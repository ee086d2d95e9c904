"""Measures simulations of clusters with more pods than room.

Web pods and batch pods run for six hours on nodes of two zones, and one zone is drained for half an
hour. `python -m benchmarks.overload NODES --load SHARE` prints JSON. At a load of 1.0 the requests
of all pods that exist on average equal what the nodes have to give; at more, pending pods pile up.
"""

from __future__ import annotations

import argparse
import gc
import sys
from time import process_time
from typing import Any, Final

import msgspec

from benchmarks.throughput import peak_rss_mib
from kubesched.cli.main import COLLECTOR_THRESHOLDS
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario

FULL: Final = 1.0
OVER: Final = 1.2
CASES: Final = ((10, FULL), (20, FULL), (80, FULL), (80, OVER), (1000, OVER))
"""Number of nodes and load of each row."""
HOURS: Final = 6
_ZONE: Final = "topology.kubernetes.io/zone"
_NODE_CPU: Final = 16
_WEB_SHARE: Final = 0.2
_WEB_CPU: Final = 2
_BATCH_PER_CPU_HOUR: Final = 2


class Overload(msgspec.Struct, frozen=True):
    """One simulation.

    Attributes:
        nodes: Number of nodes.
        load: What the pods request on average, as a share of what the nodes have.
        virtual_hours: Duration on the simulation's clock.
        pods: Number of pods created.
        bound: Number of bindings.
        pending: Number of pods pending at the end.
        attempts: Number of scheduling cycles.
        cpu_seconds: CPU time.
        peak_rss_mib: Peak memory of the process.
        digest: SHA-256 of the decision log.
    """

    nodes: int
    load: float
    virtual_hours: float
    pods: int
    bound: int
    pending: int
    attempts: int
    cpu_seconds: float
    peak_rss_mib: int
    digest: str


def scenario(nodes: int, load: float, hours: float) -> dict[str, Any]:
    """Return the scenario; batch pods run for half an hour on average."""
    cpu = nodes * _NODE_CPU
    web = round(cpu * _WEB_SHARE / _WEB_CPU)
    batch_cpu = cpu * (load - _WEB_SHARE)
    return {
        "version": 1,
        "name": f"{nodes} nodes at {load:.0%}",
        "duration": f"{hours}h",
        "seed": 1,
        "nodes": [
            {
                "name": "node",
                "count": nodes,
                "allocatable": {"cpu": _NODE_CPU, "memory": "64Gi"},
                "zones": ["a", "b"],
            }
        ],
        "workloads": [
            {
                "name": "web",
                "deployment": {"replicas": web},
                "requests": {"cpu": _WEB_CPU, "memory": "4Gi"},
            },
            {
                "name": "batch",
                "pods": {
                    "perHour": batch_cpu * _BATCH_PER_CPU_HOUR,
                    "runTime": {"exponential": "30m"},
                    "restart": True,
                },
                "requests": {"cpu": 1, "memory": "2Gi"},
            },
        ],
        "events": [
            {"at": f"{hours / 2}h", "drain": {"labels": {_ZONE: "a"}}},
            {"at": f"{hours / 2 + hours / 12}h", "uncordon": {}},
        ],
    }


def measure(nodes: int, load: float, hours: float = HOURS) -> Overload:
    """Run the simulation and return its figures."""
    # As in the command `kubesched simulate`.
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    loaded = load_scenario(scenario(nodes, load, hours))
    began = process_time()
    report = simulate(loaded, in_tree_registry())
    return Overload(
        nodes=nodes,
        load=load,
        virtual_hours=hours,
        pods=report.totals.arrived,
        bound=report.totals.bound,
        pending=report.totals.pending,
        attempts=report.totals.attempts,
        cpu_seconds=round(process_time() - began, 1),
        peak_rss_mib=peak_rss_mib(),
        digest=report.decision_digest,
    )


def main() -> None:
    """Measure one size and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nodes", type=int)
    parser.add_argument("--load", type=float, default=OVER)
    parser.add_argument("--hours", type=float, default=HOURS)
    options = parser.parse_args()
    found = measure(options.nodes, options.load, options.hours)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
