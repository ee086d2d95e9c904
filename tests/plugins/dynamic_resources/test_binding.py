"""Reserve, PreBind and what they do for extended resources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kubesched.api.meta import Condition
from kubesched.api.resource import FINALIZER, AllocatedDeviceStatus, ResourceClaim
from kubesched.framework.status import Code, Status
from kubesched.plugins.dynamic_resources.dynamic_resources import DynamicResourcesArgs
from kubesched.testing.builders import make_node
from tests.loops import on_virtual_time
from tests.plugins.dynamic_resources.cluster import GPU, Cluster, gpu_class, local, user_of
from tests.plugins.dynamic_resources.objects import (
    DRIVER,
    allocation_of,
    claim,
    device,
    device_class,
    request,
    result,
    slice_of,
)


def test_reserved_devices_are_kept_from_others() -> None:
    """Until the claim is written, its devices are allocated for other pods."""
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
    """Reserving on a node that was not filtered is an error."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cycle, _ = cluster.filter(user_of("c1"))
    status = cluster.plugin.reserve(cycle, user_of("c1"), "n2")
    assert (Code.ERROR, "claim allocation not found for node") == (status.code, status.message)


def test_pre_bind_writes_the_claim() -> None:
    """Writes finalizer, allocation and reservation; then nothing is pending."""
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
    assert ["update", "update_status"] == cluster.writer.requests
    assert not cluster.filter(user_of("c2", name="q"))[1]["n1"].is_success


@pytest.mark.parametrize("gate", ["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"])
def test_without_binding_conditions_no_time_is_written(gate: str) -> None:
    """The allocation has no timestamp if one of the two gates is off."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"), gates={gate: False})
    cluster.place(user_of("c1"))
    allocation = cluster.claim().status.allocation
    assert allocation is not None
    assert allocation.allocation_timestamp is None


@pytest.mark.parametrize(
    ("is_on", "message"),
    [
        pytest.param(True, "claim default/c1 got deallocated elsewhere in the meantime", id="on"),
        pytest.param(False, "", id="off"),
    ],
)
def test_a_claim_that_was_deallocated_meanwhile(is_on: bool, message: str) -> None:
    """Only with binding conditions the plugin notices; otherwise the API server refuses."""
    cluster = Cluster(
        claim(request(), allocation=allocation_of("d0")),
        gates={"DRADeviceBindingConditions": is_on},
    )
    cycle, _ = cluster.filter(user_of("c1"))
    cluster.store.put(claim(request()))
    assert message == asyncio.run(cluster.plugin.pre_bind(cycle, user_of("c1"), "n1")).message


def test_a_shared_claim_is_reserved_for_both() -> None:
    """The second pod only adds itself."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cluster.place(user_of("c1", name="p"))
    _, status = cluster.place(user_of("c1", name="q"))
    assert status.is_success
    assert ["uid-p", "uid-q"] == [one.uid for one in cluster.claim().status.reserved_for]


@pytest.mark.parametrize(
    ("conflicts", "message"),
    [pytest.param(4, "", id="four"), pytest.param(5, "changed", id="too-many")],
)
def test_conflicts_are_retried(conflicts: int, message: str) -> None:
    """Four retries with the newest version; then the pod fails."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cluster.writer.conflicts = conflicts
    cycle, status = cluster.place(user_of("c1"))
    assert message == status.message
    cluster.plugin.unreserve(cycle, user_of("c1"), "n1")
    assert cluster.filter(user_of("c1", name="q"))[1]["n1"].is_success


def test_refused_write() -> None:
    """A rejected write fails the binding; the error names the step."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cluster.writer.refuses = True
    _, status = cluster.place(user_of("c1"))
    assert "add allocation and reservation to claim default/c1: no" == status.message


def test_unreserve_takes_the_pod_out_of_the_claim() -> None:
    """A claim that was written already is released."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    cycle, _ = cluster.place(user_of("c1"))
    cluster.plugin.unreserve(cycle, user_of("c1"), "n1")
    assert "release c1 p" == cluster.writer.requests[-1]


def test_shares_get_ids_when_reserved() -> None:
    """Every share has an id of its own, from the run's random source."""
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


# Devices that must become ready.


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
        pytest.param(waiting(timestamp="2026-06-01T11:50:00Z"), False, id="just-timed-out"),
        pytest.param(waiting(timestamp="2026-06-01T11:50:01Z"), True, id="almost-timed-out"),
    ],
)
def test_devices_that_are_not_ready(stored: ResourceClaim, is_available: bool) -> None:
    """A claim whose device failed or timed out is unavailable, and deallocated."""
    cluster = Cluster(stored)
    cycle, answers = cluster.filter(user_of("c1"))
    assert is_available == answers["n1"].is_success
    if not is_available:
        message = cluster.post_filter(cycle, user_of("c1"))
        assert "deallocation of ResourceClaim completed" == message


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(
            waiting(), ["device gpu.example.com/p1/d0 of claim c1 with binding condition ready"]
        ),
        pytest.param(waiting(Condition(type="ready", status="True")), []),
    ],
    ids=["not-yet", "ready"],
)
def test_explain_names_devices_that_are_not_ready(
    stored: ResourceClaim, expected: list[str]
) -> None:
    """Allocated ones, as long as their drivers have not set the conditions."""
    cluster, pod = Cluster(stored), user_of("c1")
    cycle, _ = cluster.filter(pod)
    assert expected == list(cluster.plugin.describe_wait(cycle, pod, "n1"))


def test_explain_names_devices_that_have_to_be_made_ready() -> None:
    """Before the claim is written, and after its device was reserved."""
    attached = device("d0", binding_conditions=("attached", "ready"))
    cluster = Cluster(claim(request()), device_class(), slice_of([attached], node_name="n1"))
    pod = user_of("c1")
    cycle, _ = cluster.filter(pod)
    expected = [
        "device gpu.example.com/p1/d0 of claim c1 with binding conditions attached and ready"
    ]
    assert expected == list(cluster.plugin.describe_wait(cycle, pod, "n1"))
    assert cluster.plugin.reserve(cycle, pod, "n1").is_success
    assert expected == list(cluster.plugin.describe_wait(cycle, pod, "n1"))


def test_explain_does_not_name_a_claim_that_is_not_created_yet() -> None:
    """The claim for extended resources has no name of its own before."""
    attached = device("d0", binding_conditions=("ready",))
    cluster = Cluster(gpu_class(), slice_of([attached], node_name="n1"))
    pod = user_of(requests={GPU: "1"})
    cycle, _ = cluster.filter(pod)
    (text,) = cluster.plugin.describe_wait(cycle, pod, "n1")
    assert text.endswith("/d0 of the claim for extended resources with binding condition ready")


@pytest.mark.parametrize(
    ("stored", "message", "label"),
    [
        pytest.param(waiting(Condition(type="ready", status="True")), "", "success", id="ready"),
        pytest.param(
            waiting(Condition(type="broken", status="True", reason="R", message='no "m"')),
            r'device binding failed: claim=c1, reason=R, message="no \"m\""',
            "failure",
            id="failed",
        ),
        pytest.param(
            waiting(timestamp="2026-06-01T11:00:00Z"),
            "device binding timeout: claim=c1",
            "timeout",
            id="timed-out",
        ),
    ],
)
@on_virtual_time
async def test_pre_bind_waits_for_devices(stored: ResourceClaim, message: str, label: str) -> None:
    """Binding continues when devices are ready, and fails when they fail; both are counted."""
    cluster, pod = Cluster(stored), user_of("c1")
    cycle, _ = cluster.pre_filter(pod)
    status = await cluster.plugin.pre_bind(cycle, pod, "n1")
    assert message == status.message
    assert ["wait p n1"] == cluster.writer.requests
    expected = [("awaited", DRIVER, label, 0.0), ("used", DRIVER, label)]
    assert expected == cluster.observed.calls


Work = asyncio.Future[Status]


def cancel(cluster: Cluster, work: Work) -> None:
    """Cancel the binding."""
    work.cancel()


def lose(cluster: Cluster, work: Work) -> None:
    """Delete the claim."""
    cluster.store.delete(cluster.claim())


def make_ready(cluster: Cluster, work: Work) -> None:
    """Let the device become ready."""
    cluster.store.put(waiting(Condition(type="ready", status="True")))


def do_nothing(cluster: Cluster, work: Work) -> None:
    """Let the time pass."""


@pytest.mark.parametrize(
    ("event", "label", "seconds"),
    [
        pytest.param(make_ready, "success", 15.0, id="ready at the next look"),
        pytest.param(do_nothing, "timeout", 30.0, id="not in time"),
        pytest.param(lose, "error", 15.0, id="the claim is gone"),
        pytest.param(cancel, "error", 12.0, id="cancelled"),
    ],
)
@on_virtual_time
async def test_wait_is_reported(
    event: Callable[[Cluster, Work], None], label: str, seconds: float
) -> None:
    """The duration and result of a wait are reported per device of all claims."""
    plain = claim(allocation=allocation_of(result("d1")), name="c2", reserved_for=["uid-p"])
    just_now = waiting(timestamp="2026-06-01T12:00:00Z")
    cluster = Cluster(just_now, plain, args=DynamicResourcesArgs(binding_timeout_seconds=30))
    pod = user_of("c1", "c2")
    cycle, _ = cluster.pre_filter(pod)
    work = asyncio.ensure_future(cluster.plugin.pre_bind(cycle, pod, "n1"))
    await asyncio.sleep(12)
    event(cluster, work)
    await asyncio.wait([work])
    assert [
        ("awaited", DRIVER, label, seconds),
        ("used", DRIVER, label),
        ("awaited", DRIVER, label, seconds),
    ] == cluster.observed.calls


@pytest.mark.parametrize(
    ("timeout_seconds", "message"),
    [
        pytest.param(15.0, "", id="when a poll is due"),
        pytest.param(14.0, "device binding timeout: context deadline exceeded", id="before"),
    ],
)
@on_virtual_time
async def test_devices_are_looked_at_once_more(timeout_seconds: float, message: str) -> None:
    """A device that becomes ready after the last but one look is in time if a look is due."""
    args = DynamicResourcesArgs(binding_timeout_seconds=timeout_seconds)
    cluster, pod = Cluster(waiting(timestamp="2026-06-01T12:00:00Z"), args=args), user_of("c1")
    cycle, _ = cluster.pre_filter(pod)
    work = asyncio.ensure_future(cluster.plugin.pre_bind(cycle, pod, "n1"))
    await asyncio.sleep(12)
    make_ready(cluster, work)
    assert message == (await work).message


def test_devices_without_conditions_are_not_waited_for() -> None:
    """Nothing is reported for a pod that does not wait."""
    cluster = Cluster(claim(request()), device_class(), local("s1", "n1"))
    assert cluster.place(user_of("c1"))[1].is_success
    assert [] == cluster.observed.calls


# Extended resources.


def test_resources_of_the_node_beside_a_claim_fail_as_upstream() -> None:
    """If the pod's own claim is allocated too, the special claim is written without requests."""
    offers = make_node("n1", allocatable={"cpu": "4", GPU: "2"})
    cluster = Cluster(
        claim(request()), device_class(), gpu_class(), local("s1", "n1"), nodes=[offers]
    )
    pod = user_of("c1", requests={GPU: "1"})
    cycle, status = cluster.place(pod)
    expected = "nil or empty request mappings, no update of pod default/p"
    assert f"{expected} ExtendedResourceClaimStatus" == status.message
    assert [] == cluster.writer.calls
    cluster.plugin.unreserve(cycle, pod, "n1")
    assert "delete p-extended-resources-x" == cluster.writer.requests[-1]


def test_extended_resource_by_devices_or_by_the_node() -> None:
    """NodeResourcesFit handles nodes that offer the resource; others need devices."""
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
    """A missing resource rejects the node even if devices provide another."""
    cluster = Cluster(gpu_class(), local("s1", "n1"))
    _, answers = cluster.filter(user_of(requests={GPU: "1", "x.com/y": "1"}))
    assert ("cannot fit resource",) == answers["n1"].reasons


def test_special_claim_is_created() -> None:
    """PreBind creates the claim, and writes the mapping to the pod's status."""
    cluster = Cluster(gpu_class(), local("s1", "n1", count=2))
    pod = user_of(requests={GPU: "2"})
    cycle, status = cluster.place(pod)
    assert status.is_success, status
    created = cluster.claim("p-extended-resources-x")
    assert created.status.allocation is not None
    assert 2 == len(created.status.allocation.devices.results)
    (written,) = cluster.writer.calls
    assert [("create", True)] == cluster.observed.calls
    assert created.metadata.name == written.resource_claim_name
    assert [GPU] == [one.resource_name for one in written.request_mappings]
    assert not cluster.filter(user_of(name="q", requests={GPU: "1"}))[1]["n1"].is_success
    cluster.plugin.unreserve(cycle, pod, "n1")
    assert "delete p-extended-resources-x" == cluster.writer.requests[-1]
    assert cluster.filter(user_of(name="q", requests={GPU: "1"}))[1]["n1"].is_success


def test_special_claim_that_cannot_be_created() -> None:
    """Binding fails with the API server's error, and the request is counted."""
    cluster = Cluster(gpu_class(), local("s1", "n1"))
    cluster.writer.refuses_create = True
    _, status = cluster.place(user_of(requests={GPU: "1"}))
    assert "create claim for extended resources default/: no" == status.message
    assert [("create", False)] == cluster.observed.calls


def test_special_claim_left_from_an_earlier_attempt() -> None:
    """The claim is deleted, and the pod is retried."""
    cluster = Cluster(gpu_class(), local("s1", "n1"))
    pod = user_of(requests={GPU: "1"})
    cluster.place(pod)
    cycle, answers = cluster.filter(pod)
    assert ("cannot schedule extended resource claim",) == answers["n1"].reasons
    assert "deletion of ResourceClaim completed" == cluster.post_filter(cycle, pod)
    assert cluster.filter(pod)[1]["n1"].is_success


def test_gate_of_extended_resources() -> None:
    """With the gate off, devices back no resources."""
    cluster = Cluster(gpu_class(), gates={"DRAExtendedResource": False})
    assert cluster.pre_filter(user_of(requests={GPU: "1"}))[1].is_skip
