"""Measures how the cost of a pod grows with the cluster: SchedulingBasic at four sizes.

All clusters are in one process and take turns of a hundred pods, so that other load on the machine
affects all of them equally. `python -m benchmarks.scaling` prints JSON.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from time import process_time
from typing import Final

import msgspec

from benchmarks.objects import Objects
from benchmarks.throughput import new_cluster
from benchmarks.workloads import Nodes, workload
from kubesched.api.core import Pod
from kubesched.scheduler.decision import Placed

SIZES: Final = (500, 5000, 15_000, 100_000)
_REPEATS: Final = 3
_TURNS: Final = 10
_PODS_PER_TURN: Final = 100


class Scaling(msgspec.Struct, frozen=True):
    """Microseconds of CPU time per pod, from the decoded object to the assumed pod.

    Attributes:
        pod_us: Number of nodes -> the median of the repeats.
        ratios: Largest size relative to 5,000 nodes (or the smallest size), one per repeat.
        ratio: Their median.
    """

    pod_us: dict[int, float]
    ratios: tuple[float, ...]
    ratio: float


class _Size:
    """SchedulingBasic on this number of nodes, a few pods at a time."""

    def __init__(self, nodes: int, pods: int) -> None:
        case = workload("SchedulingBasic")
        objects = Objects(replace(case, nodes=(Nodes(nodes),)))
        self.cluster = new_cluster()
        self.cluster.load(objects.cluster())
        first, _ = objects.pods(case.before[0])
        self._pods = iter(objects.pods(replace(case.measured, count=pods))[0])
        for pod in first:
            self._place(pod)

    def place(self, pods: int) -> float:
        """Place this number of pods; return the CPU seconds it took."""
        before = process_time()
        for _ in range(pods):
            self._place(next(self._pods))
        return process_time() - before

    def _place(self, pod: Pod) -> None:
        info = self.cluster.add_pending(pod)
        decision = self.cluster.schedule_one(info)
        assert isinstance(decision, Placed), "the benchmark's pods fit"
        self.cluster.bind(info, decision.node_name)


def measure_scaling(sizes: Sequence[int] = SIZES, *, turns: int = _TURNS) -> Scaling:
    """Measure the cost of a pod for each number of nodes."""
    pods = _REPEATS * turns * _PODS_PER_TURN
    clusters = {nodes: _Size(nodes, pods) for nodes in sizes}
    repeats = [_repeat(clusters, turns) for _ in range(_REPEATS)]
    standard = 5000 if 5000 in sizes else min(sizes)
    ratios = tuple(round(each[max(sizes)] / each[standard], 2) for each in repeats)
    pod_us = {nodes: round(median(each[nodes] for each in repeats), 2) for nodes in sizes}
    return Scaling(pod_us, ratios, median(ratios))


def _repeat(clusters: dict[int, _Size], turns: int) -> dict[int, float]:
    seconds = dict.fromkeys(clusters, 0.0)
    for _ in range(turns):
        for nodes, cluster in clusters.items():
            seconds[nodes] += cluster.place(_PODS_PER_TURN)
    return {nodes: spent / (turns * _PODS_PER_TURN) * 1e6 for nodes, spent in seconds.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--turns", type=int, default=_TURNS)
    options = parser.parse_args(arguments)
    found = measure_scaling(options.sizes, turns=options.turns)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
