"""Measures the production loop: pods per second through queue, cycles and simulated binding.

Queue, cache, event handlers and loop are those of production; only the event loop runs on virtual
time. Pods arrive in bursts, as from a watch. A binding is answered after a delay, and its watch
event follows after another. `python -m benchmarks.loop` prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from time import perf_counter, process_time
from typing import Final

import msgspec

from benchmarks.objects import Objects
from benchmarks.throughput import peak_rss_mib
from benchmarks.workloads import Nodes, Workload, workload
from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod, PodCondition
from kubesched.api.meta import KubeObject
from kubesched.api.scheduling import PodGroup
from kubesched.app.collector import tune_collector
from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.simulator.virtual_loop import run

NODES: Final = 5_000
PODS: Final = 50_000
_BURST_PODS: Final = 100
_BURST_SECONDS: Final = 0.01
_ANSWER_SECONDS: Final = 0.004
_WATCH_SECONDS: Final = 0.002
_SCHEDULED: Final = PodCondition(type="PodScheduled", status="True")


class LoopSpeed(msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        nodes: Number of nodes.
        pods: Number of pods.
        bound: Number of confirmed bindings; fewer than `pods` is an error.
        virtual_seconds: Duration on the simulation's clock.
        pods_per_second: Pods per second of wall time, from the first pod to the last confirmation.
        pods_per_cpu_second: The same per second of CPU time.
        rss_mib: Peak memory of the process.
        load_seconds: CPU time to add the nodes.
        cpu_seconds: CPU time from the first pod to the last confirmation.
    """

    nodes: int
    pods: int
    bound: int
    virtual_seconds: float
    pods_per_second: float
    pods_per_cpu_second: float
    rss_mib: int
    load_seconds: float = 0.0
    cpu_seconds: float = 0.0


class BindingApi:
    """An API server that accepts every binding and sends its watch event later.

    Attributes:
        bound: Number of confirmed bindings.
        handlers: Receive the watch events.
    """

    def __init__(self) -> None:
        """Set up in the loop in which the bindings will be asked for."""
        self.bound = 0
        self._loop = asyncio.get_running_loop()
        self._answer: tuple[float, asyncio.Future[None]] | None = None
        self._unconfirmed: list[tuple[Pod, str]] = []
        self.handlers: EventHandlers | None = None

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Answer after a delay; the watch event comes later."""
        await self._answered()
        if not self._unconfirmed:
            # As a watch does, deliver all changes up to then at once.
            self._loop.call_later(_WATCH_SECONDS, self._confirm_all)
        self._unconfirmed.append((pod, node_name))

    def _answered(self) -> asyncio.Future[None]:
        """Return what ends after the delay; requests of one moment share it, and their timer."""
        now = self._loop.time()
        if self._answer is None or self._answer[0] != now:
            self._answer = now, self._loop.create_future()
            self._loop.call_later(_ANSWER_SECONDS, self._answer[1].set_result, None)
        return self._answer[1]

    def _confirm_all(self) -> None:
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        for pod, node_name in unconfirmed:
            self._confirm(pod, node_name)

    def _confirm(self, pod: Pod, node_name: str) -> None:
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        status = msgspec.structs.replace(pod.status, conditions=(_SCHEDULED,))
        assert self.handlers is not None, "nothing is bound before there are handlers"
        self.handlers.updated(pod, msgspec.structs.replace(pod, spec=spec, status=status))
        self.bound += 1

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Take it."""

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Take it."""

    async def delete_pod(self, pod: Pod) -> None:
        """Take it."""

    def record_event(self, event: EventRecord) -> None:
        """Drop it."""


def _case(nodes: int, pods: int) -> Workload:
    basic = workload("SchedulingBasic")
    return replace(basic, nodes=(Nodes(nodes),), measured=replace(basic.measured, count=pods))


async def play(nodes: Iterable[KubeObject], pods: Sequence[Pod], percentage: int = 0) -> LoopSpeed:
    """Add the nodes, then let the pods come and be bound.

    `percentage` is the configuration's percentageOfNodesToScore.
    """
    setup, api = in_tree_setup(FeatureGates()), BindingApi()
    configuration = msgspec.structs.replace(
        setup.configuration, percentage_of_nodes_to_score=percentage
    )
    scheduler, handlers = assemble(
        setup._replace(configuration=configuration), api, random=Random(1)
    )
    api.handlers = handlers
    cpu = process_time()
    for item in nodes:
        handlers.added(item)
    load_seconds = process_time() - cpu
    running = asyncio.ensure_future(scheduler.run())
    await asyncio.sleep(0)
    # As `kubesched run` does after its caches have synced.
    tune_collector()
    wall, cpu = perf_counter(), process_time()
    began = scheduler.now()
    for first in range(0, len(pods), _BURST_PODS):
        for pod in pods[first : first + _BURST_PODS]:
            handlers.added(pod)
        await asyncio.sleep(_BURST_SECONDS)
    await scheduler.drain()
    await asyncio.sleep(_WATCH_SECONDS)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    seconds = scheduler.now() - began
    scheduler.stop()
    await running
    return LoopSpeed(
        nodes=len(scheduler.cache.nodes),
        pods=len(pods),
        bound=api.bound,
        virtual_seconds=round(seconds, 3),
        pods_per_second=round(api.bound / wall, 1),
        pods_per_cpu_second=round(api.bound / cpu, 1),
        load_seconds=round(load_seconds, 2),
        cpu_seconds=round(cpu, 2),
        rss_mib=peak_rss_mib(),
    )


def measure_loop(nodes: int = NODES, pods: int = PODS) -> LoopSpeed:
    """Schedule this number of pods with the loop."""
    objects = Objects(_case(nodes, pods))
    came, _ = objects.pods(objects.workload.measured)
    return run(play(objects.cluster(), came))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)
    options = parser.parse_args(arguments)
    found = measure_loop(options.nodes, options.pods)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
