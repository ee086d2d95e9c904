"""A scheduler that binds through its API client alone, as in a dry run."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import BindPlugin, PostBindPlugin, PreBindPlugin
from kubesched.framework.registry import Registry
from kubesched.framework.status import SUCCESS, Status, failure
from kubesched.plugins.registry import in_tree_registry
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import running


class Writes(PreBindPlugin, BindPlugin, PostBindPlugin):
    """Would write before, instead of and after the Binding."""

    name: ClassVar = "Writes"
    asked: ClassVar[list[str]] = []

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return success: there is something to write."""
        return SUCCESS

    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return a failure."""
        self.asked.append("pre_bind")
        return failure("there is nothing to write to")

    async def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Bind by other means."""
        self.asked.append("bind")
        return SUCCESS

    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Record the bound pod."""
        self.asked.append("post_bind")


@on_virtual_time
async def test_plugins_that_may_write_do_not_run() -> None:
    """The API client binds; no plugin runs from PreBind on."""
    registry = in_tree_registry()
    registry.merge(Registry(Writes))
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Writes"}], "disabled": [{"name": "DefaultBinder"}]}
        },
    }
    Writes.asked.clear()
    async with running(registry=registry, profile=profile) as cluster:
        cluster.scheduler.bind_through_api_only()
        cluster.api.create(make_node("node"), make_pod("pod"))
        await asyncio.sleep(0.1)
        assert {"pod": "node"} == cluster.nodes
    assert [] == Writes.asked
