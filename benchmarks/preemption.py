"""Measures asynchronous preemption with the production loop.

Every node is full of pods of low priority, which disruption budgets protect. Pods of high priority
come in bursts; each evicts one pod and takes its place. `python -m benchmarks.preemption` prints
JSON.

Evictions, nominations and bindings are answered after a delay, and their watch events follow, as do
the changes of the budgets.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator
from random import Random
from time import process_time
from typing import Final

import msgspec
from msgspec.structs import replace

from benchmarks.loop import BindingApi
from benchmarks.throughput import peak_rss_mib
from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import Node, Pod, PodCondition
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubesched.app.collector import tune_collector
from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.assembly import assemble
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod

NODES: Final = 5_000
PREEMPTORS: Final = 5_000
PODS_PER_NODE: Final = 4
_APPS: Final = 500
_BURST_PODS: Final = 100
_BURST_SECONDS: Final = 0.05
_ANSWER_SECONDS: Final = 0.004
_WATCH_SECONDS: Final = 0.002
_PATIENCE_SECONDS: Final = 60


class PreemptionSpeed(msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        nodes: Number of nodes.
        pods: Number of pods of low priority.
        budgets: Number of disruption budgets.
        preemptors: Number of pods of high priority.
        bound: Number of these that were bound; fewer than `preemptors` is an error.
        evicted: Number of evicted pods.
        cpu_seconds: CPU time from the first preemptor to the last binding.
        preemptors_per_cpu_second: Preemptors per second of that.
        rss_mib: Peak memory of the process.
    """

    nodes: int
    pods: int
    budgets: int
    preemptors: int
    bound: int
    evicted: int
    cpu_seconds: float
    preemptors_per_cpu_second: float
    rss_mib: int


class PreemptionApi(BindingApi):
    """An API server that also deletes pods, writes nominations and keeps budgets current.

    Attributes:
        evicted: Number of deleted pods.
    """

    def __init__(self, budgets: dict[str, PodDisruptionBudget]) -> None:
        """Take the budgets, by the label `app` of their pods."""
        super().__init__()
        self.evicted = 0
        self._budgets = budgets
        self._pods: dict[str, Pod] = {}

    def create(self, pod: Pod) -> None:
        """Add a pod."""
        self._pods[pod.metadata.uid] = pod
        assert self.handlers is not None, "it runs"
        self.handlers.added(pod)

    def _confirm(self, pod: Pod, node_name: str) -> None:
        # The nomination was written after the pod came.
        super()._confirm(self._pods[pod.metadata.uid], node_name)

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Write the nomination; the watch event comes later."""
        await asyncio.sleep(_ANSWER_SECONDS)
        old = self._pods.get(pod.metadata.uid)
        if old is not None:
            self._later(self._updated, old, _patched(old, condition, nominated_node_name))

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod; the watch events come later."""
        await asyncio.sleep(_ANSWER_SECONDS)
        self.evicted += 1
        self._later(self._deleted, pod)

    @staticmethod
    def _later(change: Callable[..., None], *objects: object) -> None:
        asyncio.get_running_loop().call_later(_WATCH_SECONDS, change, *objects)

    def _updated(self, old: Pod, new: Pod) -> None:
        assert self.handlers is not None, "it runs"
        self._pods[new.metadata.uid] = new
        self.handlers.updated(old, new)

    def _deleted(self, pod: Pod) -> None:
        assert self.handlers is not None, "it runs"
        self.handlers.deleted(pod)
        app = pod.metadata.labels["app"]
        old = self._budgets[app]
        allowed = old.status.disruptions_allowed - 1
        new = replace(old, status=replace(old.status, disruptions_allowed=allowed))
        self._budgets[app] = new
        self.handlers.updated(old, new)


def _patched(pod: Pod, condition: ConditionPatch | None, nominated: str | None) -> Pod:
    status = pod.status
    if nominated is not None:
        status = replace(status, nominated_node_name=nominated)
    if condition is not None:
        written = PodCondition(
            type=condition.type,
            status=condition.status,
            reason=condition.reason,
            message=condition.message,
        )
        status = replace(status, conditions=(written,))
    return replace(pod, status=status)


def _nodes(count: int) -> Iterator[Node]:
    amounts = {"cpu": str(PODS_PER_NODE), "memory": "64Gi", "pods": "110"}
    return (make_node(f"node-{number}", allocatable=amounts) for number in range(count))


def _low_pods(nodes: int) -> Iterator[Pod]:
    for number in range(nodes * PODS_PER_NODE):
        yield make_pod(
            f"low-{number}",
            uid=f"low-{number}",
            labels={"app": f"app-{number % _APPS}"},
            node_name=f"node-{number % nodes}",
            requests={"cpu": "1", "memory": "1Gi"},
        )


def _high_pods(count: int) -> list[Pod]:
    requests = {"cpu": "1", "memory": "1Gi"}
    return [
        make_pod(f"high-{number}", uid=f"high-{number}", priority=1000, requests=requests)
        for number in range(count)
    ]


def _budget(app: str, allowed: int) -> PodDisruptionBudget:
    selector = LabelSelector(match_labels={"app": app})
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=app, namespace="default"),
        spec=PodDisruptionBudgetSpec(max_unavailable=allowed, selector=selector),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


async def play(nodes: int, preemptors: int) -> PreemptionSpeed:
    """Fill the cluster, then let the preemptors come and be bound."""
    gates = FeatureGates()
    # Half of the pods of each app may go.
    allowed = max(1, nodes * PODS_PER_NODE // _APPS // 2)
    budgets = {app: _budget(app, allowed) for app in (f"app-{at}" for at in range(_APPS))}
    api = PreemptionApi(budgets)
    scheduler, handlers = assemble(in_tree_setup(gates), api, random=Random(1))
    api.handlers = handlers
    cluster: tuple[KubeObject, ...] = (
        *_nodes(nodes),
        *budgets.values(),
        *_low_pods(nodes),
    )
    for item in cluster:
        handlers.added(item)
    running = asyncio.ensure_future(scheduler.run())
    await asyncio.sleep(0)
    # As `kubesched run` does after its caches have synced.
    tune_collector()
    pods = _high_pods(preemptors)
    cpu = process_time()
    for first in range(0, len(pods), _BURST_PODS):
        for pod in pods[first : first + _BURST_PODS]:
            api.create(pod)
        await asyncio.sleep(_BURST_SECONDS)
    for _ in range(_PATIENCE_SECONDS):
        if api.bound < preemptors:
            await asyncio.sleep(1)
    cpu = process_time() - cpu
    scheduler.stop()
    await running
    await scheduler.drain()
    return PreemptionSpeed(
        nodes=nodes,
        pods=nodes * PODS_PER_NODE,
        budgets=len(budgets),
        preemptors=preemptors,
        bound=api.bound,
        evicted=api.evicted,
        cpu_seconds=round(cpu, 2),
        preemptors_per_cpu_second=round(api.bound / cpu, 1),
        rss_mib=peak_rss_mib(),
    )


def measure(nodes: int = NODES, preemptors: int = PREEMPTORS) -> PreemptionSpeed:
    """Measure a cluster of this size."""
    return run(play(nodes, preemptors))


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--preemptors", type=int, default=PREEMPTORS)
    options = parser.parse_args()
    found = measure(options.nodes, options.preemptors)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
