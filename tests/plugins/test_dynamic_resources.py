"""DynamicResources: from the pod's claims to devices, and back."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from msgspec.structs import replace

from kubesched.api.core import PodResourceClaim, PodResourceClaimStatus
from kubesched.api.field_errors import ConfigError
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.resource import (
    AllocationResult,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimStatus,
)
from kubesched.framework.cluster_event import Action
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import UNSIGNED
from kubesched.framework.status import Code, Status
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.dynamic_resources import DynamicResourcesArgs
from kubesched.plugins.dynamic_resources.state import DynamicResourcesState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_table
from kubesched.testing.handle import FakeHandle
from tests.plugins.dynamic_resources.cluster import GPU, HERE, Cluster, gpu_class, local, user_of
from tests.plugins.dynamic_resources.objects import (
    alternative,
    claim,
    device,
    device_class,
    first_available,
    node_selector,
    request,
    slice_of,
)


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


GENERATED = templated((PodResourceClaimStatus(name="gpu", resource_claim_name="c1"),))
UNRESOLVABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
OWNED = OwnerReference(kind="Pod", name="p", uid="uid-p", controller=True)


@pytest.mark.parametrize(
    ("pod", "objects", "reason"),
    [
        pytest.param(user_of(), [], None, id="no-claims"),
        pytest.param(user_of("c1"), [claim()], None, id="there"),
        pytest.param(user_of("c1"), [], 'could not find ResourceClaim "default/c1"', id="missing"),
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
            GENERATED,
            [claim()],
            "ResourceClaim default/c1 was not created for Pod default/p (Pod is not owner)",
            id="not-owned",
        ),
        pytest.param(GENERATED, [claim(owner_references=(OWNED,))], None, id="owned"),
    ],
)
def test_pre_enqueue(pod: PodInfo, objects: list[ResourceClaim], reason: str | None) -> None:
    """The pod waits until all its claims exist and belong to it; PreFilter agrees."""
    cluster = Cluster(*objects, device_class())
    status = cluster.plugin.pre_enqueue(pod, cluster.snapshot)
    if reason is None:
        assert status.is_success
        return
    assert (UNRESOLVABLE, (reason,)) == (status.code, status.reasons)
    assert status == cluster.pre_filter(pod)[1]


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        pytest.param(
            request(), UNRESOLVABLE, "request r: device class gpu does not exist", id="class"
        ),
        pytest.param(
            first_available("r", alternative("a")),
            UNRESOLVABLE,
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
            UNRESOLVABLE,
            "resource claim default/c1, request r: unknown request type",
            id="nothing",
        ),
    ],
)
def test_pre_filter_looks_at_requests(wanted: DeviceRequest, code: Code, message: str) -> None:
    """Missing classes reject the pod in PreFilter."""
    cluster = Cluster(claim(wanted))
    cycle, status = cluster.pre_filter(user_of("c1"))
    assert (code, message) == (status.code, status.message)
    assert "no new claims to deallocate" == cluster.post_filter(cycle, user_of("c1"))


def test_pod_without_claims() -> None:
    """The plugin does nothing, and every node scores 0."""
    cluster, pod = Cluster(device_class()), user_of()
    cycle, status = cluster.pre_filter(pod)
    assert status.is_skip
    assert "no new claims to deallocate" == cluster.post_filter(cycle, pod)
    state = cluster.plugin.score_state(cycle, pod, cluster.snapshot, np.ones(2, np.bool_))
    assert isinstance(state, DynamicResourcesState)
    assert [0, 0] == cluster.plugin.score(state, pod, cluster.snapshot.nodes).tolist()
    assert cluster.plugin.reserve(cycle, pod, "n1").is_success
    assert cluster.plugin.pre_bind_pre_flight(cycle, pod, "n1").is_skip


def test_post_filter_without_state_is_an_error() -> None:
    """Without PreFilter, PostFilter has no state."""
    cluster = Cluster()
    assert "not found" == cluster.post_filter(CycleState(), user_of("c1"))


def test_filter_finds_devices_per_node() -> None:
    """Nodes without a free device are rejected."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cycle, answers = cluster.filter(user_of("c1"))
    assert answers["n1"].is_success
    assert ("cannot allocate all claims",) == answers["n2"].reasons
    assert UNRESOLVABLE is answers["n2"].code
    assert "still not schedulable" == cluster.post_filter(cycle, user_of("c1"))


def test_nodes_that_are_gone_are_forgotten() -> None:
    """An autoscaler may replace nodes without end while the slices stay the same."""
    cluster = Cluster(claim(request()), slice_of([device("d")]), device_class())
    gone = make_node("gone")
    held, nodes = sys.getrefcount(gone), [gone]
    for number in range(15):
        cluster.snapshot = Snapshot(make_table(nodes), cluster.store)
        cluster.filter(user_of("c1"))
        nodes = [make_node(f"n{number}-{at}") for at in range(100)]
    assert held == sys.getrefcount(gone)


def test_filter_error_ends_the_cycle() -> None:
    """A selector that fails is an error, not a rejection."""
    broken = device_class("gpu", 'device.attributes["x.com"].nope')
    cluster = Cluster(claim(request()), broken, local("s1", "n1"))
    _, answers = cluster.filter(user_of("c1"))
    assert (
        Status(Code.ERROR, error="class gpu: selector #0: CEL runtime error: no such key: nope")
    ) == answers["n1"]


@pytest.mark.parametrize("timeout_seconds", [0.01, 1e-9], ids=["short", "shorter-than-a-try"])
def test_search_without_end_is_an_error(timeout_seconds: float) -> None:
    """A search that exceeds its tries is an error."""
    parts = [device(f"d{at}") for at in range(30)]
    wanted = [request(f"r{at}", count=8) for at in range(4)]
    cluster = Cluster(
        claim(*wanted),
        device_class(),
        slice_of(parts, node_name="n1"),
        args=DynamicResourcesArgs(filter_timeout_seconds=timeout_seconds),
    )
    _, answers = cluster.filter(user_of("c1"))
    assert "node n1: timed out trying to allocate devices" == answers["n1"].message


def test_allocated_claim_is_bound_to_its_nodes() -> None:
    """It is unavailable on other nodes, and deallocated if no other pod uses it."""
    cluster = Cluster(claim(request(), allocation=AllocationResult(node_selector=HERE)))
    cycle, answers = cluster.filter(user_of("c1"))
    assert answers["n1"].is_success
    assert ("resourceclaim not available on the node",) == answers["n2"].reasons
    assert "deallocation of ResourceClaim completed" == cluster.post_filter(cycle, user_of("c1"))
    assert ["deallocate c1"] == cluster.writer.requests
    assert ResourceClaimStatus() == cluster.claim().status


def test_claim_in_use_by_others_is_not_given_up() -> None:
    """Only a claim reserved for nobody else can be deallocated."""
    allocation = AllocationResult(node_selector=HERE)
    cluster = Cluster(claim(allocation=allocation, reserved_for=["uid-p", "uid-q"]))
    cycle, _ = cluster.filter(user_of("c1"))
    assert "still not schedulable" == cluster.post_filter(cycle, user_of("c1"))
    assert [] == cluster.writer.requests


def test_unreadable_allocation_is_an_error() -> None:
    """A node selector that cannot be parsed fails PreFilter."""
    selector = node_selector("a", operator="Near")
    cluster = Cluster(claim(allocation=AllocationResult(node_selector=selector)))
    assert Code.ERROR is cluster.pre_filter(user_of("c1"))[1].code


def test_score_prefers_early_alternatives() -> None:
    """8 for the first alternative, one less for each one after it; scaled to 100."""
    wanted = first_available("r", alternative("two", count=2), alternative("one"))
    cluster = Cluster(claim(wanted), device_class(), local("s1", "n1", count=2), local("s2", "n2"))
    pod = user_of("c1")
    cycle, _ = cluster.filter(pod)
    state = cluster.plugin.score_state(cycle, pod, cluster.snapshot, np.ones(2, np.bool_))
    assert isinstance(state, DynamicResourcesState)
    scores = cluster.plugin.score(state, pod, cluster.snapshot.nodes)
    assert [8, 7] == scores.tolist()
    rows = np.arange(2)
    assert [100, 87] == cluster.plugin.normalize_score(state, pod, scores, rows).tolist()


def test_events_and_hints() -> None:
    """A claim's events retry the pods that use it; a deallocation retries all pods."""
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
    """Answers for a pod that needs devices are not cached."""
    plugin = Cluster(gpu_class()).plugin
    assert UNSIGNED is plugin.sign(user_of("c1"))
    assert UNSIGNED is plugin.sign(user_of(requests={GPU: "1"}))
    assert plugin.sign(user_of()) is None


@pytest.mark.parametrize(
    ("raw", "gates", "field_error"),
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
def test_args(raw: dict[str, object], gates: dict[str, bool], field_error: str | None) -> None:
    """Timeouts are durations, within bounds, where they have an effect."""
    handle = FakeHandle(gates)
    if field_error is None:
        args = DynamicResources.decode_args(raw, handle, "x")
        assert (5.0, 60.0) == (args.filter_timeout_seconds, args.binding_timeout_seconds)
        return
    with pytest.raises(ConfigError) as raised:
        DynamicResources.decode_args(raw, handle, "x")
    assert field_error == str(raised.value)


def test_metadata_of_a_new_claim_is_left_alone() -> None:
    """What Reserve keeps in memory does not change what is stored."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    before = cluster.claim()
    cycle, _ = cluster.filter(user_of("c1"))
    cluster.plugin.reserve(cycle, user_of("c1"), "n1")
    assert before is cluster.claim()
    assert ObjectMeta(namespace="default", name="c1", uid="uid-c1") == before.metadata
