"""Claims that several pods use at the same time, of one group or of none."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from kubesched.api.core import PodSchedulingGroup
from kubesched.api.resource import ResourceClaim
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Status
from kubesched.snapshot.pod_info import PodInfo
from tests.plugins.dynamic_resources.cluster import Cluster, local, user_of
from tests.plugins.dynamic_resources.objects import claim, device, device_class, request, slice_of

GROUPS = {"GenericWorkload": True}
BUSY = ("resource claim default/c1 is in the process of being allocated",)


def member(name: str, *claims: str, group: str = "gang") -> PodInfo:
    """A pod of a group that uses claims."""
    pod = user_of(*claims, name=name).pod
    spec = replace(pod.spec, scheduling_group=PodSchedulingGroup(pod_group_name=group))
    return PodInfo(replace(pod, spec=spec))


def cluster_of(*claims: ResourceClaim, gates: dict[str, bool] | None = None) -> Cluster:
    """A cluster with two devices on each of two nodes."""
    devices = local("s1", "n1", count=2), local("s2", "n2", count=2)
    return Cluster(*claims, device_class(), *devices, gates=GROUPS if gates is None else gates)


def reserve(cluster: Cluster, pod: PodInfo, node_name: str = "n1") -> CycleState:
    """Filter and Reserve."""
    cycle, answers = cluster.filter(pod)
    assert answers[node_name].is_success, answers[node_name]
    assert cluster.plugin.reserve(cycle, pod, node_name).is_success
    return cycle


async def bind_all(cluster: Cluster, placed: list[tuple[PodInfo, CycleState]]) -> list[Status]:
    """PreBind of all pods at the same time."""
    binding = [cluster.plugin.pre_bind(cycle, pod, "n1") for pod, cycle in placed]
    return list(await asyncio.gather(*binding))


def users_of(stored: ResourceClaim) -> list[str]:
    """The names of the pods for which a claim is reserved."""
    return sorted(one.name for one in stored.status.reserved_for)


def test_pods_of_a_group_share_a_pending_allocation() -> None:
    """Only they, and only with the gate."""
    cluster = cluster_of(claim(request()))
    reserve(cluster, member("p", "c1"))
    assert cluster.pre_filter(member("q", "c1"))[1].is_success
    assert BUSY == cluster.pre_filter(member("q", "c1", group="other"))[1].reasons
    assert BUSY == cluster.pre_filter(user_of("c1", name="q"))[1].reasons
    without = cluster_of(claim(request()), gates={})
    reserve(without, member("p", "c1"))
    assert BUSY == without.pre_filter(member("q", "c1"))[1].reasons


def test_a_shared_allocation_keeps_the_pods_where_it_can_be_used() -> None:
    """A pending allocation is not dropped for a pod that does not fit there."""
    cluster = cluster_of(claim(request()))
    reserve(cluster, member("p", "c1"))
    cycle, answers = cluster.filter(member("q", "c1"))
    assert answers["n1"].is_success
    assert ("resourceclaim not available on the node",) == answers["n2"].reasons
    assert "still not schedulable" == cluster.post_filter(cycle, member("q", "c1"))
    assert [] == cluster.writer.requests


def test_a_claim_of_its_own_gets_other_devices_than_the_shared_one() -> None:
    """The order of the pod's claims does not matter."""
    cluster = cluster_of(claim(request()), claim(request(), name="c2"))
    first, second = member("p", "c1"), member("q", "c1", "c2")
    placed = [(one, reserve(cluster, one)) for one in (first, second)]
    assert all(status.is_success for status in asyncio.run(bind_all(cluster, placed)))
    devices = [
        [one.device for one in allocation.devices.results]
        for name in ("c1", "c2")
        if (allocation := cluster.claim(name).status.allocation) is not None
    ]
    assert [["n1-0"], ["n1-1"]] == devices
    assert (["p", "q"], ["q"]) == (users_of(cluster.claim("c1")), users_of(cluster.claim("c2")))


def test_pods_of_a_group_number_shares_once() -> None:
    """Also when the first pod is reserved again after all were tried."""
    shared = device("d0", allow_multiple_allocations=True)
    parts = slice_of([shared], node_name="n1")
    cluster = Cluster(claim(request()), device_class(), parts, gates=GROUPS)
    pods = [member(name, "c1") for name in "pqr"]
    placed = [(one, reserve(cluster, one)) for one in pods]
    for pod, cycle in reversed(placed):
        cluster.plugin.unreserve(cycle, pod, "n1")
    for pod, cycle in placed:
        assert cluster.plugin.reserve(cycle, pod, "n1").is_success
    assert all(status.is_success for status in asyncio.run(bind_all(cluster, placed)))
    assert ["p", "q", "r"] == users_of(cluster.claim())


def test_what_one_pod_of_a_group_fails_to_write_another_writes() -> None:
    """The devices stay allocated until the last pod fails."""
    cluster = cluster_of(claim(request(count=2)), claim(request(count=2), name="c2"))
    rival = user_of("c2", name="rival")
    pods = [member(name, "c1") for name in "pqr"]
    placed = [(one, reserve(cluster, one)) for one in pods]
    cluster.writer.refuses = True
    for pod, cycle in placed[:2]:
        assert not asyncio.run(cluster.plugin.pre_bind(cycle, pod, "n1")).is_success
        cluster.plugin.unreserve(cycle, pod, "n1")
        assert not cluster.filter(rival)[1]["n1"].is_success
    cluster.writer.refuses = False
    assert asyncio.run(cluster.plugin.pre_bind(placed[2][1], pods[2], "n1")).is_success
    assert ["r"] == users_of(cluster.claim())
    assert not cluster.filter(rival)[1]["n1"].is_success


def test_devices_are_free_when_all_pods_of_a_group_have_given_up() -> None:
    """They are taken as long as one pod may still use the claim."""
    cluster = cluster_of(claim(request(count=2)), claim(request(count=2), name="c2"))
    rival = user_of("c2", name="rival")
    placed = [(one, reserve(cluster, one)) for one in (member("p", "c1"), member("q", "c1"))]
    for left, (pod, cycle) in zip((1, 0), placed, strict=True):
        cluster.plugin.unreserve(cycle, pod, "n1")
        assert bool(left) != cluster.filter(rival)[1]["n1"].is_success


def test_many_pods_reserve_one_claim_without_a_conflict() -> None:
    """The pods write one after another, because each write needs the last version."""
    cluster = cluster_of(claim(request()))
    assert cluster.place(user_of("c1", name="first"))[1].is_success
    pods = [user_of("c1", name=f"p{at}") for at in range(50)]
    placed = [(pod, reserve(cluster, pod)) for pod in pods]
    assert all(status.is_success for status in asyncio.run(bind_all(cluster, placed)))
    assert 51 == len(cluster.claim().status.reserved_for)
    assert 0 == cluster.writer.conflicted


def test_a_claim_that_was_allocated_other_devices_is_not_reserved() -> None:
    """Another scheduler was faster."""
    cluster = cluster_of(claim(request()))
    pod = user_of("c1")
    cycle = reserve(cluster, pod)
    other = cluster_of(claim(request()))
    other.place(user_of("c1", name="other"), "n2")
    cluster.store.put(other.claim())
    status = asyncio.run(cluster.plugin.pre_bind(cycle, pod, "n1"))
    assert "claim default/c1 got allocated elsewhere in the meantime" == status.message
