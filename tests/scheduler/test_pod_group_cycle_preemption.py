"""Preemption for a pod group as a whole, in the running scheduler."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.scheduler.pod_group_cycle import Trial
from kubesched.scheduler.pod_group_outcome import Outcome
from kubesched.simulator.cluster import ClusterState
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.model.clusters import make_cluster
from tests.scheduler.running import (
    GANGS,
    FakeApi,
    Running,
    make_group,
    make_member,
    running,
    with_scheduler,
)
from tests.scheduler.scripted import GROUP, REJECTED

GATES = {**GANGS, "WorkloadAwarePreemption": True}


def group_of(min_count: int, priority: int | None = 9, key: str = "") -> PodGroup:
    """Return a gang with a priority."""
    return make_group(min_count=min_count, priority=priority, key=key)


def victim(name: str, node: str = "node", priority: int = 1, **fields: object) -> Pod:
    """Return a bound pod that requests one CPU."""
    requests = {"cpu": "1"}
    return make_pod(name, requests=requests, node_name=node, priority=priority, **fields)  # type: ignore[arg-type]  # the keywords are a TypedDict's


async def arrive(cluster: Running, *items: Pod, group: PodGroup, members: int = 2) -> None:
    """Create a node of two CPUs, pods on it, and a gang."""
    cluster.api.create(make_node("node", allocatable={"cpu": "2"}), *items, group)
    cluster.api.create(*(make_member(f"p{i}", priority=9) for i in range(members)))
    await cluster.settle(0.1)


@with_scheduler(gates=GATES)
async def test_the_gang_preempts_as_a_whole(cluster: Running) -> None:
    """Victims are evicted with the group as the reason; then the gang is bound."""
    cluster.api.stop_seconds = 1.0
    await arrive(cluster, victim("v1"), victim("v2"), group=group_of(2))
    preempted = [event for event in cluster.api.events if event.startswith("Preempted")]
    note = "Preempted by podgroup uid-gang on node cluster"
    assert [f"Preempted v1: {note}", f"Preempted v2: {note}"] == preempted
    assert REJECTED == cluster.group("gang")
    await cluster.settle(5)
    assert {"p0": "node", "p1": "node"} == cluster.nodes


@on_virtual_time
async def test_the_condition_of_victims_names_the_group() -> None:
    """It has the kind of the preemptor."""
    messages: list[str] = []

    class Api(FakeApi):
        async def delete_pod(self, pod: Pod) -> None:
            messages.append(self.pods[pod.metadata.name].status.conditions[-1].message)
            await super().delete_pod(pod)

    async with running(gates=GATES) as cluster:
        cluster.api.__class__ = Api
        await arrive(cluster, victim("v"), group=group_of(2))
    assert ["default-scheduler: preempting to accommodate a higher priority podgroup"] == messages


@with_scheduler(gates=GATES)
async def test_no_more_victims_than_needed(cluster: Running) -> None:
    """One CPU is free: of two victims the more important one stays."""
    cluster.api.create(make_node("node", allocatable={"cpu": "3"}), group_of(2))
    cluster.api.create(victim("low", priority=0), victim("high", priority=1))
    cluster.api.create(*(make_member(f"p{i}", priority=9) for i in range(2)))
    await cluster.settle(5)
    assert {"p0", "p1", "high"} == set(cluster.nodes)


@pytest.mark.parametrize("after", range(60, 66))
@with_scheduler(gates=GATES)
async def test_the_gang_takes_the_room_that_it_made(cluster: Running, after: int) -> None:
    """Before members of another group, which are retried after backoff and would be evicted."""
    cluster.api.create(make_node("node", allocatable={"cpu": "1"}))
    cluster.api.create(make_group("low"), group_of(1))
    cluster.api.create(*(make_member(f"low{i}", "low") for i in range(3)))
    await cluster.settle(after + 0.5)
    cluster.api.create(make_member("p0", priority=9))
    await cluster.settle(20)
    assert {"p0": "node"} == cluster.nodes
    assert 1 == len([event for event in cluster.api.events if event.startswith("Preempted")])


@with_scheduler(gates={**GATES, "SchedulerAsyncPreemption": True})
async def test_members_that_fit_before_preemption_are_nominated(cluster: Running) -> None:
    """A member without a node in the first try is not."""
    cluster.api.stop_seconds = 1.0
    await arrive(cluster, victim("v"), group=group_of(2))
    nominated = {name: pod.status.nominated_node_name for name, pod in cluster.api.pods.items()}
    # The first pod was held back until the second came, so it was tried after it.
    assert {"p0": "", "p1": "node", "v": ""} == nominated


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        pytest.param(
            group_of(2, priority=1),
            "No preemption victims found for incoming preemptor",
            id="nobody is less important",
        ),
        pytest.param(
            group_of(2, priority=None),
            "No preemption victims found for incoming preemptor",
            id="the pods' own priority does not count",
        ),
        pytest.param(group_of(3), GROUP, id="it does not help"),
        pytest.param(
            group_of(2, key="zone"),
            "workload aware preemption is not supported for pod groups with scheduling constraints",
            id="topology",
        ),
    ],
)
@with_scheduler(gates=GATES)
async def test_why_a_group_does_not_preempt(cluster: Running, group: PodGroup, reason: str) -> None:
    """The reason follows the group's; its pods do not preempt on their own."""
    await arrive(cluster, victim("v"), group=group, members=3)
    assert "v" in cluster.api.pods
    assert ("False", "Unschedulable", f"{GROUP}, {reason}") == cluster.group("gang")


@with_scheduler(gates=GATES)
async def test_one_non_preempting_member_disables_preemption(cluster: Running) -> None:
    """No member of the group preempts."""
    spec = {"preemptionPolicy": "Never"}
    cluster.api.create(make_node("node", allocatable={"cpu": "2"}), victim("v"))
    cluster.api.create(group_of(2), make_member("p0"), make_member("p1", spec=spec))
    await cluster.settle(0.1)
    assert "v" in cluster.api.pods
    reason = f"{GROUP}, not eligible due to preemptionPolicy=Never."
    assert ("False", "Unschedulable", reason) == cluster.group("gang")


@on_virtual_time
async def test_groups_do_not_preempt_without_default_preemption() -> None:
    """The profile disables the plugin."""
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}
    async with running(gates=GATES, profile=profile) as cluster:
        await arrive(cluster, victim("v"), group=group_of(2))
        words = "default preemption plugin is not registered, workload aware preemption is "
        reason = f"{GROUP}, {words}disabled"
        assert ("False", "Unschedulable", reason) == cluster.group("gang")


@with_scheduler(gates={**GATES, "GangScheduling": True})
async def test_a_deleted_group_is_an_error(cluster: Running) -> None:
    """Of each pod; there is no condition to write."""
    cluster.api.create(make_node("node", allocatable={"cpu": "2"}), victim("v"))
    cluster.api.create(group_of(2), make_member("p0"))
    await cluster.settle(0.1)
    cluster.api.create(make_member("p1"))
    cluster.api.handlers.deleted(cluster.api.groups.pop("gang"))
    await cluster.settle(0.1)
    words = 'failed to get podGroup default/gang: podgroup.scheduling.k8s.io "gang" not found'
    assert words in cluster.condition("p0")[1]


@on_virtual_time
async def test_the_preemption_is_synchronous_without_the_gate() -> None:
    """The group is requeued after the evictions; a refused one is an error."""
    gates = {**GATES, "SchedulerAsyncPreemption": False}
    async with running(gates=gates) as cluster:
        await arrive(cluster, victim("v1"), victim("v2"), group=group_of(2))
        await cluster.settle(5)
        assert {"p0": "node", "p1": "node"} == cluster.nodes


async def _tried(status: Status) -> Outcome:
    return Outcome(status, ())


def _cluster() -> ClusterState:
    cluster = make_cluster([], ())
    for name in "nm":
        cluster.cache.add_node(make_node(name))
    for number in range(6):
        cluster.cache.add_pod(victim(f"v{number}", "nm"[number % 2]))
    return cluster


def test_a_trial_is_undone() -> None:
    """Rows have their pods in the same order, and the columns are consistent."""
    cluster = _cluster()
    nodes = cluster.cache.nodes
    before = [list(pods) for pods in nodes.pods]
    first, second = (list(pods.values()) for pods in nodes.pods)
    trial = Trial(nodes, lambda: _tried(SUCCESS))
    trial.remove([first[0], second[1], first[2]])
    cluster.cache.nodes.check()
    trial.put_back([first[2]])
    trial.remove([first[1]])
    trial.put_back([first[0]])
    trial.restore()
    assert before == [list(pods) for pods in nodes.pods]
    cluster.cache.check()


def test_a_trial_returns_the_schedulers_answer() -> None:
    """The trial does not change the answer."""
    status = unschedulable("no")
    trial = Trial(_cluster().cache.nodes, lambda: _tried(status))
    assert status == asyncio.run(trial.schedule())
