"""The example plugin Coscheduling, in the running scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.api.field_errors import ConfigError
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
from kubesched.testing.handle import FakeHandle
from tests.scheduler.running import Running, running

from .running import plugin_module

GROUP = "pod-group.scheduling.sigs.k8s.io"


def _plugin() -> Any:
    return plugin_module("coscheduling").Coscheduling


def _running(args: Mapping[str, object] | None = None) -> AbstractAsyncContextManager[Running]:
    registry = Registry(*in_tree_registry().values(), _plugin())
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}},
        "pluginConfig": [{"name": "Coscheduling", "args": dict(args or {})}],
    }
    return running(registry=registry, profile=profile)


def _member(name: str, group: str = "job", enough: str = "3", **fields: Any) -> Pod:
    metadata = {"annotations": {f"{GROUP}/min-available": enough}}
    return make_pod(name, labels={GROUP: group}, metadata=metadata, requests={"cpu": "1"}, **fields)


def test_pods_of_a_group_wait_for_each_other() -> None:
    """Two of three wait at Permit; with the third all are bound; a single pod does not wait."""

    async def main() -> None:
        async with _running() as cluster:
            cluster.api.create(make_node("node"), make_pod("single"))
            cluster.api.create(_member("p1"), _member("p2"), _member("q1", "other"))
            await cluster.settle()
            assert ({"single": "node"}, ["p1", "p2", "q1"]) == (cluster.nodes, cluster.waiting)
            cluster.api.create(_member("p3"))
            await cluster.settle()
            assert {"single", "p1", "p2", "p3"} == set(cluster.nodes)
            assert ["q1"] == cluster.waiting

    run(main())


def test_bound_pods_of_the_group_count() -> None:
    """A pod that is created again after the group was complete is bound at once."""

    async def main() -> None:
        async with _running() as cluster:
            cluster.api.create(make_node("node"))
            cluster.api.create(*(_member(f"p{i}") for i in range(3)))
            await cluster.settle()
            cluster.api.delete("p0")
            cluster.api.create(_member("again"))
            await cluster.settle()
            assert {"p1", "p2", "again"} == set(cluster.nodes)

    run(main())


def test_pods_that_time_out_free_their_nodes() -> None:
    """All of the group, and others use the room."""

    async def main() -> None:
        async with _running({"permitWaitingTimeSeconds": 10}) as cluster:
            cluster.api.create(make_node("node", allocatable={"cpu": "2"}), _member("p0"))
            await cluster.settle(5)
            cluster.api.create(_member("p1"), _member("p2"))
            await cluster.settle(4)
            assert ["p0", "p1"] == cluster.waiting
            cluster.api.create(make_pod("single", requests={"cpu": "1"}))
            await cluster.settle(20)
            assert {"single": "node"} == cluster.nodes
            events = "\n".join(cluster.api.events)
            assert "p0: 0/1 nodes are available: 1 rejected due to timeout after wait" in events
            assert "p1: 0/1 nodes are available: 1 pod p0 of the same group gave up." in events

    run(main())


def test_a_group_that_timed_out_is_placed_later() -> None:
    """When there is room, the first pod activates the others."""

    async def main() -> None:
        async with _running({"permitWaitingTimeSeconds": 10}) as cluster:
            cluster.api.create(make_node("node", allocatable={"cpu": "2"}))
            cluster.api.create(*(_member(f"p{i}") for i in range(3)))
            await cluster.settle(60)
            assert {} == cluster.nodes
            cluster.api.create(make_node("other", allocatable={"cpu": "1"}))
            await cluster.settle(30)
            assert {"p0", "p1", "p2"} == set(cluster.nodes)

    run(main())


def test_a_wrong_annotation_rejects_the_pod() -> None:
    """The message names it."""

    async def main() -> str:
        async with _running() as cluster:
            cluster.api.create(make_node("node"), _member("p", enough="many"))
            await cluster.settle()
            assert {} == cluster.nodes
            return cluster.condition("p")[1]

    assert f"annotation {GROUP}/min-available is not a number" in run(main())


def test_unknown_arguments_are_field_errors() -> None:
    """With their path."""
    with pytest.raises(ConfigError):
        _plugin().decode_args({"waits": 1}, FakeHandle(), "args")
