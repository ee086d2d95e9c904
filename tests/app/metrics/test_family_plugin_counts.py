from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.errors import ConflictError
from kubesched.api.meta import Condition, KubeObject
from kubesched.api.resource import AllocatedDeviceStatus
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.scheduler.assembly import Writers
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.plugins.dynamic_resources.cluster import GPU, Cluster, gpu_class, local, user_of
from tests.plugins.dynamic_resources.objects import DRIVER, allocation_of, claim, result
from tests.plugins.volume_objects import (
    claim_volumes,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

from .scripted import Measured, families_of, measured

VOLUME_ERRORS: Final = "scheduler_volume_scheduling_stage_error_total"
CLAIM_CREATES: Final = "scheduler_resourceclaim_creates_total"
CONDITIONS: Final = "scheduler_dra_bindingconditions_allocations_total"
WAITS: Final = "scheduler_dra_bindingconditions_wait_duration_seconds"
PROFILE: Final = "default-scheduler"


class RefusingWriter:
    """An API that refuses to write volumes."""

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Refuse."""
        raise ConflictError("no")

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Refuse."""
        raise ConflictError("no")

    def has_pod(self, namespace: str, name: str) -> bool:
        """It has."""
        return True


def page_with(pod: Pod, *objects: KubeObject) -> dict[str, Any]:
    """Return the page after one pod was placed in a cluster with these objects."""

    async def main() -> str:
        async with measured(writers=Writers(volumes=RefusingWriter())) as found:
            for item in objects:
                found.api.handlers.added(item)
            found.api.create(make_node("n"), pod)
            await asyncio.sleep(0.5)
            return found.page()

    return families_of(run(main()))


def test_failure_in_filtering_counts_once() -> None:
    """A failure that is met twice in a cycle is counted once."""
    page = page_with(
        make_pod("p", volumes=claim_volumes("c")),
        make_volume("v", awsElasticBlockStore={"volumeID": "aws://x"}),
        make_claim("c", volume="v"),
        make_csi_node("n", migrated=["kubernetes.io/aws-ebs"]),
    )
    attempts = page["scheduler_schedule_attempts_total"]["series"]
    assert {(("profile", PROFILE), ("result", "error")): "1"} == attempts
    assert {(("operation", "predicate"),): "1"} == page[VOLUME_ERRORS]["series"]
    assert "[ALPHA] Volume scheduling stage error count" == page[VOLUME_ERRORS]["help"]


def test_refused_volume_counts() -> None:
    """A volume that cannot be written is a failure to bind."""
    page = page_with(
        make_pod("p", volumes=claim_volumes("c")),
        make_class("wait"),
        make_claim("c", storage_class="wait"),
    )
    assert {(("operation", "bind"),): "1"} == page[VOLUME_ERRORS]["series"]


def test_rejection_is_no_failure() -> None:
    """A pod whose claim is missing is unschedulable, which is not counted."""
    assert VOLUME_ERRORS not in page_with(make_pod("p", volumes=claim_volumes("c")))


def cluster_of(found: Measured, *objects: KubeObject) -> Cluster:
    """Return a cluster whose plugin reports to the scheduler's metrics."""
    cluster = Cluster(*objects)
    cluster.handle.provide(observer=found.scheduler.profiles[PROFILE].services.observer)
    return cluster


@on_virtual_time
async def test_claims_for_extended_resources() -> None:
    """Requests to create claims count by their outcome."""
    async with measured() as found:
        cluster = cluster_of(found, gpu_class(), local("s1", "n1", count=3))
        for name, refuses in (("p", False), ("q", False), ("r", True)):
            cluster.writer.refuses_create = refuses
            pod = user_of(name=name, requests={GPU: "1"})
            cycle, _ = cluster.filter(pod)
            assert cluster.plugin.reserve(cycle, pod, "n1").is_success
            status = await cluster.plugin.pre_bind(cycle, pod, "n1")
            assert status.is_success is not refuses
        page = found.page()
    family = families_of(page)[CLAIM_CREATES]
    assert {(("status", "success"),): "2", (("status", "failure"),): "1"} == family["series"]
    assert "counter" == family["type"]


@on_virtual_time
async def test_binding_conditions() -> None:
    """A wait counts for every device, an allocation for each device with conditions."""
    slow = result("d0", binding_conditions=("ready",))
    conditions = (Condition(type="ready", status="True"),)
    status = AllocatedDeviceStatus(
        driver=slow.driver, pool=slow.pool, device=slow.device, conditions=conditions
    )
    stamped = replace(
        allocation_of(slow, result("d1")), allocation_timestamp="2026-06-01T12:00:00Z"
    )
    bare = claim(allocation=stamped, reserved_for=["uid-p"])
    async with measured() as found:
        cluster, pod = cluster_of(found, bare), user_of("c1")
        cycle, _ = cluster.pre_filter(pod)
        work = asyncio.ensure_future(cluster.plugin.pre_bind(cycle, pod, "n1"))
        await asyncio.sleep(7)
        cluster.store.put(replace(bare, status=replace(bare.status, devices=(status,))))
        assert (await work).is_success
        page = found.page()
    families = families_of(page)
    labels = (("driver", DRIVER), ("profile", PROFILE), ("status", "success"))
    assert {labels: "1"} == families[CONDITIONS]["series"]
    assert {labels: "2"} == families[WAITS]["series"]
    assert ["0.1", "0.2", "0.4"] == families[WAITS]["buckets"][:3]
    assert ["819.2", "+Inf"] == families[WAITS]["buckets"][-2:]
    written = f'driver="{DRIVER}",profile="{PROFILE}",status="success"'
    assert f"{WAITS}_sum{{{written}}} 20\n" in page


def test_nothing_is_shown_before_it_is_counted() -> None:
    """Without devices and volumes the page has none of these families."""
    assert not {VOLUME_ERRORS, CLAIM_CREATES, CONDITIONS, WAITS} & set(page_with(make_pod("p")))
