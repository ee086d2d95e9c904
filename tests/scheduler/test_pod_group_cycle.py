"""The cycle of a pod group, in the running scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import Pod
from kubesched.api.meta import Condition
from kubesched.api.resource import ResourceClaim
from kubesched.api.scheduling import PodGroup
from kubesched.framework.status import Status
from kubesched.scheduler.assembly import Writers
from kubesched.scheduler.decision import Decision
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.observer import Observer
from kubesched.snapshot.objects import ObjectStore
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.plugins.dynamic_resources.cluster import FakeWriter, local
from tests.plugins.dynamic_resources.objects import claim, device_class, request
from tests.scheduler.running import GANGS, Running, make_group, make_member, running, with_scheduler
from tests.scheduler.scripted import (
    ALL_NO,
    ALL_WAIT,
    GENERIC,
    GROUP,
    NO,
    REJECTED,
    SCHEDULED,
    WAITING,
    arrive,
    scripted,
)


@on_virtual_time
async def test_tentative_placements_are_undone_in_reverse_order() -> None:
    """Before any pod is placed for good."""
    script, options = scripted()
    async with running(**options) as cluster:
        await arrive(cluster)
    tried = ["+p1", "+p2", "+p3", "-p3", "-p2", "-p1"]
    assert [*tried, "+p1", "+p2", "+p3"] == script.asked


@on_virtual_time
async def test_a_refused_reservation_is_undone_at_once() -> None:
    """It is not undone again at the end."""
    script, options = scripted(reserve={"p2": NO}, permit=ALL_WAIT)
    async with running(**options) as cluster:
        await arrive(cluster)
    assert ["+p1", "+p2", "-p2", "+p3", "-p3", "-p1"] == script.asked[:6]


@on_virtual_time
async def test_members_are_placed_by_priority_then_age() -> None:
    """The popped pod's siblings are popped with it, whatever their place in the queue."""
    script, options = scripted()
    async with running(**options) as cluster:
        cluster.api.create(make_group())
        cluster.api.create(make_member("old"), make_member("middle", priority=3))
        cluster.api.create(make_member("high", priority=5), make_member("young"))
        cluster.api.create(make_node("node"))
        await cluster.settle()
    assert ["+high", "+middle", "+old", "+young"] == script.asked[:4]


@with_scheduler(gates=GANGS)
async def test_a_gang_that_fits_in_part_is_not_bound(cluster: Running) -> None:
    """Two of three pods would fit; no room is reserved for them."""
    cluster.api.create(make_node("node", allocatable={"cpu": "2"}), make_group(min_count=3))
    cluster.api.create(*(make_member(f"p{i}") for i in range(3)))
    await cluster.settle()
    waits = "waiting for minCount pods from a gang to be scheduled"
    assert ("Unschedulable", f"{GROUP}, {waits}") == (
        cluster.condition("p0")[0],
        cluster.condition("p0")[1].rpartition(", ")[0],
    )
    assert REJECTED == cluster.group("gang")
    cluster.api.create(make_pod("single", requests={"cpu": "2"}))
    await cluster.settle()
    assert {"single": "node"} == cluster.nodes
    cluster.api.delete("single")
    cluster.api.create(make_node("other", allocatable={"cpu": "1"}))
    await cluster.settle(5)
    assert {"p0", "p1", "p2"} == set(cluster.nodes)
    assert SCHEDULED == cluster.group("gang")


@with_scheduler(gates=GANGS)
async def test_the_pod_that_completes_the_gang_is_tried_first(cluster: Running) -> None:
    """It enters the active queue before the pods that waited for it; they are tried by age."""
    cluster.api.create(make_node("node", allocatable={"cpu": "2"}), make_group(min_count=3))
    for name in ("p0", "p1", "p2"):
        cluster.api.create(make_member(name))
        await cluster.settle(1)
    rejected = [event.split(":")[0] for event in cluster.api.events if "Insuff" in event]
    assert "FailedScheduling p1" == rejected[0]


@on_virtual_time
async def test_rejected_members_are_retried_after_backoff() -> None:
    """No event is needed, and the delays grow."""
    _, options = scripted(filter={"p1": NO})
    async with running(**options) as cluster:
        cluster.api.create(make_node("node"), make_group(), make_member("p1"))
        await cluster.settle(30)
        queued = cluster.scheduler.queue.get_pod("default/p1")
        assert queued is not None
        assert 4 <= queued.attempts <= 6


@with_scheduler(gates=GANGS)
async def test_preemption_makes_room_for_the_gang(cluster: Running) -> None:
    """Victims are evicted, the pods are nominated, and bound in the next cycle."""
    cluster.api.stop_seconds = 1.0
    cluster.api.create(make_node("node", allocatable={"cpu": "2"}), make_group(min_count=2))
    cluster.api.create(make_pod("victim", requests={"cpu": "1"}, node_name="node", priority=1))
    cluster.api.create(*(make_member(f"p{i}", priority=9) for i in range(2)))
    await cluster.settle(0.1)
    assert WAITING == cluster.group("gang")
    pods = cluster.api.pods
    assert ["node", "node"] == [pods[f"p{i}"].status.nominated_node_name for i in range(2)]
    await cluster.settle(5)
    assert {"p0": "node", "p1": "node"} == cluster.nodes
    assert SCHEDULED == cluster.group("gang")


@on_virtual_time
async def test_a_tentative_placement_keeps_the_nomination() -> None:
    """It ends with the binding only; requests do not count while the pod is in no queue."""
    _, options = scripted(permit=ALL_WAIT)
    async with running(**options) as cluster:
        seen: list[tuple[str, int]] = []
        nominator = cluster.scheduler.queue.nominator
        revert = cluster.scheduler.fail

        def watched(*args: Any, **kw: Any) -> None:
            seen.extend((pod.name, pod.priority) for pod in nominator.on_node("node"))
            revert(*args, **kw)

        cluster.scheduler.fail = watched  # type: ignore[method-assign]  # to look at that moment
        cluster.api.create(make_node("node"), make_group())
        cluster.api.create(make_member("p1", priority=9, nominated_node_name="node"))
        await cluster.settle(0.1)
        assert [("p1", 0)] == seen


@with_scheduler(gates=GANGS)
async def test_nominations_of_members_do_not_count_in_the_cycle(cluster: Running) -> None:
    """Members are in no queue; one that waits for its victim leaves room on its node to another."""
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    preempted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    victim = make_pod(
        "victim",
        requests={"cpu": "1"},
        node_name="node",
        metadata=going,
        status={"conditions": [preempted]},
    )
    waits: dict[str, Any] = {"requests": {"cpu": "2"}, "nominated_node_name": "node"}
    cluster.api.create(make_node("node", allocatable={"cpu": "2"}), victim)
    cluster.api.create(make_group(min_count=1), make_member("waits", priority=9, **waits))
    cluster.api.create(make_member("small", priority=5))
    await cluster.settle(0.1)
    assert {"small": "node", "victim": "node"} == cluster.nodes
    assert "waits" == cluster.scheduler.queue.nominator.on_node("node")[0].name


@on_virtual_time
async def test_all_members_need_the_same_scheduler() -> None:
    """Otherwise each of them fails with the same error."""
    names = ("one", "two")
    async with running(
        gates=GENERIC, profiles=[{"schedulerName": name} for name in names]
    ) as cluster:
        cluster.api.create(make_node("node"), make_group())
        for name in names:
            cluster.api.create(make_member(name, spec={"schedulerName": name}))
        await cluster.settle()
        text = (
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            'got: "two" and "one"'
        )
        assert [("SchedulerError", text)] * 2 == [cluster.condition(n) for n in names]


@with_scheduler(gates=GENERIC)
async def test_terminating_members_are_left_out(cluster: Running) -> None:
    """They are dropped with an event; the others are scheduled."""
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster.api.create(make_group(), make_member("p1", metadata=going))
    cluster.api.create(make_member("p2"), make_node("node"))
    await cluster.settle()
    assert {"p2": "node"} == cluster.nodes
    skipped = "FailedScheduling p1: skip schedule deleting pod: default/p1"
    assert skipped in cluster.api.events


@with_scheduler(gates=GANGS)
async def test_a_scheduled_group_stays_scheduled(cluster: Running) -> None:
    """The condition does not change if a later pod fits nowhere."""
    cluster.api.create(make_node("node", allocatable={"cpu": "2"}), make_group(min_count=2))
    cluster.api.create(make_member("p0"), make_member("p1"))
    await cluster.settle(2)
    assert SCHEDULED == cluster.group("gang")
    cluster.api.create(make_member("p2"))
    await cluster.settle(2)
    assert "Unschedulable" == cluster.condition("p2")[0]
    assert SCHEDULED == cluster.group("gang")


@on_virtual_time
async def test_the_same_condition_is_written_once() -> None:
    """Another rejection with the same message is not written."""
    _, options = scripted(filter=ALL_NO)
    async with running(**options) as cluster:
        writes: list[object] = []
        write = cluster.api.patch_pod_group_status

        async def counted(group: PodGroup, condition: ConditionPatch) -> None:
            writes.append(condition)
            await write(group, condition)

        cluster.api.patch_pod_group_status = counted  # type: ignore[method-assign]  # counts
        await arrive(cluster)
        await cluster.settle(10)
        assert 1 == len(writes)


@on_virtual_time
async def test_the_condition_has_the_observed_generation() -> None:
    """A condition of an older generation is renewed."""
    _, options = scripted()
    async with running(**options) as cluster:
        stale = Condition(type="PodGroupScheduled", status="True", reason="Scheduled")
        group = make_group()
        status = replace(group.status, conditions=(stale,))
        cluster.api.create(replace(group, status=status), make_node("node"))
        cluster.api.create(make_member("p1"))
        await cluster.settle()
        assert 1 == cluster.api.groups["gang"].status.conditions[0].observed_generation


@pytest.mark.parametrize(("permit", "others"), [({}, "Placed"), (ALL_WAIT, "Failed")])
@on_virtual_time
async def test_observers_get_final_decisions(permit: Mapping[str, Status], others: str) -> None:
    """They do not hear of the placement of a pod whose group does not fit."""
    heard: list[tuple[str, str]] = []

    class Listener(Observer):
        def decided(self, decision: Decision, started: float) -> None:
            heard.append((decision.pod.name, type(decision).__name__))

    _, options = scripted(filter={"p2": NO}, permit=permit)
    async with running(**options, observers=[Listener()]) as cluster:
        await arrive(cluster)
    assert [("p1", others), ("p2", "Rejected"), ("p3", others)] == heard[:3]


@with_scheduler()
async def test_without_the_gate_groups_have_no_effect(cluster: Running) -> None:
    """Their pods are scheduled one by one."""
    cluster.api.create(make_node("node"), make_member("p1"))
    await cluster.settle()
    assert {"p1": "node"} == cluster.nodes


@with_scheduler(gates=GENERIC)
async def test_without_nodes_no_plugin_is_named(cluster: Running) -> None:
    """Members of groups have the same message as other pods."""
    cluster.api.create(make_group(), make_member("p1"), make_pod("single"))
    await cluster.settle()
    text = ("Unschedulable", "no nodes available to schedule pods")
    assert [text, text] == [cluster.condition(name) for name in ("p1", "single")]


@with_scheduler()
async def test_the_event_of_a_released_pod_has_its_node(cluster: Running) -> None:
    """Without it hints would ignore the freed room."""
    cluster.api.refused.add("p1")
    cluster.api.create(make_node("node", allocatable={"cpu": "1"}))
    cluster.api.create(make_pod("p1", requests={"cpu": "1"}))
    cluster.api.create(make_pod("p2", requests={"cpu": "1"}))
    await cluster.settle(3)
    assert {"p2": "node"} == cluster.nodes


@on_virtual_time
async def test_events_during_synchronous_evictions_are_handled_after_the_cycle() -> None:
    """Its tentative placements are in the cache meanwhile."""
    gates = {**GANGS, "SchedulerAsyncPreemption": False}
    async with running(gates=gates) as cluster:
        delete = cluster.api.delete_pod

        async def slowly(pod: Pod) -> None:
            await asyncio.sleep(1)
            cluster.api.create(make_node("late"))
            await asyncio.sleep(1)
            await delete(pod)

        cluster.api.delete_pod = slowly  # type: ignore[method-assign]  # takes its time
        cluster.api.create(make_node("node", allocatable={"cpu": "2"}), make_group(min_count=2))
        cluster.api.create(make_pod("victim", requests={"cpu": "1"}, node_name="node", priority=1))
        cluster.api.create(*(make_member(f"p{i}", priority=9) for i in range(2)))
        await cluster.settle(1.5)
        assert 1 == len(cluster.scheduler.cache.nodes)
        await cluster.settle(10)
        assert {"p0", "p1"} == set(cluster.nodes)
        assert "victim" not in cluster.api.pods


# A gang whose pods share one claim.


class EchoingWriter(FakeWriter):
    """Writes claims, and passes them to the scheduler as a watch would."""

    def __init__(self) -> None:
        super().__init__(ObjectStore())
        self.handlers: EventHandlers | None = None

    def _put(self, claim: ResourceClaim) -> ResourceClaim:
        before = self.store.get(ResourceClaim, claim.metadata.name, claim.metadata.namespace)
        stored = super()._put(claim)
        assert self.handlers is not None
        assert before is not None
        self.handlers.updated(before, stored)
        return stored


@pytest.mark.parametrize(("count", "min_count"), [(2, 2), (20, 20), (5, 2), (20, None)])
@on_virtual_time
async def test_a_gang_that_shares_a_claim(count: int, min_count: int | None) -> None:
    """All pods are bound in the first attempt, on the node with the device."""
    spec: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c1"}]}
    members = [make_member(f"p{at}", spec=spec) for at in range(count)]
    writer = EchoingWriter()
    async with running(gates=GANGS, writers=Writers(claims=writer)) as cluster:
        writer.handlers = handlers = cluster.api.handlers
        assert handlers is not None
        asked = claim(request())
        writer.store.put(asked)
        for item in (asked, device_class(), local("s1", "here")):
            handlers.added(item)
        cluster.api.create(
            *(make_node(name, allocatable={"cpu": "99"}) for name in ("here", "other"))
        )
        cluster.api.create(make_group(min_count=min_count), *members)
        await cluster.settle()
        assert {pod.metadata.name: "here" for pod in members} == cluster.nodes
        assert count == cluster.scheduler.queue.scheduling_cycle
    stored = writer.store.get(ResourceClaim, "c1", "default")
    assert stored is not None
    assert count == len(stored.status.reserved_for)
    assert 0 == writer.conflicted
