"""What a sandbox consists of besides its scheduler: nodes, kubelets and controllers of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from random import Random
from typing import Final

import msgspec

from kubesched.api.errors import AlreadyExistsError, ApiError
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.registry import ObjectRegistry
from kubesched.cluster.controllers import IDLE_KINDS, Controllers
from kubesched.cluster.controllers.garbage_collector import DefinitionController
from kubesched.cluster.kubelets import Kubelets
from kubesched.cluster.nodes import NodeKeeper
from kubesched.cluster.server import Watching
from kubesched.config.feature_gates import FeatureGates
from kubesched.inputs.errors import UserError
from kubesched.sandbox.local_client import LocalClient
from kubesched.sandbox.pod_reports import PodLatencies, kubelets_of

CAPACITY: Final = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
"""The capacity of nodes without one of their own."""

# Nodes created before the event loop runs other tasks.
_NODES_AT_ONCE: Final = 100
# The gates whose objects are of versions that an API server serves on demand only.
_GATES_OF_ALPHA: Final = ("GenericWorkload", "DRADeviceTaintRules")


class Population(msgspec.Struct, frozen=True):
    """The nodes of a sandbox, and how their pods behave.

    Attributes:
        nodes: Those to create, as in JSON; existing ones stay as they are.
        capacity: Of nodes that have none.
        latencies: How long pods take to start, stop and end.
        renews_leases: Whether nodes renew leases, as kubelets do.
        has_controllers: Whether controllers create the pods of workloads and collect garbage.
    """

    nodes: Iterable[Plain]
    capacity: Mapping[str, str]
    latencies: PodLatencies
    renews_leases: bool = False
    has_controllers: bool = True


def needs_alpha(gates: FeatureGates) -> bool:
    """Whether the API server of a scheduler with these gates has to serve alpha versions."""
    return any(map(gates.enabled, _GATES_OF_ALPHA))


async def populate(
    registry: ObjectRegistry, population: Population, certificate: str, opened: AsyncExitStack
) -> None:
    """Create the nodes; run kubelets and controllers on the current loop until the stack closes.

    `certificate` is the API server's, as PEM; empty for plain HTTP. Raises UserError if the API
    server refuses a node.
    """
    registry.idle_kinds = IDLE_KINDS
    kubelet = LocalClient(registry, "kubelet")
    await _add_nodes(kubelet, population.nodes)
    keeper = NodeKeeper(
        LocalClient(registry, "system:node-controller"),
        population.capacity,
        renews_leases=population.renews_leases,
    )
    parts: list[NodeKeeper | Kubelets | Watching] = [
        keeper,
        kubelets_of(kubelet, population.latencies, Random()),  # noqa: S311 - latencies
    ]
    if population.has_controllers:
        parts.append(Controllers(lambda user: LocalClient(registry, user), certificate))
    else:
        # In Kubernetes, this one belongs to the API server.
        parts.append(DefinitionController(LocalClient(registry, "system:apiserver")))
    for part in parts:
        part.start()
        opened.callback(part.stop)


async def _add_nodes(client: LocalClient, nodes: Iterable[Plain]) -> None:
    for number, node in enumerate(nodes):
        if client.find("nodes", "", node["metadata"].get("name", "")) is not None:
            continue
        try:
            client.create("nodes", node)
        except AlreadyExistsError:
            continue
        except ApiError as error:
            raise UserError(f"the API server refuses the node: {error}") from None
        if number % _NODES_AT_ONCE == 0:
            await asyncio.sleep(0)
