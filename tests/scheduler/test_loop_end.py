"""The end of a process does not wait for others."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from kubesched.api.core import Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PermitPlugin, PreBindPlugin
from kubesched.framework.registry import Registry
from kubesched.framework.status import SKIP, SUCCESS, Code, Status
from kubesched.plugins.registry import in_tree_registry
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import Running, running, with_scheduler

PRE_BIND_SECONDS = {"claim-nobody-binds": 600.0, "claim-soon-bound": 0.2}


class Waits(PermitPlugin, PreBindPlugin):
    """Lets some pods wait, by name."""

    name: ClassVar = "Waits"

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let one pod wait for ten minutes."""
        status = Status(Code.WAIT, ("wait",)) if pod.name == "gang-member" else SUCCESS
        return status, 600.0

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return Skip for all but some pods."""
        return SUCCESS if pod.name in PRE_BIND_SECONDS else SKIP

    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Wait."""
        await asyncio.sleep(PRE_BIND_SECONDS[pod.name])
        return SUCCESS


@on_virtual_time
async def test_the_end_cancels_waits_but_not_writes() -> None:
    """Pods that are ready soon are bound; bindings in progress are awaited."""
    registry = in_tree_registry()
    registry.merge(Registry(Waits))
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "Waits"}]}},
    }
    async with running(registry=registry, profile=profile) as cluster:
        bind = cluster.api.bind

        async def bind_slowly(pod: Pod, node_name: str) -> None:
            await asyncio.sleep(5)
            await bind(pod, node_name)

        cluster.api.bind = bind_slowly  # type: ignore[method-assign]
        cluster.api.create(make_node("node"))
        cluster.api.create(*map(make_pod, ("gang-member", "plain", *PRE_BIND_SECONDS)))
        await asyncio.sleep(0.1)
        assert 4 == len(cluster.scheduler.bindings)
        began = asyncio.get_running_loop().time()
        await cluster.scheduler.end_preparations(0.5)
        assert 0.5 == round(asyncio.get_running_loop().time() - began, 6)
        await cluster.scheduler.drain()
        assert {"plain", "claim-soon-bound"} == cluster.nodes.keys()
        assert {"Scheduled"} == {event.partition(" ")[0] for event in cluster.api.events}
        assert [] == cluster.waiting
        assert ("", "") == cluster.condition("claim-nobody-binds")


@with_scheduler()
async def test_the_end_is_immediate_without_bindings(cluster: Running) -> None:
    """No time passes."""
    began = asyncio.get_running_loop().time()
    await cluster.scheduler.end_preparations(0.5)
    assert 0.0 == asyncio.get_running_loop().time() - began
