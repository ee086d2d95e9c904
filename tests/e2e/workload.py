"""Nodes, and pods that are created and sometimes deleted while replicas fail."""

from __future__ import annotations

import asyncio
import itertools
from random import Random
from typing import Final

from kubesched.api.codec import encode_json
from kubesched.testing.builders import make_node, make_pod

from .harness import Harness

_PODS_PATH: Final = "/api/v1/namespaces/default/pods"
_CREATED: Final = 201
_BURST_MAX: Final = 8
_GONE_SHARE: Final = 0.05
_AT_ONCE: Final = b'{"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}'
_RESOURCES: Final = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}


async def create_nodes(harness: Harness, count: int) -> None:
    """Create nodes for the pods."""
    for number in range(count):
        node = make_node(f"node-{number}", allocatable=_RESOURCES)
        body = encode_json(node)
        assert await harness.ask("POST", "/api/v1/nodes", body) == _CREATED
        # Admission taints new nodes until their controller has seen them; there is none.
        assert await harness.ask("PUT", f"/api/v1/nodes/{node.metadata.name}", body) < _CREATED


class Workload:
    """Creates pods until it is cancelled."""

    def __init__(self, harness: Harness, random: Random, pods_per_second: float) -> None:
        """Set up; `run` begins."""
        self._harness = harness
        self._random = random
        self._pods_per_second = pods_per_second
        self._names = (f"pod-{number}" for number in itertools.count(1))
        self._there: list[str] = []

    async def run(self) -> None:
        """Create pods, and delete some of them."""
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
        pod = make_pod(name, requests={"cpu": "100m", "memory": "64Mi"})
        if await self._harness.ask("POST", _PODS_PATH, encode_json(pod)) == _CREATED:
            self._there.append(name)
