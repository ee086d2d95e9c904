"""One run of the experiment: a trace, a policy and a seed, through the scheduler in a rehearsal.

The scheduler places pod after pod. A pod that fits nowhere is not tried again, because nothing ever
leaves. `kubesched sweep openb.yaml` does all runs.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final

import msgspec
from baselines import RandomNode
from fgd import FragmentationGradientDescent
from gpu_sharing import WHOLE
from msgspec.structs import replace
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

from kubesched.config.types import PluginConfig
from kubesched.framework.registry import SchedulerSetup
from kubesched.simulator import virtual_loop
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.sweep.functions import SweepCase

_PODS_PER_SLICE: Final = 256


class FirstLoaded(Random):
    """Breaks ties in favour of the node that was loaded first."""

    def random(self) -> float:
        """Return 0.0, which stands for the first."""
        return 0.0


def run(case: SweepCase) -> dict[str, float | None]:
    """Return what came of a run: pods, failed pods, and `at_0` to `at_130`.

    `at_N` is the share of allocated GPUs, in percent, when pods have asked for N percent.
    """
    if len(case.files) != 2 or len(case.plugins) != 1:
        raise TraceError("a run needs a list of pods, a list of nodes, and one policy")
    pods_file, nodes_file = case.files
    nodes, pods = _inputs(nodes_file, pods_file)
    arriving = arrivals(nodes, pods, case.seed)
    placed = rehearse(arriving, _with_arguments(case, pods)).outcomes.placements
    capacity = sum(node.gpus for node in nodes) * WHOLE
    allocated = allocated_at(arriving.pods, placed, capacity)
    return {
        "pods": len(arriving.pods),
        "failed": len(arriving.pods) - len(placed),
        **{f"at_{percent}": value for percent, value in enumerate(allocated)},
    }


@lru_cache(maxsize=8)
def _inputs(nodes_file: Path, pods_file: Path) -> tuple[list[NodeRow], list[PodRow]]:
    nodes = read_nodes(nodes_file)
    if not any(node.gpus for node in nodes):
        raise TraceError(f"{nodes_file}: no node has a GPU; give a list whose nodes do")
    return nodes, read_pods(pods_file)


def _with_arguments(case: SweepCase, pods: Sequence[PodRow]) -> SchedulerSetup:
    """Return the scheduler; FGD gets the trace's workload as its target, Random the seed."""
    (policy,) = case.plugins
    args: dict[str, object] = {}
    if policy.name == FragmentationGradientDescent.name:
        args = {"target": msgspec.to_builtins(target_of(pods))}
    elif policy.name == RandomNode.name:
        args = {"seed": case.seed}
    (profile,) = case.scheduler.configuration.profiles
    config = (*profile.plugin_config, PluginConfig(policy.name, args))
    profiles = (replace(profile, plugin_config=config),)
    return case.scheduler._replace(
        configuration=replace(case.scheduler.configuration, profiles=profiles)
    )


def rehearse(arriving: Arrivals, scheduler: SchedulerSetup) -> Rehearsal:
    """Let the scheduler place all pods, and return the cluster."""

    async def main() -> Rehearsal:
        rehearsal = Rehearsal(scheduler, random=FirstLoaded(0))
        # No pod is evicted for another, so none waits for the binding of the one before.
        rehearsal.scheduler.pods_per_slice = _PODS_PER_SLICE
        rehearsal.load([*map(node_of, arriving.nodes), *pods_of(arriving.pods)])
        await rehearsal.settle()
        return rehearsal

    return virtual_loop.run(main())


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
