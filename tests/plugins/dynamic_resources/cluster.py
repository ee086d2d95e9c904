"""A cluster with the plugin, and an API server that is an object store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec.structs import replace

from kubesched.api.core import Node, Pod, PodExtendedResourceClaimStatus, PodResourceClaim
from kubesched.api.errors import ApiError, ConflictError
from kubesched.api.meta import KubeObject, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.resource import DeviceClass, ResourceClaim
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import NodeToStatus, Status
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.dynamic_resources import DynamicResourcesArgs
from kubesched.plugins.dynamic_resources.state import DynamicResourcesState
from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_table
from kubesched.testing.handle import FakeHandle
from tests.plugins.dynamic_resources.objects import device, device_class, slice_of
from tests.plugins.observed import Observed

GPU = "example.com/gpu"
HERE = NodeSelector(
    node_selector_terms=(
        NodeSelectorTerm(
            match_fields=(
                NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",)),
            )
        ),
    )
)


class FakeWriter:
    """Writes into an object store like an API server, and records the calls."""

    def __init__(self, store: ObjectStore, *, conflicts: int = 0, refuses: bool = False) -> None:
        self.store = store
        self.conflicts = conflicts
        self.refuses = refuses
        self.refuses_create = False
        self.conflicted = 0
        self.requests: list[str] = []
        self.calls: list[PodExtendedResourceClaimStatus] = []
        self.version = 100

    def now(self) -> str:
        """A fixed time."""
        return "2026-06-01T12:00:00Z"

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Record the call."""
        self.requests.append(f"wait {pod.metadata.name} {node_name}")

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Write at once."""
        self.requests.append(f"deallocate {claim.metadata.name}")
        self._put(claim)

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Delete at once."""
        self.requests.append(f"delete {claim.metadata.name}")
        self.store.delete(claim)

    def release_soon(self, claim: ResourceClaim, pod: Pod) -> None:
        """Record the call."""
        self.requests.append(f"release {claim.metadata.name} {pod.metadata.name}")

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Read."""
        found = self.store.get(ResourceClaim, name, namespace)
        assert found is not None
        return found

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Give a name and a uid."""
        self.requests.append("create")
        if self.refuses_create:
            raise ApiError(403, "Forbidden", "no")
        named = replace(claim.metadata, name=f"{claim.metadata.generate_name}x", uid="uid-created")
        return self._put(replace(claim, metadata=named))

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the newest version."""
        self.requests.append("update")
        await self._meet_others(claim)
        return self._put(claim)

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the newest version unless a conflict is due."""
        self.requests.append("update_status")
        await self._meet_others(claim)
        if self.refuses:
            raise ApiError(403, "Forbidden", "no")
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError("changed")
        return self._put(claim)

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Record the call."""
        self.calls.append(status)

    async def _meet_others(self, claim: ResourceClaim) -> None:
        """Let others write in the meantime, and reject older versions."""
        await asyncio.sleep(0)
        stored = await self.get(claim.metadata.namespace, claim.metadata.name)
        if stored.metadata.resource_version != claim.metadata.resource_version:
            self.conflicted += 1
            raise ConflictError("changed")

    def _put(self, claim: ResourceClaim) -> ResourceClaim:
        self.version += 1
        metadata = replace(claim.metadata, resource_version=str(self.version))
        stored = replace(claim, metadata=metadata)
        self.store.put(stored)
        return stored


class Cluster:
    """Nodes, objects, and the plugin."""

    def __init__(
        self,
        *objects: KubeObject,
        nodes: Iterable[Node] = (),
        gates: dict[str, bool] | None = None,
        args: DynamicResourcesArgs | None = None,
    ) -> None:
        self.store = ObjectStore()
        for item in objects:
            self.store.put(item)
        self.nodes = list(nodes) or [make_node("n1"), make_node("n2")]
        self.handle = FakeHandle(gates)
        self.handle.objects = self.store
        self.observed, self.writer = Observed(), FakeWriter(self.store)
        self.handle.provide(observer=self.observed, claim_writer=self.writer)
        self.plugin = DynamicResources(args or DynamicResourcesArgs(), self.handle)
        self.snapshot = Snapshot(nodes=make_table(self.nodes), objects=self.store)

    def pre_filter(self, pod: PodInfo) -> tuple[CycleState, Status]:
        """Run PreFilter and keep its state, as the profile does."""
        cycle = CycleState()
        found = self.plugin.pre_filter(cycle, pod, self.snapshot)
        cycle.filter_states[self.plugin.name] = found.state
        if found.status.is_skip:
            cycle.skip_filter.add(self.plugin.name)
        return cycle, found.status

    def filter(self, pod: PodInfo) -> tuple[CycleState, dict[str, Status]]:
        """Run PreFilter and Filter on all nodes."""
        cycle, status = self.pre_filter(pod)
        assert status.is_success, status
        state = cycle.filter_states[self.plugin.name]
        assert isinstance(state, DynamicResourcesState)
        answers = self.plugin.filter(state, pod, self.snapshot.nodes)
        names = self.snapshot.nodes.names
        return cycle, {name: answers[row] for row, name in enumerate(names)}

    def post_filter(self, cycle: CycleState, pod: PodInfo) -> str:
        """Return the result of PostFilter."""
        nothing = NodeToStatus.passing(len(self.nodes))
        return self.plugin.post_filter(cycle, pod, self.snapshot, nothing).status.message

    def place(self, pod: PodInfo, node_name: str = "n1") -> tuple[CycleState, Status]:
        """Filter, Reserve, PreBind."""
        cycle, answers = self.filter(pod)
        assert answers[node_name].is_success, answers[node_name]
        assert self.plugin.reserve(cycle, pod, node_name).is_success
        return cycle, asyncio.run(self.plugin.pre_bind(cycle, pod, node_name))

    def claim(self, name: str = "c1") -> ResourceClaim:
        """A claim as stored."""
        found = self.store.get(ResourceClaim, name, "default")
        assert found is not None
        return found


def user_of(*claims: str, name: str = "p", requests: dict[str, str | int] | None = None) -> PodInfo:
    """A pod that uses claims by name."""
    pod = make_pod(name, uid=f"uid-{name}", requests=requests)
    entries = tuple(PodResourceClaim(name=one, resource_claim_name=one) for one in claims)
    return PodInfo(replace(pod, spec=replace(pod.spec, resource_claims=entries)))


def local(name: str, node: str, count: int = 1) -> KubeObject:
    """A slice with devices of one node."""
    parts = [device(f"{node}-{at}") for at in range(count)]
    return slice_of(parts, name, pool=node, node_name=node)


def gpu_class() -> DeviceClass:
    """A class that backs an extended resource."""
    return device_class("gpu", extended_resource_name=GPU)
