"""DynamicResources: from the pod's claims to devices, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import numpy as np
import pytest
from msgspec.structs import replace

from kubesched.api.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from kubesched.api.meta import Condition, ObjectMeta, OwnerReference
from kubesched.api.resource import (
    FINALIZER,
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimStatus,
)
from kubesched.config.faults import ConfigError
from kubesched.framework.cluster_event import Action
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.dra import ApiConflictError, ApiRefusedError
from kubesched.framework.plugin import UNSIGNED
from kubesched.framework.status import Code, NodeToStatus, Status
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.args import DynamicResourcesArgs
from kubesched.plugins.dynamic_resources.state import DynamicResourcesState
from kubesched.snapshot.objects import KubernetesObject, ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_table
from kubesched.testing.handle import FakeHandle
from tests.plugins.dynamic_resources.objects import (
    allocation_of,
    alternative,
    claim,
    device,
    device_class,
    first_available,
    request,
    result,
    slice_of,
)

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
    """Writes into an object store, as an API server would; notes down what was asked."""

    def __init__(self, store: ObjectStore, *, conflicts: int = 0, refuses: bool = False) -> None:
        self.store = store
        self.conflicts = conflicts
        self.refuses = refuses
        self.asked: list[str] = []
        self.told: list[PodExtendedResourceClaimStatus] = []
        self.version = 100

    def now(self) -> str:
        """A fixed time."""
        return "2026-06-01T12:00:00Z"

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Note it down."""
        self.asked.append(f"wait {pod.metadata.name} {node_name}")

    def deallocate(self, claim: ResourceClaim) -> None:
        """Write at once."""
        self.asked.append(f"deallocate {claim.metadata.name}")
        self._put(claim)

    def delete(self, claim: ResourceClaim) -> None:
        """Delete at once."""
        self.asked.append(f"delete {claim.metadata.name}")
        self.store.delete(claim)

    def release(self, claim: ResourceClaim, pod: Pod) -> None:
        """Note it down."""
        self.asked.append(f"release {claim.metadata.name} {pod.metadata.name}")

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Read."""
        found = self.store.get(ResourceClaim, name, namespace)
        assert found is not None
        return found

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Give a name and a uid."""
        self.asked.append("create")
        named = replace(
            claim.metadata, name=f"{claim.metadata.generate_name}x", uid="uid-created"
        )
        return self._put(replace(claim, metadata=named))

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Write unless a conflict is due."""
        self.asked.append("update")
        return self._put(claim)

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Write unless a conflict is due."""
        self.asked.append("update_status")
        if self.refuses:
            raise ApiRefusedError("no")
        if self.conflicts:
            self.conflicts -= 1
            raise ApiConflictError("changed")
        return self._put(claim)

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Note it down."""
        self.told.append(status)

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
        *objects: KubernetesObject,
        nodes: Iterable[Node] = (),
        gates: dict[str, bool] | None = None,
        args: DynamicResourcesArgs | None = None,
        writes: bool = True,
    ) -> None:
        self.store = ObjectStore()
        for item in objects:
            self.store.put(item)
        self.nodes = list(nodes) or [make_node("n1"), make_node("n2")]
        self.handle = FakeHandle(gates)
        self.writer = FakeWriter(self.store)
        if writes:
            self.handle.claim_writer = self.writer  # type: ignore[attr-defined]
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
        """What PostFilter says."""
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


def user_of(*claims: str, name: str = "p", **fields: object) -> PodInfo:
    """A pod that uses claims by name."""
    pod = make_pod(name, uid=f"uid-{name}", **fields)  # type: ignore[arg-type]
    entries = tuple(PodResourceClaim(name=one, resource_claim_name=one) for one in claims)
    return PodInfo(replace(pod, spec=replace(pod.spec, resource_claims=entries)))


def templated(status: tuple[PodResourceClaimStatus, ...]) -> PodInfo:
    """A pod whose claim is made from a template."""
    pod = make_pod("p", uid="uid-p")
    entry = PodResourceClaim(name="gpu", resource_claim_template_name="t")
    return PodInfo(
        replace(
            pod,
            spec=replace(pod.spec, resource_claims=(entry,)),
            status=replace(pod.status, resource_claim_statuses=status),
        )
    )


def local(name: str, node: str, count: int = 1) -> KubernetesObject:
    """A slice with devices of one node."""
    parts = [device(f"{node}-{at}") for at in range(count)]
    return slice_of(parts, name, pool=node, node_name=node)


OWNED = OwnerReference(kind="Pod", name="p", uid="uid-p", controller=True)


@pytest.mark.parametrize(
    ("pod", "objects", "reason"),
    [
        pytest.param(user_of(), [], None, id="no-claims"),
        pytest.param(user_of("c1"), [claim()], None, id="there"),
        pytest.param(
            user_of("c1"), [], 'could not find ResourceClaim "default/c1"', id="missing"
        ),
        pytest.param(
            user_of("c1"),
            [claim(deletion_timestamp="2026-01-01T00:00:00Z")],
            'resourceclaim "c1" is being deleted',
            id="deleting",
        ),
        pytest.param(
            templated(()), [], 'pod "default/p": ResourceClaim not created yet', id="not-yet"
        ),
        pytest.param(
            templated((PodResourceClaimStatus(name="gpu"),)), [], None, id="turned-out-unneeded"
        ),
        pytest.param(
            templated((PodResourceClaimStatus(name="gpu", resource_claim_name="c1"),)),
            [claim()],
            "ResourceClaim default/c1 was not created for Pod default/p (Pod is not owner)",
            id="not-owned",
        ),
        pytest.param(
            templated((PodResourceClaimStatus(name="gpu", resource_claim_name="c1"),)),
            [claim(owner_references=(OWNED,))],
            None,
            id="owned",
        ),
    ],
)
def test_pre_enqueue(pod: PodInfo, objects: list[ResourceClaim], reason: str | None) -> None:
    """The pod waits until all its claims are there and its own; PreFilter says the same."""
    cluster = Cluster(*objects, device_class())
    status = cluster.plugin.pre_enqueue(pod, cluster.snapshot)
    if reason is None:
        assert status.is_success
        return
    assert (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,)) == (status.code, status.reasons)
    assert status == cluster.pre_filter(pod)[1]


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        pytest.param(
            request(),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request r: device class gpu does not exist",
            id="class",
        ),
        pytest.param(
            first_available("r", alternative("a")),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request r/a: device class gpu does not exist",
            id="alternative",
        ),
        pytest.param(
            request(device_class_name=""),
            Code.ERROR,
            "request r: unsupported request type",
            id="no-class",
        ),
        pytest.param(
            DeviceRequest(name="r"),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "resource claim default/c1, request r: unknown request type",
            id="nothing",
        ),
    ],
)
def test_pre_filter_looks_at_requests(wanted: DeviceRequest, code: Code, message: str) -> None:
    """Classes that do not exist reject the pod before any node is asked."""
    cluster = Cluster(claim(wanted))
    cycle, status = cluster.pre_filter(user_of("c1"))
    assert (code, message) == (status.code, status.message)
    assert "no new claims to deallocate" == cluster.post_filter(cycle, user_of("c1"))


def test_pod_without_claims() -> None:
    """Nothing is asked, nothing is done, and every node scores 0."""
    cluster, pod = Cluster(device_class()), user_of()
    cycle, status = cluster.pre_filter(pod)
    assert status.is_skip
    assert "no new claims to deallocate" == cluster.post_filter(cycle, pod)
    state = cluster.plugin.pre_score(cycle, pod, cluster.snapshot, np.ones(2, np.bool_)).state
    assert isinstance(state, DynamicResourcesState)
    assert [0, 0] == cluster.plugin.score(state, pod, cluster.snapshot.nodes).tolist()
    assert cluster.plugin.reserve(cycle, pod, "n1").is_success
    assert cluster.plugin.pre_bind_pre_flight(cycle, pod, "n1").is_skip


def test_post_filter_without_state_is_an_error() -> None:
    """If PreFilter was never reached, PostFilter has nothing to go by."""
    cluster = Cluster()
    assert "not found" == cluster.post_filter(CycleState(), user_of("c1"))


def test_filter_finds_devices_per_node() -> None:
    """Nodes without a free device are rejected."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cycle, answers = cluster.filter(user_of("c1"))
    assert answers["n1"].is_success
    assert ("cannot allocate all claims",) == answers["n2"].reasons
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE is answers["n2"].code
    assert "still not schedulable" == cluster.post_filter(cycle, user_of("c1"))


def test_filter_error_ends_the_cycle() -> None:
    """A selector that fails is an error, not a rejection."""
    broken = device_class("gpu", 'device.attributes["x.com"].nope')
    cluster = Cluster(claim(request()), broken, local("s1", "n1"))
    _, answers = cluster.filter(user_of("c1"))
    assert (
        Status(Code.ERROR, error="class gpu: selector #0: CEL runtime error: no such key: nope")
    ) == answers["n1"]


def test_search_without_end_is_an_error() -> None:
    """A node on which the search gives up fails the pod for now."""
    parts = [device(f"d{at}") for at in range(30)]
    wanted = [request(f"r{at}", count=8) for at in range(4)]
    cluster = Cluster(
        claim(*wanted),
        device_class(),
        slice_of(parts, node_name="n1"),
        args=DynamicResourcesArgs(filter_timeout_seconds=0.01),
    )
    _, answers = cluster.filter(user_of("c1"))
    assert "node n1: timed out trying to allocate devices" == answers["n1"].message


def test_allocated_claim_is_bound_to_its_nodes() -> None:
    """Elsewhere it is not available; nobody else using it, it is given up."""
    cluster = Cluster(claim(request(), allocation=AllocationResult(node_selector=HERE)))
    cycle, answers = cluster.filter(user_of("c1"))
    assert answers["n1"].is_success
    assert ("resourceclaim not available on the node",) == answers["n2"].reasons
    assert "deallocation of ResourceClaim completed" == cluster.post_filter(cycle, user_of("c1"))
    assert ["deallocate c1"] == cluster.writer.asked
    assert ResourceClaimStatus() == cluster.claim().status


def test_claim_in_use_by_others_is_not_given_up() -> None:
    """Only a claim reserved for nobody else can be deallocated."""
    allocation = AllocationResult(node_selector=HERE)
    cluster = Cluster(claim(allocation=allocation, reserved_for=["uid-p", "uid-q"]))
    cycle, _ = cluster.filter(user_of("c1"))
    assert "still not schedulable" == cluster.post_filter(cycle, user_of("c1"))
    assert [] == cluster.writer.asked


def test_unreadable_allocation_is_an_error() -> None:
    """A node selector that cannot be parsed fails PreFilter."""
    requirement = NodeSelectorRequirement(key="a", operator="Near")
    term = NodeSelectorTerm(match_expressions=(requirement,))
    selector = NodeSelector(node_selector_terms=(term,))
    cluster = Cluster(claim(allocation=AllocationResult(node_selector=selector)))
    assert Code.ERROR is cluster.pre_filter(user_of("c1"))[1].code


def test_score_prefers_early_alternatives() -> None:
    """8 for the first alternative, one less for each one after it; scaled to 100."""
    wanted = first_available("r", alternative("two", count=2), alternative("one"))
    cluster = Cluster(
        claim(wanted), device_class(), local("s1", "n1", count=2), local("s2", "n2")
    )
    pod = user_of("c1")
    cycle, _ = cluster.filter(pod)
    state = cluster.plugin.pre_score(cycle, pod, cluster.snapshot, np.ones(2, np.bool_)).state
    assert isinstance(state, DynamicResourcesState)
    scores = cluster.plugin.score(state, pod, cluster.snapshot.nodes)
    assert [8, 7] == scores.tolist()
    rows = np.arange(2)
    assert [100, 87] == cluster.plugin.normalize_score(state, pod, scores, rows).tolist()


def test_reserved_devices_are_kept_from_others() -> None:
    """Until the claim is written, others see the devices taken and the claim busy."""
    cluster = Cluster(
        claim(request()), claim(request(), name="c2"), device_class(), local("s1", "n1")
    )
    first, second = user_of("c1", name="p"), user_of("c2", name="q")
    cycle, _ = cluster.filter(first)
    assert cluster.plugin.reserve(cycle, first, "n1").is_success
    assert not cluster.filter(second)[1]["n1"].is_success
    assert (
        "resource claim default/c1 is in the process of being allocated",
    ) == cluster.pre_filter(user_of("c1", name="r"))[1].reasons
    cluster.plugin.unreserve(cycle, first, "n1")
    assert cluster.filter(second)[1]["n1"].is_success


def test_reserve_without_an_allocation_is_an_error() -> None:
    """A node that was never asked cannot be reserved on."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cycle, _ = cluster.filter(user_of("c1"))
    status = cluster.plugin.reserve(cycle, user_of("c1"), "n2")
    assert (Code.ERROR, "claim allocation not found for node") == (status.code, status.message)


def test_pre_bind_writes_the_claim() -> None:
    """Finalizer, allocation, reservation; then the claim counts by itself."""
    cluster = Cluster(
        claim(request()), claim(request(), name="c2"), device_class(), local("s1", "n1")
    )
    _, status = cluster.place(user_of("c1"))
    assert status.is_success
    stored = cluster.claim()
    assert (FINALIZER,) == stored.metadata.finalizers
    assert stored.status.allocation is not None
    assert ["n1-0"] == [one.device for one in stored.status.allocation.devices.results]
    assert "2026-06-01T12:00:00Z" == stored.status.allocation.allocation_timestamp
    assert ["uid-p"] == [one.uid for one in stored.status.reserved_for]
    assert ["update", "update_status"] == cluster.writer.asked
    assert not cluster.filter(user_of("c2", name="q"))[1]["n1"].is_success


def test_a_shared_claim_is_reserved_for_both() -> None:
    """The second pod only adds itself."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cluster.place(user_of("c1", name="p"))
    _, status = cluster.place(user_of("c1", name="q"))
    assert status.is_success
    assert ["uid-p", "uid-q"] == [one.uid for one in cluster.claim().status.reserved_for]


@pytest.mark.parametrize(
    ("conflicts", "message"),
    [
        pytest.param(4, "", id="four"),
        pytest.param(5, "changed", id="too-many"),
    ],
)
def test_conflicts_are_retried(conflicts: int, message: str) -> None:
    """Four times with the newest version, then the pod has to come again."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cluster.writer.conflicts = conflicts
    cycle, status = cluster.place(user_of("c1"))
    assert message == status.message
    cluster.plugin.unreserve(cycle, user_of("c1"), "n1")
    assert bool(message) == cluster.filter(user_of("c1", name="q"))[1]["n1"].is_success or not message


def test_refused_write() -> None:
    """What the API server refuses fails the binding, with the step it was for."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cluster.writer.refuses = True
    _, status = cluster.place(user_of("c1"))
    assert "add allocation and reservation to claim default/c1: no" == status.message


def test_unreserve_takes_the_pod_out_of_the_claim() -> None:
    """A claim that was written already is released."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cycle, _ = cluster.place(user_of("c1"))
    cluster.plugin.unreserve(cycle, user_of("c1"), "n1")
    assert "release c1 p" == cluster.writer.asked[-1]


def test_shares_get_ids_when_reserved() -> None:
    """Every share has an id of its own, from the run's dice."""
    shared = device("d0", allow_multiple_allocations=True)
    cluster = Cluster(
        claim(request("r1"), request("r2")), device_class(), slice_of([shared], node_name="n1")
    )
    cluster.place(user_of("c1"))
    allocation = cluster.claim().status.allocation
    assert allocation is not None
    ids = [one.share_id for one in allocation.devices.results]
    assert 2 == len(set(ids))
    assert all(one and len(one) == 36 for one in ids)


# Devices that have to be made ready.


def waiting(*conditions: Condition, timestamp: str = "2026-06-01T11:59:00Z") -> ResourceClaim:
    """A claim whose device must become ready."""
    one = result("d0", binding_conditions=("ready",), binding_failure_conditions=("broken",))
    allocation = replace(allocation_of(one), allocation_timestamp=timestamp)
    status = AllocatedDeviceStatus(
        driver=one.driver, pool=one.pool, device=one.device, conditions=conditions
    )
    bare = claim(allocation=allocation, reserved_for=["uid-p"])
    return replace(bare, status=replace(bare.status, devices=(status,)))


@pytest.mark.parametrize(
    ("stored", "is_available"),
    [
        pytest.param(waiting(), True, id="not-yet"),
        pytest.param(waiting(Condition(type="ready", status="True")), True, id="ready"),
        pytest.param(waiting(Condition(type="broken", status="True")), False, id="failed"),
        pytest.param(waiting(timestamp="2026-06-01T11:00:00Z"), False, id="timed-out"),
    ],
)
def test_devices_that_are_not_ready(stored: ResourceClaim, is_available: bool) -> None:
    """A claim whose device failed or took too long is unavailable, and given up."""
    cluster = Cluster(stored)
    cycle, answers = cluster.filter(user_of("c1"))
    assert is_available == answers["n1"].is_success
    if not is_available:
        message = cluster.post_filter(cycle, user_of("c1"))
        assert "deallocation of ResourceClaim completed" == message


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        pytest.param(waiting(Condition(type="ready", status="True")), "", id="ready"),
        pytest.param(
            waiting(Condition(type="broken", status="True", reason="R", message="m")),
            'device binding failed: claim=c1, reason=R, message="m"',
            id="failed",
        ),
        pytest.param(
            waiting(timestamp="2026-06-01T11:00:00Z"),
            "device binding timeout: claim=c1",
            id="timed-out",
        ),
    ],
)
def test_pre_bind_waits_for_devices(stored: ResourceClaim, message: str) -> None:
    """Binding goes on when devices are ready, and fails when they fail."""
    cluster, pod = Cluster(stored), user_of("c1")
    cycle, _ = cluster.pre_filter(pod)
    status = asyncio.run(cluster.plugin.pre_bind(cycle, pod, "n1"))
    assert message == status.message
    assert ["wait p n1"] == cluster.writer.asked


# Extended resources.


def gpu_class() -> DeviceClass:
    """A class that stands for an extended resource."""
    return device_class("gpu", extended_resource_name=GPU)


def test_extended_resource_by_devices_or_by_the_node() -> None:
    """A node that offers the resource is left to NodeResourcesFit; others need devices."""
    offers = make_node("n2", allocatable={"cpu": "4", GPU: "2"})
    cluster = Cluster(
        gpu_class(), local("s1", "n1"), nodes=[make_node("n1"), offers, make_node("n3")]
    )
    pod = user_of(requests={GPU: "1"})
    cycle, answers = cluster.filter(pod)
    assert answers["n1"].is_success
    assert answers["n2"].is_success
    assert ("cannot allocate all claims",) == answers["n3"].reasons
    assert cluster.plugin.reserve(cycle, pod, "n2").is_success
    assert "still not schedulable" == cluster.post_filter(cycle, pod)


def test_extended_resource_that_nothing_provides() -> None:
    """One resource by devices does not make up for another one missing."""
    cluster = Cluster(gpu_class(), local("s1", "n1"))
    _, answers = cluster.filter(user_of(requests={GPU: "1", "x.com/y": "1"}))
    assert ("cannot fit resource",) == answers["n1"].reasons


def test_special_claim_is_created_and_told() -> None:
    """The claim exists from PreBind on, and the pod's status says which request is for what."""
    cluster = Cluster(gpu_class(), local("s1", "n1", count=2))
    pod = user_of(requests={GPU: "2"})
    cycle, status = cluster.place(pod)
    assert status.is_success, status
    created = cluster.claim("p-extended-resources-x")
    assert created.status.allocation is not None
    assert 2 == len(created.status.allocation.devices.results)
    (told,) = cluster.writer.told
    assert created.metadata.name == told.resource_claim_name
    assert [GPU] == [one.resource_name for one in told.request_mappings]
    assert not cluster.filter(user_of(name="q", requests={GPU: "1"}))[1]["n1"].is_success
    cluster.plugin.unreserve(cycle, pod, "n1")
    assert "delete p-extended-resources-x" == cluster.writer.asked[-1]
    assert cluster.filter(user_of(name="q", requests={GPU: "1"}))[1]["n1"].is_success


def test_special_claim_left_from_an_earlier_attempt() -> None:
    """It is deleted, and the pod comes again."""
    cluster = Cluster(gpu_class(), local("s1", "n1"))
    pod = user_of(requests={GPU: "1"})
    cluster.place(pod)
    cycle, answers = cluster.filter(pod)
    assert ("cannot schedule extended resource claim",) == answers["n1"].reasons
    assert "deletion of ResourceClaim completed" == cluster.post_filter(cycle, pod)
    assert cluster.filter(pod)[1]["n1"].is_success


def test_gate_of_extended_resources() -> None:
    """With the gate off, devices stand for nothing."""
    cluster = Cluster(gpu_class(), gates={"DRAExtendedResource": False})
    assert cluster.pre_filter(user_of(requests={GPU: "1"}))[1].is_skip


# Around it.


def test_events_and_hints() -> None:
    """A claim's news wake the pods that use it; any deallocation wakes all."""
    cluster, pod = Cluster(claim()), user_of("c1")
    events = {one.event.resource: one for one in cluster.plugin.events_to_register()}
    assert Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE == (
        events["Node"].event.action
    )
    hint = events["resource.k8s.io/ResourceClaim"].hint
    assert hint is not None
    cluster.plugin.pre_enqueue(pod, cluster.snapshot)
    allocated = claim(allocation=AllocationResult())
    other = claim(name="c2", allocation=AllocationResult())
    assert hint(pod.pod, None, claim())
    assert not hint(pod.pod, None, claim(name="c2"))
    assert hint(pod.pod, claim(), allocated)
    assert not hint(pod.pod, claim(), claim(finalizers=("f",)))
    assert hint(pod.pod, other, claim(name="c2"))
    assert not hint(user_of("c9").pod, other, claim(name="c2"))
    of_pod = events["Pod"].hint
    assert of_pod is not None
    assert of_pod(pod.pod, None, pod.pod)
    assert not of_pod(pod.pod, None, user_of("c1", name="q").pod)
    assert not of_pod(pod.pod, None, user_of("c9").pod)


def test_sign() -> None:
    """Answers for a pod with claims are not remembered."""
    plugin = Cluster().plugin
    assert UNSIGNED is plugin.sign(user_of("c1"))
    assert plugin.sign(user_of()) is None


@pytest.mark.parametrize(
    ("raw", "gates", "fault"),
    [
        pytest.param({"filterTimeout": "5s", "bindingTimeout": "1m"}, {}, None, id="right"),
        pytest.param(
            {"filterTimeout": "-1s"},
            {},
            'x.filterTimeout: Invalid value: "-1s": must be zero or positive',
            id="negative",
        ),
        pytest.param(
            {"bindingTimeout": "500ms"},
            {},
            'x.bindingTimeout: Invalid value: "500ms": must be at least 1 second',
            id="too-short",
        ),
        pytest.param(
            {"bindingTimeout": "5s"},
            {"DRADeviceBindingConditions": False},
            "x.bindingTimeout: Forbidden: DRADeviceBindingConditions or"
            " DRAResourceClaimDeviceStatus feature gate is disabled",
            id="gate",
        ),
    ],
)
def test_args(raw: dict[str, object], gates: dict[str, bool], fault: str | None) -> None:
    """Timeouts are durations, within bounds, where they have an effect."""
    handle = FakeHandle(gates)
    if fault is None:
        args = DynamicResources.decode_args(raw, handle, "x")
        assert (5.0, 60.0) == (args.filter_timeout_seconds, args.binding_timeout_seconds)
        return
    with pytest.raises(ConfigError) as raised:
        DynamicResources.decode_args(raw, handle, "x")
    assert fault == str(raised.value)


def test_disabled_by_its_gate() -> None:
    """With the gate off the plugin lets everything pass."""
    cluster = Cluster(gates={"DynamicResourceAllocation": False})
    assert cluster.plugin.pre_enqueue(user_of("c1"), cluster.snapshot).is_success
    cycle, status = cluster.pre_filter(user_of("c1"))
    assert status.is_skip
    assert "plugin disabled" == cluster.post_filter(cycle, user_of("c1"))
    assert () == tuple(cluster.plugin.events_to_register())


def test_metadata_of_a_new_claim_is_left_alone() -> None:
    """What Reserve keeps in memory does not change what is stored."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    before = cluster.claim()
    cycle, _ = cluster.filter(user_of("c1"))
    cluster.plugin.reserve(cycle, user_of("c1"), "n1")
    assert before is cluster.claim()
    assert ObjectMeta(namespace="default", name="c1", uid="uid-c1") == before.metadata
