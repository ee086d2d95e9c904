"""Kubelets, nodes and controllers of a simulation."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.api.apps import DaemonSet, DaemonSetSpec, ReplicaSet, ReplicaSetSpec
from kubesched.api.core import Node, Pod, PodTemplateSpec
from kubesched.api.meta import ObjectMeta
from kubesched.simulator.faults import FaultPlan, WatchFaults
from kubesched.simulator.object_server import NODES, PODS
from kubesched.simulator.traces import RUN_SECONDS, run_seconds_of
from kubesched.simulator.world import World
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import Json, make_node, make_pod
from tests.client.follower import Follower

from .worlds import in_world, tell


def _create(world: World, name: str = "a", node: str = "node-1", **metadata: object) -> Pod:
    pod = world.server.create(make_pod(name, uid="", metadata=metadata))
    return world.server.bind("default", name, pod.metadata.uid, node) if node else pod


def _phase(world: World, name: str = "a") -> str:
    pod = world.server.pod("default", name)
    return "gone" if pod is None else pod.status.phase


def _is_deleting(world: World, name: str = "a") -> bool:
    pod = world.server.pod("default", name)
    assert pod is not None
    return pod.metadata.deletion_timestamp is not None


def _node(world: World, name: str = "node-1") -> Node:
    node = world.server.node(name)
    assert node is not None
    return node


def _effects(world: World) -> list[tuple[str, str]]:
    taints = _node(world).spec.taints
    return [(taint.key.removeprefix("node.kubernetes.io/"), taint.effect) for taint in taints]


# Kubelets.


@in_world
async def test_a_bound_pod_starts_runs_and_ends(world: World) -> None:
    """It starts after a delay, and is deleted at its end."""
    finished: list[str] = []
    world.kubelets.on_finished.append(lambda pod: finished.append(pod.metadata.name))
    _create(world, annotations={RUN_SECONDS: "100.0"})
    await asyncio.sleep(0.9)
    assert _phase(world) == "Pending"
    await asyncio.sleep(3.0)
    assert _phase(world) == "Running"
    await asyncio.sleep(96.0)
    assert _phase(world) == "Running"
    await asyncio.sleep(4.0)
    assert (_phase(world), finished) == ("gone", ["a"])


@pytest.mark.parametrize("annotations", [{}, {RUN_SECONDS: "soon"}, {RUN_SECONDS: "inf"}])
@in_world
async def test_a_pod_without_a_run_time_does_not_end(
    world: World, annotations: dict[str, str]
) -> None:
    """It runs until it is deleted, also if its annotation has no number."""
    pod = _create(world, annotations=annotations)
    assert run_seconds_of(pod) is None
    await asyncio.sleep(1e6)
    assert _phase(world) == "Running"


@in_world
async def test_an_unbound_pod_is_not_started(world: World) -> None:
    """No kubelet has it."""
    _create(world, node="", annotations={RUN_SECONDS: "1"})
    await asyncio.sleep(100)
    assert _phase(world) == "Pending"


@in_world
async def test_a_deleted_pod_stops_gracefully(world: World) -> None:
    """Its grace period is the limit."""
    _create(world, "a", annotations={RUN_SECONDS: "4"})
    _create(world, "b")
    await asyncio.sleep(3.1)
    world.server.delete_pod("default", "a")
    world.server.delete_pod("default", "b", grace_seconds=1)
    await asyncio.sleep(0.9)
    assert (_phase(world, "a"), _phase(world, "b")) == ("Running", "Running")
    await asyncio.sleep(0.2)
    assert (_phase(world, "a"), _phase(world, "b")) == ("Running", "gone")
    await asyncio.sleep(6.5)
    assert _phase(world, "a") == "gone"


@in_world
async def test_timers_of_a_pod_do_not_affect_its_successor(world: World) -> None:
    """A pod of the same name is another one."""
    _create(world, annotations={RUN_SECONDS: "10"})
    await asyncio.sleep(5)
    world.server.delete_pod("default", "a", grace_seconds=0)
    _create(world)
    await asyncio.sleep(1000)
    assert _phase(world) == "Running"


# Nodes.


@in_world
async def test_pods_of_a_removed_node_are_deleted(world: World) -> None:
    """After a delay, with those bound to it later."""
    _create(world, "a")
    _create(world, "b", node="node-2")
    await asyncio.sleep(10)
    world.nodes.remove("node-1")
    world.nodes.remove("no-such-node")
    await asyncio.sleep(30)
    _create(world, "c")
    await asyncio.sleep(29)
    assert _phase(world, "a") == "Running"
    await asyncio.sleep(2)
    assert _phase(world, "a") == "gone"
    await asyncio.sleep(30)
    assert (_phase(world, "b"), _phase(world, "c")) == ("Running", "gone")


@in_world
async def test_a_node_added_again_in_time_keeps_its_pods(world: World) -> None:
    """It has the same name."""
    _create(world)
    await asyncio.sleep(10)
    world.nodes.remove("node-1")
    await asyncio.sleep(30)
    world.nodes.add(make_node("node-1"))
    await asyncio.sleep(1000)
    assert _phase(world) == "Running"


@in_world
async def test_drain_and_uncordon(world: World) -> None:
    """Draining deletes all pods but the node's own; uncordon undoes the cordon."""
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}
    _create(world, "a")
    _create(world, "b", ownerReferences=[{**daemon, "controller": True}])
    _create(world, "static", annotations={"kubernetes.io/config.mirror": "x"})
    await asyncio.sleep(10)
    world.nodes.drain("node-1")
    world.nodes.drain("no-such-node")
    assert _node(world).spec.unschedulable
    assert [("unschedulable", "NoSchedule")] == _effects(world)
    await asyncio.sleep(10)
    phases = [_phase(world, name) for name in ("a", "b", "static")]
    assert ["gone", "Running", "Running"] == phases
    world.nodes.cordon("node-1", on=False)
    assert (_node(world).spec.unschedulable, _effects(world)) == (False, [])


@in_world
async def test_cordon_keeps_other_taints(world: World) -> None:
    """So do a second cordon and uncordoning."""
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    world.nodes.add(make_node("node-3", taints=[taint]))
    before = _node(world, "node-3").spec
    world.nodes.cordon("node-3")
    version = world.server.store.version
    world.nodes.cordon("node-3")
    assert version == world.server.store.version
    world.nodes.cordon("node-3", on=False)
    assert before == _node(world, "node-3").spec


@pytest.mark.parametrize(
    ("tolerations", "leaves_after"),
    [
        pytest.param([], 40 + 300, id="usual"),
        pytest.param([{"operator": "Exists"}], None, id="for-ever"),
        pytest.param(
            [{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
              "effect": "NoExecute", "tolerationSeconds": 10}],
            40 + 10,
            id="ten-seconds",
        ),
    ],
)  # fmt: skip
@in_world
async def test_a_failed_node_is_tainted(
    world: World, tolerations: list[Json], leaves_after: float | None
) -> None:
    """Its pods are evicted when their tolerations end."""
    pod = world.server.create(make_pod("a", uid="", tolerations=tolerations))
    world.server.bind("default", "a", pod.metadata.uid, "node-1")
    await asyncio.sleep(10)
    world.nodes.fail("node-1")
    await asyncio.sleep(39)
    assert _effects(world) == []
    await asyncio.sleep(2)
    assert _effects(world) == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
    if leaves_after is None:
        await asyncio.sleep(1000)
        assert not _is_deleting(world)
        return
    await asyncio.sleep(leaves_after - 42)
    assert not _is_deleting(world)
    await asyncio.sleep(2)
    # The kubelet does not answer, so the pod is not stopped.
    assert _is_deleting(world)
    await asyncio.sleep(1000)
    assert _phase(world) == "Running"
    world.nodes.recover("node-1")
    await asyncio.sleep(10)
    assert (_phase(world), _effects(world)) == ("gone", [])


@in_world
async def test_a_short_failure_adds_no_taint(world: World) -> None:
    """The pods lose their progress."""
    _create(world, annotations={RUN_SECONDS: "100"})
    await asyncio.sleep(50)
    world.nodes.fail("node-1", 20)
    await asyncio.sleep(70)
    assert (_phase(world), _effects(world)) == ("Running", [])
    await asyncio.sleep(60)
    assert _phase(world) == "gone"


@in_world
async def test_a_second_failure_delays_the_recovery(world: World) -> None:
    """The later recovery counts."""
    world.nodes.fail("node-1", 100)
    await asyncio.sleep(50)
    world.nodes.fail("node-1", 100)
    world.nodes.fail("no-such-node")
    await asyncio.sleep(60)
    assert len(_effects(world)) == 2
    await asyncio.sleep(45)
    assert _effects(world) == []


@in_world
async def test_a_pod_bound_to_a_failed_node_is_evicted(world: World) -> None:
    """When its toleration ends, which counts from the binding."""
    world.nodes.fail("node-1")
    await asyncio.sleep(100)
    _create(world)
    await asyncio.sleep(295)
    assert not _is_deleting(world)
    await asyncio.sleep(10)
    assert _is_deleting(world)
    world.nodes.remove("node-1")
    await asyncio.sleep(70)
    assert _phase(world) == "gone"


@in_world
async def test_relabel(world: World) -> None:
    """Labels are set and removed; an update without changes is not written."""
    world.nodes.relabel("node-1", {"a": "1", "b": "2"})
    version = world.server.store.version
    world.nodes.relabel("node-1", {"a": "1"}, ["c"])
    world.nodes.relabel("no-such-node", {"a": "1"})
    assert version == world.server.store.version
    world.nodes.relabel("node-1", {"a": "3"}, ["b"])
    assert _node(world).metadata.labels == {"a": "3"}


# Controllers.

TEMPLATE = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}), spec=make_pod().spec)


def _pods(world: World) -> list[Pod]:
    return [pod for pod in world.server.all(Pod) if not pod.metadata.deletion_timestamp]


def _replica_set(replicas: int) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=ReplicaSetSpec(replicas=replicas, template=TEMPLATE),
    )


@in_world
async def test_terminating_replicas_are_replaced(world: World) -> None:
    """The controller creates new ones at once."""
    world.server.create(_replica_set(3))
    await asyncio.sleep(1)
    first = _pods(world)
    assert len(first) == 3
    assert all(pod.metadata.owner_references[0].kind == "ReplicaSet" for pod in first)
    name = first[0].metadata.name
    world.server.bind("default", name, "", "node-1")
    await asyncio.sleep(10)
    world.server.delete_pod("default", name)
    await asyncio.sleep(1)
    assert len(_pods(world)) == 3
    assert world.server.pod("default", name) is not None
    await asyncio.sleep(20)
    assert len(world.server.all(Pod)) == 3


@in_world
async def test_scaling_down_deletes_pods_without_a_node_first(world: World) -> None:
    """The youngest pods follow."""
    world.server.create(_replica_set(4))
    await asyncio.sleep(1)
    names = [pod.metadata.name for pod in _pods(world)]
    for name in names[1:]:
        world.server.bind("default", name, "", "node-1")
    world.workloads.scale("default", "web", 2)
    world.workloads.scale("default", "other", 9)
    await asyncio.sleep(10)
    assert names[1:3] == [pod.metadata.name for pod in _pods(world)]
    world.workloads.scale("default", "web", 5)
    await asyncio.sleep(10)
    assert len(_pods(world)) == 5


@in_world
async def test_daemons_run_on_matching_nodes(world: World) -> None:
    """One per node that the template selects and whose taints it tolerates."""
    taint = {"key": "k", "effect": "NoSchedule"}
    world.nodes.add(make_node("node-3", taints=[taint]))
    spec = make_pod(node_selector={"role": "worker"}).spec
    template = PodTemplateSpec(metadata=TEMPLATE.metadata, spec=spec)
    metadata = ObjectMeta(name="agent", namespace="default")
    item = DaemonSet(metadata=metadata, spec=DaemonSetSpec(template=template))
    world.server.create(item)
    await asyncio.sleep(1)
    assert _pods(world) == []
    for number in (1, 2, 3):
        world.nodes.relabel(f"node-{number}", {"role": "worker"})
    await asyncio.sleep(1)
    assert ["node-1", "node-2"] == [_wanted_node(pod) for pod in _pods(world)]
    world.nodes.relabel("node-1", {}, ["role"])
    await asyncio.sleep(1)
    assert ["node-2"] == [_wanted_node(pod) for pod in _pods(world)]
    world.nodes.cordon("node-2")
    world.nodes.fail("node-2")
    await asyncio.sleep(100)
    assert ["node-2"] == [_wanted_node(pod) for pod in _pods(world)]
    world.nodes.remove("node-2")
    await asyncio.sleep(100)
    assert _pods(world) == []


@in_world
async def test_a_daemon_is_replaced_after_it_has_stopped(world: World) -> None:
    """While it stops, its node gets no other one."""
    metadata = ObjectMeta(name="agent", namespace="default")
    item = DaemonSet(metadata=metadata, spec=DaemonSetSpec(template=TEMPLATE))
    world.server.create(item)
    await asyncio.sleep(1)
    for pod in _pods(world):
        world.server.bind("default", pod.metadata.name, "", _wanted_node(pod))
    await asyncio.sleep(5)
    world.server.delete_pod("default", _pods(world)[0].metadata.name)
    await asyncio.sleep(1)
    assert ["agent-00001", "agent-00002"] == [pod.metadata.name for pod in world.server.all(Pod)]
    await asyncio.sleep(10)
    assert ["agent-00002", "agent-00003"] == [pod.metadata.name for pod in world.server.all(Pod)]


def _wanted_node(pod: Pod) -> str:
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    return required.node_selector_terms[0].match_fields[0].values[0]


@in_world
async def test_a_jobs_pod_runs_to_its_end_once(world: World) -> None:
    """A pod that is stopped before its end is created again."""
    metadata = ObjectMeta(annotations={RUN_SECONDS: "50"})
    template = PodTemplateSpec(metadata=metadata, spec=TEMPLATE.spec)
    world.workloads.add_run("job", "default", template, "run")
    (pod,) = _pods(world)
    world.server.delete_pod("default", pod.metadata.name)
    await asyncio.sleep(1)
    (pod,) = _pods(world)
    assert pod.metadata.name == "run-2"
    world.server.bind("default", pod.metadata.name, "", "node-1")
    await asyncio.sleep(100)
    assert world.server.all(Pod) == ()


@in_world
async def test_runs_of_a_job_have_one_owner(world: World) -> None:
    """Their pods have the same template."""
    for number in range(3):
        world.workloads.add_run("job", "default", TEMPLATE, f"run-{number}")
    pods = _pods(world)
    assert ["run-0-1", "run-1-1", "run-2-1"] == [pod.metadata.name for pod in pods]
    first, *others = (PodInfo(pod).template for pod in pods)
    assert all(template is first for template in others)
    world.server.delete_pod("default", "run-1-1")
    await asyncio.sleep(1)
    assert ["run-0-1", "run-2-1", "run-1-2"] == [pod.metadata.name for pod in _pods(world)]


@in_world
async def test_a_controller_continues_after_a_refused_template(world: World) -> None:
    """The API server accepted none of its pods."""
    spec = make_pod(spec={"priorityClassName": "none"}).spec
    world.workloads.add_run("job", "default", PodTemplateSpec(spec=spec), "run")
    await asyncio.sleep(1)
    assert world.server.all(Pod) == ()


# The scheduler's watches.


@in_world
async def test_connect_reports_nodes_first_and_pods_last(world: World) -> None:
    """A scheduler knows the cluster before its pending pods."""
    _create(world)
    world.server.create(_replica_set(0))
    follower = Follower()
    world.connect(follower)
    assert ["node-1", "node-2", "web", "a"] == [name for _, name in follower.there]


def test_no_event_is_lost_when_watches_break() -> None:
    """They may break any number of times."""

    async def story(world: World) -> None:
        follower = Follower()
        world.connect(follower, (NODES, PODS))
        for number in range(200):
            _create(world, f"p{number}", annotations={RUN_SECONDS: "30"})
            await asyncio.sleep(1)
        assert sum(informer.relists for informer in world.informers.values()) > 0
        # Longer than any pod runs, any watch is out and any change is under way.
        await asyncio.sleep(100)
        names = {pod.metadata.name for pod in world.server.all(Pod)}
        assert {"node-1", "node-2", *names} == {name for _, name in follower.there}

    tell(story, FaultPlan(watch=WatchFaults(every=20.0, outage=3.0, expired=0.5)))
