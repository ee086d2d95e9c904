"""Owners adopt and release objects; what is expected was seen with kube-controller-manager 1.36."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.cluster.store import Key
from tests.cluster.sandbox_world import World
from tests.cluster.test_controllers import NAME, SPEC, controlled, names, status_of, workload

KINDS = [
    pytest.param("replicasets.apps", 2, id="replica-set"),
    pytest.param("deployments.apps", 2, id="deployment"),
    pytest.param("statefulsets.apps", 2, id="stateful-set"),
    pytest.param("daemonsets.apps", None, id="daemon-set"),
]
SETS = "replicasets.apps"


def relabel(world: World, name: str, app: str, kind: str = "pods") -> None:
    """Change a label of an object, as `kubectl label --overwrite` does."""
    found = world.get(kind, name)
    labels = {**found["metadata"].get("labels", {}), "app": app}
    metadata = {**found["metadata"], "labels": labels}
    world.client.write(Key(kind, "default", name), {**found, "metadata": metadata})


def free(world: World, kind: str = "pods") -> list[str]:
    """Return the names of the objects without an owner."""
    found = (one["metadata"] for one in world.client.list(kind))
    return [metadata["name"] for metadata in found if "ownerReferences" not in metadata]


def add_pod(world: World, name: str, **metadata: object) -> None:
    """Create a pod with the labels of the workload's pods."""
    labels = {"app": NAME}
    whole = {"name": name, "namespace": "default", "labels": labels, **metadata}
    world.client.create("pods", {"metadata": whole, "spec": SPEC})


async def create(world: World, kind: str, replicas: int | None, **spec: object) -> None:
    """Create the workload, and wait for its pods."""
    world.client.create(*workload(kind, replicas, **spec))
    await asyncio.sleep(8)


@pytest.mark.parametrize(("kind", "replicas"), KINDS)
@controlled
async def test_a_workload_adopts_what_one_of_its_name_left(
    world: World, kind: str, replicas: int | None
) -> None:
    """After `kubectl delete --cascade=orphan`, the pods stay, and the next workload has them."""
    await create(world, kind, replicas)
    before = names(world)
    world.client.delete(Key(kind, "default", NAME), policy="Orphan")
    await asyncio.sleep(3)
    sets = names(world, SETS)  # Those of a Deployment stay, and own the pods.
    owned = SETS if sets else "pods"
    assert (sets or before) == free(world, owned)
    await create(world, kind, replicas)
    assert (before, []) == (names(world), free(world, owned))
    uid = world.get(kind, NAME)["metadata"]["uid"]
    [*_, one] = world.client.list(owned)
    [owner] = one["metadata"]["ownerReferences"]
    assert (uid, True, True) == (owner["uid"], owner["controller"], owner["blockOwnerDeletion"])


@pytest.mark.parametrize(("kind", "replicas"), KINDS)
@controlled
async def test_a_pod_is_taken_out_of_its_workload(
    world: World, kind: str, replicas: int | None
) -> None:
    """A pod with another label is released and replaced, unless its name is taken."""
    await create(world, kind, replicas, podManagementPolicy="Parallel")
    before = names(world)
    relabel(world, before[0], "debug")
    await asyncio.sleep(5)
    is_replaced = kind != "statefulsets.apps"
    assert [before[0]] == free(world)
    assert len(before) + is_replaced == len(names(world))
    relabel(world, before[0], NAME)
    await asyncio.sleep(8)
    assert ([], len(before)) == (free(world), len(names(world)))


@pytest.mark.parametrize(
    ("kind", "replicas", "left"),
    [
        pytest.param("replicasets.apps", 1, ["ended"], id="replica-set"),
        pytest.param("replicationcontrollers", 1, ["ended"], id="replication-controller"),
        pytest.param("statefulsets.apps", 1, ["bare", "ended"], id="stateful-set"),
        pytest.param("daemonsets.apps", None, [], id="daemon-set"),
    ],
)
@controlled
async def test_a_pod_that_a_user_creates_is_adopted(
    world: World, kind: str, replicas: int | None, left: list[str]
) -> None:
    """It is deleted as a surplus one; a StatefulSet adopts only pods with its names."""
    _, made = workload(kind, replicas)
    if kind == "replicationcontrollers":
        made["spec"]["selector"] = {"app": NAME}
    world.client.create(kind, made)
    await asyncio.sleep(8)
    before = names(world)
    add_pod(world, "bare")
    add_pod(world, "ended")
    ended = {"phase": "Failed"}
    world.client.patch_status(Key("pods", "default", "ended"), ended)
    add_pod(world, "other", labels={"app": "other"})
    await asyncio.sleep(8)
    assert [*left, "other"] == free(world)
    assert [*before, *left, "other"] == names(world)


@controlled
async def test_a_deployment_releases_a_replica_set(world: World) -> None:
    """It creates another one, whose name differs, and adopts the first one again."""
    await create(world, "deployments.apps", 2)
    [first] = names(world, SETS)
    relabel(world, first, "other", SETS)
    await asyncio.sleep(5)
    assert [first] == free(world, SETS)
    assert (2, 4) == (len(names(world, SETS)), len(names(world)))
    assert 1 == status_of(world, "deployments.apps")["collisionCount"]
    relabel(world, first, NAME, SETS)
    await asyncio.sleep(8)
    assert ([], 2) == (free(world, SETS), len(names(world)))


@controlled
async def test_a_pod_has_one_controller(world: World) -> None:
    """Of two owners with the same selector, one adopts a pod, and the other creates one."""
    add_pod(world, "p")
    for name in ("a", "b"):
        metadata = {"name": name, "namespace": "default"}
        world.client.create(SETS, {**workload(SETS, 1)[1], "metadata": metadata})
    await asyncio.sleep(5)
    pods = world.client.list("pods")
    owners = [one["name"] for pod in pods for one in pod["metadata"]["ownerReferences"]]
    assert (["a", "b"], "p") == (sorted(owners), names(world)[0])
