"""Nodes, and pods that are created and sometimes deleted while replicas fail."""

from __future__ import annotations

import asyncio
import itertools
from random import Random
from typing import Any, Final

from .harness import Harness

NAMESPACE: Final = "default"
_PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CREATED: Final = 201
_BURST_MAX: Final = 8
_GONE_SHARE: Final = 0.05
_AT_ONCE: Final = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


def node(name: str, pods: int = 1000) -> dict[str, Any]:
    """Return a ready node."""
    resources = {"cpu": "1000", "memory": "1000Gi", "pods": str(pods)}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str) -> dict[str, Any]:
    """Return a pod that fits."""
    container = {
        "name": "main",
        "image": "pause",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"app": "it"}},
        "spec": {"containers": [container]},
    }


async def create_nodes(harness: Harness, count: int) -> None:
    """Create nodes for the pods."""
    for number in range(count):
        name = f"node-{number}"
        assert await harness.ask("POST", "/api/v1/nodes", node(name)) == _CREATED
        # Admission taints new nodes until their controller has seen them; there is none.
        path = f"/api/v1/nodes/{name}"
        assert await harness.ask("PUT", path, node(name)) < _CREATED


class Workload:
    """Creates pods until it is cancelled."""

    def __init__(self, harness: Harness, random: Random, pods_per_second: float) -> None:
        """Take where, and how many."""
        self._harness = harness
        self._random = random
        self._pods_per_second = pods_per_second
        self._names = (f"pod-{number}" for number in itertools.count(1))
        self._there: list[str] = []

    async def run(self) -> None:
        """Create pods for ever; delete some."""
        while True:
            burst = self._random.randint(1, _BURST_MAX)
            for _ in range(burst):
                await self.create_one()
            if self._there and self._random.random() < burst * _GONE_SHARE:
                gone = self._there.pop(self._random.randrange(len(self._there)))
                await self._harness.ask("DELETE", f"{_PODS_PATH}/{gone}", _AT_ONCE)
            await asyncio.sleep(self._random.expovariate(self._pods_per_second / burst))

    async def create_one(self) -> None:
        """Create a pod, unless the server is down."""
        name = next(self._names)
        if await self._harness.ask("POST", _PODS_PATH, pod(name)) == _CREATED:
            self._there.append(name)
