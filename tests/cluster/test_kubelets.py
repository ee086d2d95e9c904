"""Pods on fake nodes: they start, run, end, restart and stop."""

from __future__ import annotations

import asyncio
import time
from random import Random

import pytest

from kubesched.apiserver.stored_object import StoredObject
from kubesched.cluster.store import Key
from kubesched.sandbox.pod_reports import EXIT_CODE, RUN_SECONDS, PodLatencies, kubelets_of

from .sandbox_world import Json, World, live, on_nodes

POD = Key("pods", "default", "p")
NODE = Key("nodes", "", "node-0")


def conditions(pod: Json) -> Json:
    """Return the state of each condition."""
    return {one["type"]: one["status"] for one in pod["status"]["conditions"]}


def condition(pod: Json, type_: str) -> Json:
    """Return the condition of a type."""
    found: Json
    [found] = [one for one in pod["status"]["conditions"] if one["type"] == type_]
    return found


@on_nodes
async def test_a_bound_pod_runs_after_the_start_latency(world: World) -> None:
    """Then it is ready, with addresses and times."""
    world.add_pod()
    await asyncio.sleep(0.4)
    before = world.pod()
    await asyncio.sleep(1.2)
    after = world.pod()
    assert "Pending" == before["status"]["phase"]
    status = after["status"]
    assert "Running" == status["phase"]
    assert {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }.items() <= conditions(after).items()
    assert ("10.64.0.1", "10.128.0.1") == (status["hostIP"], status["podIP"])
    assert [{"ip": "10.128.0.1"}] == status["podIPs"]
    assert "2026-01-01T00:00:0" == status["startTime"][:18]
    [container] = status["containerStatuses"]
    assert (True, True, 0) == tuple(container[n] for n in ("ready", "started", "restartCount"))
    assert {"running"} == container["state"].keys()


@on_nodes
async def test_each_pod_has_its_own_address(world: World) -> None:
    """Pods of the host's network have the host's."""
    for name in ("a", "b"):
        world.add_pod(name)
    world.add_pod("c", hostNetwork=True)
    await asyncio.sleep(2)
    first, second, host = [world.pod(name)["status"]["podIP"] for name in ("a", "b", "c")]
    assert first != second
    assert "10.64.0.1" == host


@pytest.mark.parametrize(
    ("policy", "exit_code", "phase", "restarts"),
    [
        pytest.param("Never", "0", "Succeeded", 0, id="never-done"),
        pytest.param("Never", "3", "Failed", 0, id="never-failed"),
        pytest.param("OnFailure", "0", "Succeeded", 0, id="on-failure-done"),
        pytest.param("OnFailure", "3", "Running", 2, id="on-failure-failed"),
        pytest.param("Always", "0", "Running", 2, id="always"),
    ],
)
@on_nodes
async def test_the_restart_policy_decides_how_a_pod_ends(
    world: World, policy: str, exit_code: str, phase: str, restarts: int
) -> None:
    """After its run time the pod ends, or its containers restart."""
    world.add_pod(restartPolicy=policy, annotations={RUN_SECONDS: "5", EXIT_CODE: exit_code})
    await asyncio.sleep(13)
    pod = world.pod()
    assert phase == pod["status"]["phase"]
    [container] = pod["status"]["containerStatuses"]
    assert restarts == container["restartCount"]
    if phase == "Running":
        assert int(exit_code) == container["lastState"]["terminated"]["exitCode"]
    else:
        assert int(exit_code) == container["state"]["terminated"]["exitCode"]
        assert "False" == conditions(pod)["Ready"]
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        assert reason == condition(pod, "Ready")["reason"]


@on_nodes
async def test_a_pod_that_ends_at_once_restarts_ten_times_a_second(world: World) -> None:
    """Not as often as the loop can."""
    world.add_pod(annotations={RUN_SECONDS: "0"})
    await asyncio.sleep(4)
    [container] = world.pod()["status"]["containerStatuses"]
    assert 20 < container["restartCount"] < 40


@pytest.mark.parametrize(
    ("policy", "annotation", "phase"),
    [
        pytest.param("Never", None, "Succeeded", id="default-time"),
        pytest.param("Always", None, "Running", id="for-ever"),
        pytest.param("Never", "soon", "Succeeded", id="no-number"),
        pytest.param("Never", "nan", "Succeeded", id="not-a-number"),
        pytest.param("Never", "inf", "Succeeded", id="infinite"),
        pytest.param("Never", "1000", "Running", id="longer"),
    ],
)
@on_nodes
async def test_the_default_run_time_is_for_pods_that_may_end(
    world: World, policy: str, annotation: str | None, phase: str
) -> None:
    """Their restart policy allows it, and they have no run time of their own."""
    annotations = {} if annotation is None else {RUN_SECONDS: annotation}
    world.add_pod(restartPolicy=policy, annotations=annotations)
    await asyncio.sleep(20)
    assert phase == world.phase()


@pytest.mark.parametrize(
    ("grace", "stop", "gone_after"),
    [pytest.param(30, 1.0, 1.6, id="latency"), pytest.param(2, 100.0, 2.1, id="grace")],
)
def test_a_deleted_pod_stops_within_its_grace_period(
    grace: int, stop: float, gone_after: float
) -> None:
    """It has a deletion timestamp until then."""

    async def story(world: World) -> tuple[str | None, str | None]:
        world.add_pod()
        await asyncio.sleep(2)
        world.client.delete(POD, grace_seconds=grace)
        await asyncio.sleep(0.3)
        before = world.phase()
        await asyncio.sleep(gone_after - 0.3)
        return before, world.phase()

    assert ("Running", None) == live(story, PodLatencies(stop=stop))


def test_a_second_deletion_may_shorten_the_grace_period() -> None:
    """The shorter one counts."""

    async def story(world: World) -> tuple[str | None, str | None]:
        world.add_pod()
        await asyncio.sleep(2)
        world.client.delete(POD, grace_seconds=60)
        await asyncio.sleep(5)
        before = world.phase()
        world.client.delete(POD, grace_seconds=1)
        await asyncio.sleep(1.1)
        return before, world.phase()

    assert ("Running", None) == live(story, PodLatencies(stop=100.0))


@on_nodes
async def test_a_stopped_pod_with_finalizers_stays(world: World) -> None:
    """Until the last one is removed."""
    world.add_pod(finalizers=["example.com/x"])
    await asyncio.sleep(2)
    world.client.delete(POD, grace_seconds=5)
    await asyncio.sleep(10)
    assert ("Succeeded", 0) == (
        world.phase(),
        world.pod()["metadata"]["deletionGracePeriodSeconds"],
    )


@on_nodes
async def test_a_pod_of_an_unknown_node_does_not_run(world: World) -> None:
    """It starts when the node is added."""
    world.add_pod(node="later")
    await asyncio.sleep(10)
    before = world.phase()
    world.client.create("nodes", {"metadata": {"name": "later"}})
    await asyncio.sleep(2)
    assert ("Pending", "Running") == (before, world.phase())


@on_nodes
async def test_pods_of_a_node_that_is_not_ready_do_not_change(world: World) -> None:
    """They neither start nor stop until it is ready again."""

    def ready(world: World, state: str) -> None:
        node = world.node()
        changed = [
            {**one, "status": state} if one["type"] == "Ready" else one
            for one in node["status"]["conditions"]
        ]
        world.client.write(NODE, {**node, "status": {**node["status"], "conditions": changed}})

    world.add_pod("a")
    await asyncio.sleep(2)
    ready(world, "Unknown")
    await asyncio.sleep(0.1)
    world.add_pod("b")
    world.client.delete(POD._replace(name="a"), grace_seconds=5)
    await asyncio.sleep(20)
    phases = [world.phase("a"), world.phase("b")]
    ready(world, "True")
    await asyncio.sleep(2)
    assert ["Running", "Pending", None, "Running"] == [*phases, world.phase("a"), world.phase("b")]


@on_nodes
async def test_in_place_resizes_are_granted(world: World) -> None:
    """To running pods; a status that somebody wrote about another container stays."""
    resources = {"requests": {"cpu": "1"}}
    world.add_pod(containers=[{"name": "c", "image": "i", "resources": resources}])
    await asyncio.sleep(2)
    pod = world.pod()
    pod["status"]["containerStatuses"].append({"name": "other", "restartCount": 0})
    container = {**pod["spec"]["containers"][0], "resources": {"requests": {"cpu": "2"}}}
    metadata = {**pod["metadata"], "generation": pod["metadata"].get("generation", 1) + 1}
    spec = {**pod["spec"], "containers": [container]}
    world.client.write(POD, {**pod, "metadata": metadata, "spec": spec})
    await asyncio.sleep(0.1)
    container, other = world.pod()["status"]["containerStatuses"]
    assert {"cpu": "2"} == container["allocatedResources"]
    assert {"name": "other", "restartCount": 0} == other
    assert 2 == condition(world.pod(), "Ready")["observedGeneration"]


@on_nodes
async def test_ephemeral_containers_run(world: World) -> None:
    """The second one, too; the first one has run since its start."""
    world.add_pod()
    await asyncio.sleep(2)
    begun, added = [], []
    for name in ("a", "b"):
        pod = world.pod()
        added.append({"name": name, "image": "i"})
        metadata = {**pod["metadata"], "generation": pod["metadata"].get("generation", 1) + 1}
        spec = {**pod["spec"], "ephemeralContainers": [*added]}
        world.client.write(POD, {**pod, "metadata": metadata, "spec": spec})
        await asyncio.sleep(5)
        statuses = world.pod()["status"]["ephemeralContainerStatuses"]
        begun.append({one["name"]: one["state"]["running"]["startedAt"] for one in statuses})
    assert {"a", "b"} == begun[1].keys()
    assert begun[0] == {"a": begun[1]["a"]}


@on_nodes
async def test_readiness_gates_decide_whether_a_running_pod_is_ready(world: World) -> None:
    """It becomes ready when somebody writes the last condition that it waits for."""
    world.add_pod(readinessGates=[{"conditionType": "a"}, {"conditionType": "b"}])
    await asyncio.sleep(2)
    pod = world.pod()
    before = condition(pod, "Ready")
    told = []
    for status in ("False", "True"):
        gates = [{"type": one, "status": status} for one in ("a", "b")]
        others = [one for one in pod["status"]["conditions"] if one["type"] not in {"a", "b"}]
        world.client.write(POD, {**pod, "status": {**pod["status"], "conditions": gates + others}})
        await asyncio.sleep(0.1)
        pod = world.pod()
        told.append((condition(pod, "Ready")["status"], condition(pod, "Ready").get("message")))
    missing = 'corresponding condition of pod readiness gate "{}" does not exist.'
    assert ("ReadinessGatesNotReady", ", ".join(map(missing.format, "ab"))) == (
        before["reason"],
        before["message"],
    )
    no = 'the status of pod readiness gate "{}" is not "True", but False'
    assert [("False", ", ".join(map(no.format, "ab"))), ("True", None)] == told


@on_nodes
async def test_a_pod_that_is_removed_right_after_a_resize(world: World) -> None:
    """The change arrives when the pod is gone; those of other pods still arrive."""
    world.add_pod()
    await asyncio.sleep(2)
    pod = world.pod()
    metadata = {**pod["metadata"], "generation": pod["metadata"].get("generation", 1) + 1}
    world.client.write(POD, {**pod, "metadata": metadata})
    world.client.delete(POD, grace_seconds=0)
    world.add_pod("q")
    await asyncio.sleep(2)
    assert (None, "Running") == (world.phase(), world.phase("q"))


@pytest.mark.parametrize("seconds", [0.1, 2.0])
@on_nodes
async def test_a_pod_whose_phase_a_client_made_final_keeps_it(world: World, seconds: float) -> None:
    """Whether its containers were to start or to end next."""
    world.add_pod(annotations={RUN_SECONDS: "5"}, restartPolicy="Never")
    await asyncio.sleep(seconds)
    pod = world.pod()
    world.client.write(POD, {**pod, "status": {**pod["status"], "phase": "Failed"}})
    await asyncio.sleep(20)
    assert "Failed" == world.phase()


@on_nodes
async def test_init_containers_have_ended_and_sidecars_run(world: World) -> None:
    """Init containers are completed; restartable ones run beside the others."""
    first = {"name": "first", "image": "i"}
    sidecar = {"name": "sidecar", "image": "i", "restartPolicy": "Always"}
    world.add_pod(initContainers=[first, sidecar])
    await asyncio.sleep(2)
    statuses = world.pod()["status"]["initContainerStatuses"]
    assert [["terminated"], ["running"]] == [list(one["state"]) for one in statuses]


@on_nodes
async def test_kubelets_adopt_running_pods(world: World) -> None:
    """The pods keep their addresses."""
    world.add_pod("a", annotations={RUN_SECONDS: "5"}, restartPolicy="Never")
    await asyncio.sleep(2)
    world.kubelets.stop()
    await asyncio.sleep(20)
    before = world.phase("a")
    kubelets = kubelets_of(world.client, PodLatencies(), Random(3))
    kubelets.start()
    world.add_pod("b")
    await asyncio.sleep(6)
    kubelets.stop()
    addresses = [world.pod(name)["status"]["podIP"] for name in ("a", "b")]
    assert (["Running", "Succeeded"], True) == (
        [before, world.phase("a")],
        addresses[0] != addresses[1],
    )


@pytest.mark.slow
def test_time_per_pod_does_not_grow_with_pods() -> None:
    """With work per pod that grew with their number, ten times the pods would take a hundred."""
    few, many = (_seconds_to_run(pods) for pods in (1_000, 10_000))
    assert many < 25 * few


def _seconds_to_run(pods: int) -> float:
    """Return the CPU seconds until this number of pods runs on 100 nodes."""

    async def story(world: World) -> float:
        for number in range(pods):
            world.client.store.create(
                Key("pods", "default", f"p{number}"), _bound(f"p{number}", number % 100)
            )
        begin = time.process_time()
        await asyncio.sleep(5)
        spent = time.process_time() - begin
        assert "Running" == world.phase(f"p{pods - 1}")
        return spent

    return live(story, nodes=100)


def _bound(name: str, node: int) -> StoredObject:
    return StoredObject(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": f"node-{node:02d}"},
            "status": {"phase": "Pending"},
        }
    )
