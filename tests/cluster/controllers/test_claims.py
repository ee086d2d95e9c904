"""Claims are bound to volumes, existing or pretended ones, and both are deleted in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.cluster.store import Key
from tests.cluster.sandbox_world import Json, World
from tests.cluster.test_controllers import SPEC, controlled

CLAIM = Key("persistentvolumeclaims", "default", "data")
CLASSES = "storageclasses.storage.k8s.io"


def _add_class(
    world: World, mode: str, provisioner: str = "disk.example.com", **annotations: str
) -> None:
    metadata = {"name": "fast", "annotations": annotations}
    given = {"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode}
    world.client.create(CLASSES, given)


def _add_claim(
    world: World, volume: str = "", class_name: str | None = "fast", **metadata: Any
) -> None:
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": class_name,
        "volumeName": volume,
    }
    given = {"name": CLAIM.name, "namespace": CLAIM.namespace, **metadata}
    world.client.create(CLAIM.kind, {"metadata": given, "spec": spec})


def _add_volume(world: World, name: str, size: str, **spec: Any) -> None:
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "hostPath": {"path": "/x"},
        **spec,
    }
    world.client.create("persistentvolumes", {"metadata": {"name": name}, "spec": spec})


def _claim(world: World) -> Json:
    found = world.client.find(*CLAIM)
    assert found is not None
    return found


def _phases(world: World) -> dict[str, str]:
    volumes = world.client.list("persistentvolumes")
    return {one["metadata"]["name"]: one["status"]["phase"] for one in volumes}


@controlled
async def test_the_smallest_volume_that_fits_is_bound(world: World) -> None:
    """It is large enough and of the class; others stay available."""
    _add_class(world, "Immediate", "kubernetes.io/no-provisioner")
    for name, size in (("small", "1Gi"), ("large", "50Gi"), ("right", "6Gi")):
        _add_volume(world, name, size)
    _add_volume(world, "other", "5Gi", storageClassName="slow")
    _add_claim(world)
    await asyncio.sleep(1)
    claim = _claim(world)
    name, status, phases = claim["spec"]["volumeName"], claim["status"], _phases(world)
    assert ("right", "Bound") == (name, status["phase"])
    assert {"storage": "6Gi"} == status["capacity"]
    others = dict.fromkeys(("small", "large", "other"), "Available")
    assert {**others, "right": "Bound"} == phases


@pytest.mark.parametrize("class_name", [None, ""])
@controlled
async def test_a_claim_without_a_class_gets_a_later_default_one(
    world: World, class_name: str | None
) -> None:
    """Unless it asks for none."""
    _add_claim(world, class_name=class_name)
    await asyncio.sleep(1)
    _add_class(world, "Immediate", **{"storageclass.kubernetes.io/is-default-class": "true"})
    await asyncio.sleep(1)
    claim = _claim(world)
    expected = ("fast", "Bound") if class_name is None else ("", "Pending")
    assert expected == (claim["spec"]["storageClassName"], claim["status"]["phase"])


@pytest.mark.parametrize(
    ("mode", "annotations", "is_bound"),
    [
        pytest.param("Immediate", {}, True, id="immediate"),
        pytest.param("WaitForFirstConsumer", {}, False, id="no-node-yet"),
        pytest.param(
            "WaitForFirstConsumer",
            {"volume.kubernetes.io/selected-node": "node-0"},
            True,
            id="node-selected",
        ),
    ],
)
@controlled
async def test_volumes_are_provisioned_by_binding_mode(
    world: World, mode: str, annotations: Json, *, is_bound: bool
) -> None:
    """Immediately, or after the scheduler has chosen a node."""
    _add_class(world, mode)
    _add_claim(world, annotations=annotations)
    await asyncio.sleep(1)
    found = _claim(world)["metadata"].get("annotations", {})
    assert (["Bound"] if is_bound else [], is_bound) == (
        list(_phases(world).values()),
        "pv.kubernetes.io/bind-completed" in found,
    )


@controlled
async def test_a_volume_reserved_by_the_scheduler_is_bound(world: World) -> None:
    """Its claimRef names the claim."""
    _add_class(world, "WaitForFirstConsumer", "kubernetes.io/no-provisioner")
    _add_volume(world, "first", "5Gi")
    _add_claim(world)
    await asyncio.sleep(1)
    assert "volumeName" not in _claim(world)["spec"]
    reference = {"namespace": CLAIM.namespace, "name": CLAIM.name}
    _add_volume(world, "chosen", "9Gi", claimRef=reference)
    await asyncio.sleep(1)
    assert "chosen" == str(_claim(world)["spec"]["volumeName"])


@controlled
async def test_a_volume_for_a_claim_without_a_namespace_is_available(world: World) -> None:
    """It is for no claim, and keeps no other from being bound."""
    _add_class(world, "Immediate", "kubernetes.io/no-provisioner")
    _add_volume(world, "odd", "5Gi", claimRef={"name": CLAIM.name})
    _add_volume(world, "right", "5Gi")
    _add_claim(world)
    await asyncio.sleep(1)
    assert {"odd": "Available", "right": "Bound"} == _phases(world)


@controlled
async def test_a_pending_pod_does_not_keep_its_claim(world: World) -> None:
    """No kubelet has mounted anything for it yet."""
    _add_class(world, "WaitForFirstConsumer")
    _add_claim(world)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": CLAIM.name}}
    spec = {**SPEC, "volumes": [volume], "schedulingGates": [{"name": "not-yet"}]}
    metadata = {"name": "user", "namespace": "default"}
    world.client.create("pods", {"metadata": metadata, "spec": spec})
    await asyncio.sleep(2)
    world.client.delete(CLAIM)
    await asyncio.sleep(1)
    assert world.client.find(*CLAIM) is None


@controlled
async def test_a_released_volume_without_its_claim_is_bound_again(world: World) -> None:
    """An administrator removes the reference to the claim that is gone; another one waits."""
    _add_class(world, "Immediate", "kubernetes.io/no-provisioner")
    gone = {"namespace": CLAIM.namespace, "name": "gone", "uid": "u"}
    _add_volume(world, "kept", "5Gi", claimRef=gone)
    _add_claim(world)
    await asyncio.sleep(1)
    assert {"kept": "Released"} == _phases(world)
    volume = world.get("persistentvolumes", "kept", "")
    spec = {name: value for name, value in volume["spec"].items() if name != "claimRef"}
    world.client.write(Key("persistentvolumes", "", "kept"), {**volume, "spec": spec})
    await asyncio.sleep(1)
    assert {"kept": "Bound"} == _phases(world)
    assert "kept" == str(_claim(world)["spec"]["volumeName"])


@pytest.mark.parametrize(
    ("size", "class_", "reference", "is_bound"),
    [
        pytest.param("5Gi", "fast", {}, True, id="fits"),
        pytest.param("1Gi", "fast", {}, False, id="too-small"),
        pytest.param("5Gi", "slow", {}, False, id="other-class"),
        pytest.param(
            "5Gi",
            "slow",
            {"namespace": CLAIM.namespace, "name": CLAIM.name},
            True,
            id="kept-for-it",
        ),
    ],
)
@controlled
async def test_a_claim_gets_the_volume_that_it_names_if_that_fits(
    world: World, size: str, class_: str, reference: Json, *, is_bound: bool
) -> None:
    """A volume that is kept for the claim is not compared."""
    _add_class(world, "Immediate")
    kept = {"claimRef": reference} if reference else {}
    _add_volume(world, "named", size, storageClassName=class_, **kept)
    _add_claim(world, "named")
    await asyncio.sleep(1)
    assert {"named": "Bound" if is_bound else "Available"} == _phases(world)


@controlled
async def test_a_deleted_volume_does_not_wait_for_a_claim_of_another(world: World) -> None:
    """It was kept for a claim that got another volume."""
    _add_class(world, "Immediate", "kubernetes.io/no-provisioner")
    for name in ("first", "second"):
        reference = {"namespace": CLAIM.namespace, "name": CLAIM.name}
        _add_volume(world, name, "5Gi", claimRef=reference)
    _add_claim(world)
    await asyncio.sleep(1)
    assert "first" == str(_claim(world)["spec"]["volumeName"])
    world.client.delete(Key("persistentvolumes", "", "second"))
    await asyncio.sleep(1)
    assert {"first": "Bound"} == _phases(world)


@controlled
async def test_a_claim_in_use_is_deleted_after_its_pods(world: World) -> None:
    """And then its provisioned volume."""
    _add_class(world, "Immediate")
    _add_claim(world)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": CLAIM.name}}
    metadata = {"name": "user", "namespace": "default"}
    world.client.create("pods", {"metadata": metadata, "spec": {**SPEC, "volumes": [volume]}})
    await asyncio.sleep(2)
    world.client.delete(CLAIM)
    await asyncio.sleep(5)
    before = world.client.find(*CLAIM) is not None
    world.client.delete(Key("pods", "default", "user"))
    await asyncio.sleep(5)
    assert [True, None, {}] == [before, world.client.find(*CLAIM), _phases(world)]


@controlled
async def test_an_ephemeral_volume_has_a_claim_owned_by_its_pod(world: World) -> None:
    """The claim is bound, and collected after the pod."""
    _add_class(world, "Immediate")
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
    }
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    metadata = {"name": "user", "namespace": "default"}
    world.client.create("pods", {"metadata": metadata, "spec": {**SPEC, "volumes": [volume]}})
    await asyncio.sleep(3)
    [claim] = world.client.list(CLAIM.kind)
    world.client.delete(Key("pods", "default", "user"))
    await asyncio.sleep(5)
    left = world.client.list(CLAIM.kind)
    assert ["user-v", "Bound", []] == [claim["metadata"]["name"], claim["status"]["phase"], left]


@controlled
async def test_a_resource_claim_template_makes_a_claim_per_pod(world: World) -> None:
    """The pod's status names it, also if the template is created after the pod."""
    asked = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    spec = {**SPEC, "resourceClaims": asked}
    metadata = {"name": "user", "namespace": "default"}
    world.client.create("pods", {"metadata": metadata, "spec": spec})
    await asyncio.sleep(1)
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]
    world.client.create(
        "resourceclaimtemplates.resource.k8s.io",
        {
            "metadata": {"name": "one-gpu", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": requests}}},
        },
    )
    await asyncio.sleep(1)
    [claim] = world.client.list("resourceclaims.resource.k8s.io")
    pod = world.client.find("pods", "default", "user")
    assert pod is not None
    [status] = pod["status"]["resourceClaimStatuses"]
    name = claim["metadata"]["name"]
    assert {"name": "gpu", "resourceClaimName": name} == status
    assert name.startswith("user-gpu-")


@controlled
async def test_a_refused_resource_claim_does_not_multiply_the_others(world: World) -> None:
    """Labels of a template are checked when its claim is created."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]
    for name, labels in (("right", {}), ("wrong", {"a": "not valid"})):
        template = {"metadata": {"labels": labels}, "spec": {"devices": {"requests": requests}}}
        metadata = {"name": name, "namespace": "default"}
        world.client.create(
            "resourceclaimtemplates.resource.k8s.io", {"metadata": metadata, "spec": template}
        )
    asked = [{"name": name, "resourceClaimTemplateName": name} for name in ("right", "wrong")]
    metadata = {"name": "user", "namespace": "default"}
    world.client.create("pods", {"metadata": metadata, "spec": {**SPEC, "resourceClaims": asked}})
    await asyncio.sleep(60)
    assert 1 == len(world.client.list("resourceclaims.resource.k8s.io"))


def _add_device_claim(world: World, *users: Json, **metadata: Any) -> Key:
    """Create an allocated ResourceClaim, as the scheduler leaves it."""
    kind = "resourceclaims.resource.k8s.io"
    metadata = {"name": "gpu", "namespace": "default", **metadata}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]
    claim = {
        "metadata": {**metadata, "finalizers": ["resource.kubernetes.io/delete-protection"]},
        "spec": {"devices": {"requests": requests}},
    }
    world.client.create(kind, claim)
    key = Key(kind, "default", metadata["name"])
    world.client.patch_status(key, {"allocation": {"devices": {}}, "reservedFor": list(users)})
    return key


def _user(pod: Json) -> Json:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


@controlled
async def test_devices_are_free_when_no_pod_of_their_claim_is_left(world: World) -> None:
    """The claim stays, without an allocation; other users than pods keep it."""
    first, second = world.add_pod("a"), world.add_pod("b", restartPolicy="Never")
    key = _add_device_claim(world, _user(first), _user(second))
    group = {"apiGroup": "example.com", "resource": "pods", "name": "a", "uid": "u"}
    kept = _add_device_claim(world, _user(first), group, name="kept")
    await asyncio.sleep(2)
    world.client.delete(Key("pods", "default", "a"))
    await asyncio.sleep(2)
    claim = world.get(key.kind, "gpu")
    assert [_user(second)] == claim["status"]["reservedFor"]
    assert "allocation" in claim["status"]
    await asyncio.sleep(10)
    claim = world.get(key.kind, "gpu")
    assert "Succeeded" == world.phase("b")
    assert ({}, []) == (claim["status"], claim["metadata"].get("finalizers", []))
    assert [group] == world.get(kept.kind, "kept")["status"]["reservedFor"]


@pytest.mark.parametrize("ends", [True, False], ids=["ended", "deleted"])
@controlled
async def test_the_resource_claim_of_a_pod_goes_with_it(world: World, ends: bool) -> None:
    """When the pod has ended, or is deleted."""
    pod = world.add_pod(restartPolicy="Never" if ends else "Always")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"]}
    key = _add_device_claim(world, _user(pod), ownerReferences=[{**owner, "controller": True}])
    await asyncio.sleep(2)
    before = world.client.find(*key)
    if not ends:
        world.client.delete(Key("pods", "default", "p"))
    await asyncio.sleep(10)
    assert (True, None) == (before is not None, world.client.find(*key))


@controlled
async def test_a_deleted_resource_claim_waits_for_its_pods(world: World) -> None:
    """One that no pod uses goes at once."""
    used = _add_device_claim(world, _user(world.add_pod()))
    unused = _add_device_claim(world, name="unused")
    for key in (used, unused):
        world.client.delete(key)
    await asyncio.sleep(1)
    before = [world.client.find(*key) is not None for key in (used, unused)]
    world.client.delete(Key("pods", "default", "p"))
    await asyncio.sleep(2)
    assert ([True, False], None) == (before, world.client.find(*used))


@controlled
async def test_a_class_of_attributes_can_be_deleted(world: World) -> None:
    """Nothing holds it."""
    key = Key("volumeattributesclasses.storage.k8s.io", "", "gold")
    given = {"driverName": "disk.example.com", "parameters": {"iops": "500"}}
    world.client.create(key.kind, {"metadata": {"name": key.name}, **given})
    world.client.delete(key)
    await asyncio.sleep(1)
    assert world.client.find(*key) is None
