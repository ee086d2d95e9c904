"""One run of the experiment: a trace, a policy and a seed, through the scheduler in a rehearsal.

The scheduler places pod after pod. A pod that fits nowhere is not tried again, because nothing ever
leaves. Of the default plugins only NodeResourcesFit and NodeAffinity filter, and none scores.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from random import Random
from statistics import fmean
from time import process_time
from typing import Any, Final

import msgspec
from baselines import BestFit, DotProduct, GpuClustering, GpuPacking, RandomNode
from fgd import FragmentationGradientDescent, TargetKind
from gpu_sharing import GPU_MILLI, WHOLE, GpuSharing
from openb_trace import (
    ARRIVING_PERCENT,
    Arrivals,
    NodeRow,
    PodRow,
    TraceError,
    arrivals,
    node_of,
    pods_of,
    read_nodes,
    read_pods,
    target_of,
)

from kubesched.config.load import load_configuration
from kubesched.framework import FeatureGates
from kubesched.framework.registry import PluginFactory
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator import virtual_loop
from kubesched.simulator.rehearsal import Rehearsal

_PODS_PER_SLICE: Final = 64

POLICIES: Final[dict[str, type[GpuSharing]]] = {
    "random": RandomNode,
    "dot-product": DotProduct,
    "clustering": GpuClustering,
    "packing": GpuPacking,
    "best-fit": BestFit,
    "fgd": FragmentationGradientDescent,
}


class Run(msgspec.Struct, frozen=True):
    """A run's outcome.

    Attributes:
        trace, policy, seed: What ran.
        pods: The pods that arrived.
        failed: Those that fitted nowhere.
        cpu_seconds: The CPU time that it took.
        allocated: Allocated GPUs in percent of all, at 0, 1, ... 130 % arrived; None where no pod
            arrived nearby.
    """

    trace: str
    policy: str
    seed: int
    pods: int
    failed: int
    cpu_seconds: float
    allocated: tuple[float | None, ...]


class FirstLoaded(Random):
    """Breaks ties in favour of the node that was loaded first."""

    def random(self) -> float:
        """Return 0.0, which stands for the first."""
        return 0.0


def run(nodes_file: Path, trace: str, pods_file: Path, policy: str, seed: int) -> Run:
    """Run one policy on one trace with one seed."""
    began = process_time()
    nodes, pods = _inputs(nodes_file, pods_file)
    arriving = arrivals(nodes, pods, seed)
    rehearsal = rehearse(arriving, policy, target_of(pods), seed)
    placed = rehearsal.outcomes.placements
    capacity = sum(node.gpus for node in nodes) * WHOLE
    return Run(
        trace,
        policy,
        seed,
        len(arriving.pods),
        len(arriving.pods) - len(placed),
        round(process_time() - began, 2),
        allocated_at(arriving.pods, placed, capacity),
    )


@lru_cache(maxsize=8)
def _inputs(nodes_file: Path, pods_file: Path) -> tuple[list[NodeRow], list[PodRow]]:
    nodes = read_nodes(nodes_file)
    if not any(node.gpus for node in nodes):
        raise TraceError(f"{nodes_file}: no node has a GPU; give a list whose nodes do")
    return nodes, read_pods(pods_file)


def rehearse(arriving: Arrivals, policy: str, target: Sequence[TargetKind], seed: int) -> Rehearsal:
    """Let the scheduler place all pods, and return the cluster."""
    gates, registry = FeatureGates(), in_tree_registry()
    registry.merge({plugin.name: PluginFactory(plugin) for plugin in POLICIES.values()})
    configuration = load_configuration(configuration_of(policy, target, seed), gates)

    async def main() -> Rehearsal:
        rehearsal = Rehearsal(configuration, registry, gates, random=FirstLoaded(0))
        # No pod is evicted for another, so none waits for the binding of the one before.
        rehearsal.scheduler.pods_per_slice = _PODS_PER_SLICE
        rehearsal.load([*map(node_of, arriving.nodes), *pods_of(arriving.pods)])
        await rehearsal.settle()
        return rehearsal

    return virtual_loop.run(main())


def configuration_of(policy: str, target: Sequence[TargetKind], seed: int) -> dict[str, Any]:
    """Return the scheduler configuration with one policy."""
    plugin = POLICIES[policy].name
    args = {"fgd": {"target": msgspec.to_builtins(target)}, "random": {"seed": seed}}.get(policy)
    filters = {"enabled": [{"name": "NodeResourcesFit"}, {"name": "NodeAffinity"}]}
    # A policy's own filter looks at GPUs.
    fit = {"name": "NodeResourcesFit", "args": {"ignoredResources": [GPU_MILLI]}}
    always = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}, {"name": plugin}]
    profile = {
        "schedulerName": "default-scheduler",
        "percentageOfNodesToScore": 100,
        "plugins": {
            "multiPoint": {"disabled": [{"name": "*"}], "enabled": always},
            "preFilter": filters,
            "filter": filters,
        },
        "pluginConfig": [*([{"name": plugin, "args": args}] if args else []), fit],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def allocated_at(
    pods: Sequence[PodRow], placed: Collection[str], capacity: int
) -> tuple[float | None, ...]:
    """Return allocated GPUs in percent for each whole percent of arrived ones.

    There is a sample after each pod, whether it asks for GPUs and was placed or not. A value is the
    mean of all samples that round to its percent, as in the paper's table.
    """
    samples: list[list[float]] = [[] for _ in range(ARRIVING_PERCENT + 1)]
    arrived = used = 0
    for pod in pods:
        arrived += pod.gpu_total
        used += pod.gpu_total * (pod.name in placed)
        at = min(round(100 * arrived / capacity), ARRIVING_PERCENT)
        samples[at].append(round(100 * used / capacity, 2))
    # Where no pod arrives, the neighbours count, as in the paper.
    around = [
        found or [*chain(*samples[max(at - 1, 0) : at + 2])] for at, found in enumerate(samples)
    ]
    return tuple(round(fmean(found), 2) if found else None for found in around)
