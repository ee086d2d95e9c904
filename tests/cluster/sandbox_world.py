"""A server with kubelets on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar

from kubesched.apiserver.server import ApiServer
from kubesched.cluster.nodes import NodeKeeper, NodeTemplate
from kubesched.sandbox.local_client import LocalClient
from kubesched.sandbox.pod_reports import PodLatencies, kubelets_of
from kubesched.simulator.virtual_loop import run
from tests.loops import as_test

T = TypeVar("T")
Json = dict[str, Any]
CAPACITY = {"cpu": "4", "memory": "16Gi", "pods": "110"}
USUAL = PodLatencies()
START = datetime(2026, 1, 1, tzinfo=UTC)


def _now() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())


class World:
    """A server, its nodes and their kubelets.

    Attributes:
        client: Reads and writes as a user with all rights.
    """

    def __init__(self, latencies: PodLatencies, **options: bool) -> None:
        self.server = ApiServer(now=_now, random=Random(1))
        self.client = LocalClient(self.server.registry, "tester")
        self.keeper = NodeKeeper(self.client, CAPACITY, **options)
        self.kubelets = kubelets_of(self.client, latencies, Random(2))

    def add_nodes(self, count: int) -> None:
        """Create nodes `node-0` and so on."""
        for node in NodeTemplate(CAPACITY).nodes(count):
            self.client.create("nodes", node)

    def add_pod(self, name: str = "p", node: str = "node-0", **spec: Any) -> Json:
        """Create a bound pod; `annotations` are its metadata's."""
        metadata = {
            "name": name,
            "namespace": "default",
            "annotations": spec.pop("annotations", {}),
            "finalizers": spec.pop("finalizers", []),
        }
        containers = [{"name": "c", "image": "i"}]
        return self.client.create(
            "pods",
            {"metadata": metadata, "spec": {"containers": containers, "nodeName": node, **spec}},
        )

    def get(self, kind: str, name: str, namespace: str = "default") -> Json:
        """Return an existing object."""
        found = self.client.find(kind, namespace, name)
        assert found is not None
        return found

    def node(self, name: str = "node-0") -> Json:
        """Return an existing node."""
        return self.get("nodes", name, "")

    def pod(self, name: str = "p") -> Json:
        """Return an existing pod."""
        return self.get("pods", name)

    def phase(self, name: str = "p") -> str | None:
        """Return a pod's phase; None if it is deleted."""
        found = self.client.find("pods", "default", name)
        return None if found is None else found["status"]["phase"]


def live(
    story: Callable[[World], Awaitable[T]],
    latencies: PodLatencies = USUAL,
    nodes: int = 1,
    **options: bool,
) -> T:
    """Run a coroutine in a new world."""

    async def happen() -> T:
        world = World(latencies, **options)
        world.add_nodes(nodes)
        world.keeper.start()
        world.kubelets.start()
        try:
            return await story(world)
        finally:
            world.kubelets.stop()
            world.keeper.stop()

    return run(happen())


def on_nodes(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a new world with a node, which is its first argument."""
    return as_test(story, live)
