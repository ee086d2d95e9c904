"""The loop decides no further pod while the API server has many Bindings to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import ClassVar, Final

from kubesched.api.core import Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PermitPlugin
from kubesched.framework.registry import Registry
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.loop import Scheduler
from kubesched.simulator.virtual_loop import run
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import Running, running

AT_ONCE: Final = 4
PODS: Final = 100


class Hesitates(PermitPlugin):
    """Lets pods wait if their name contains `waits`."""

    name: ClassVar = "Hesitates"

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let some pods wait for ten minutes."""
        return (Status(Code.WAIT, ("wait",)) if "waits" in pod.name else SUCCESS), 600.0


class SlowServer:
    """Answers Bindings after a second, or never.

    Attributes:
        unanswered: The number of Bindings without an answer.
        most: The largest number there was.
        answers: Whether it answers at all.
    """

    def __init__(self, cluster: Running) -> None:
        self.unanswered = self.most = 0
        self.answers = True
        self._bind = cluster.api.bind
        cluster.api.bind = self.bind  # type: ignore[method-assign]

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Answer after a second, or never."""
        self.unanswered += 1
        self.most = max(self.most, self.unanswered)
        try:
            await (asyncio.sleep(1) if self.answers else asyncio.Event().wait())
            await self._bind(pod, node_name)
        finally:
            self.unanswered -= 1


@asynccontextmanager
async def slow(at_once: float = AT_ONCE) -> AsyncIterator[tuple[Running, SlowServer]]:
    """Run a scheduler on four nodes, with a slow server and the plugin."""
    registry = in_tree_registry()
    registry.merge(Registry(Hesitates))
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "Hesitates"}]}},
    }
    async with running(registry=registry, profile=profile, bindings_at_once=at_once) as cluster:
        server = SlowServer(cluster)
        cluster.api.create(*(make_node(f"node-{number}") for number in range(4)))
        yield cluster, server


def names(prefix: str, count: int = PODS) -> list[Pod]:
    """Build pods."""
    return [make_pod(f"{prefix}-{number}") for number in range(count)]


def test_the_limit_changes_no_decision() -> None:
    """All pods are bound as without a limit, a few at a time."""

    async def main(at_once: float) -> tuple[list[str], int]:
        async with slow(at_once) as (cluster, server):
            cluster.api.create(*names("pod"))
            await cluster.settle(PODS)
            return sorted(cluster.api.bindings), server.most

    bindings, most = run(main(AT_ONCE))
    unlimited, most_unlimited = run(main(inf))
    assert unlimited == bindings
    assert PODS == len(bindings) == most_unlimited
    assert AT_ONCE <= most <= AT_ONCE + Scheduler.pods_per_slice


@on_virtual_time
async def test_refused_bindings_are_answered() -> None:
    """They no longer count."""
    async with slow() as (cluster, _server):
        cluster.api.refused = {f"refused-{number}" for number in range(PODS)}
        cluster.api.create(*names("refused"), *names("pod"))
        await cluster.settle(PODS)
        cluster.api.refused.clear()
        bound = len(cluster.api.bindings)
        await cluster.settle(10 * PODS)
        assert (PODS, 2 * PODS) == (bound, len(cluster.api.bindings))


@on_virtual_time
async def test_pods_that_wait_on_permit_do_not_count() -> None:
    """Other pods are bound meanwhile, and they are bound once allowed."""
    async with slow() as (cluster, _server):
        cluster.api.create(*names("waits"), *names("pod"))
        await cluster.settle(PODS)
        bound, waiting = len(cluster.api.bindings), list(cluster.scheduler.waiting_pods)
        assert PODS == len(waiting)
        for pod in waiting:
            pod.allow("Hesitates")
        await cluster.settle(PODS)
        assert (PODS, 2 * PODS) == (bound, len(cluster.api.bindings))


@on_virtual_time
async def test_a_loop_ends_with_unanswered_bindings() -> None:
    """Whether the process is stopped or has lost its lease."""
    async with slow() as (cluster, server):
        server.answers = False
        cluster.api.create(*names("pod"))
        await asyncio.sleep(1)
        under_way = len(cluster.scheduler.bindings)
        assert AT_ONCE <= under_way == server.unanswered < PODS
        lost = asyncio.ensure_future(cluster.scheduler.run())
        await asyncio.sleep(1)
        lost.cancel()
        await asyncio.wait([lost])
        assert lost.cancelled()
        # The end of the block stops the other run, and waits for it.
        cluster.scheduler.stop()
        for task in cluster.scheduler.bindings.values():
            task.cancel()
        await asyncio.sleep(1)
        assert (0, 0) == (len(cluster.scheduler.bindings), server.unanswered)
        assert [] == cluster.api.bindings
