"""Changes of a trial can be undone."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.answers.drain import drain_nodes
from kubesched.answers.trial_cluster import TrialCluster
from kubesched.api.codec import decode_object
from kubesched.api.core import Node, PodResourceClaimStatus
from kubesched.api.meta import KubeObject
from kubesched.api.resource import ResourceClaim
from kubesched.api.volume import PersistentVolumeClaim
from kubesched.api.well_known import ZONE
from kubesched.testing.builders import make_pod
from tests.plugins.dynamic_resources import objects as dra
from tests.plugins.volume_objects import make_claim, make_class, make_volume

from .trials import budget, node, owner_metadata, random_cluster, running, state_of, tried


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_undo_restores_every_object(seed: int) -> None:
    """After a drain, a removal and an addition; the same drain then has the same outcome."""
    objects = [*random_cluster(seed, owned=True), budget("b", "w-0", maxUnavailable=1)]
    names = [item.metadata.name for item in objects if isinstance(item, Node)]

    async def ask(cluster: TrialCluster) -> None:
        await cluster.settle()
        before = state_of(cluster)
        cluster.begin()
        first = await drain_nodes(cluster, names[:1])
        cluster.remove_node(names[-1])
        cluster.add_nodes([node("new")])
        await cluster.settle()
        await cluster.undo()
        assert before == state_of(cluster)
        again = await drain_nodes(cluster, names[:1])
        assert [pod.fate for pod in first.pods] == [pod.fate for pod in again.pods]

    tried(objects, ask)


def test_preemption_of_pods_that_are_created_again_at_once_ends() -> None:
    """The replacements go to the other node of the zone, where they are in the way again."""

    def apart_from(app: str) -> dict[str, Any]:
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": ZONE}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"affinity": {"podAntiAffinity": required}}

    web = owner_metadata("ReplicaSet", "web", app="web")
    objects = [
        *(node("a", "2", zone="z"), node("b", "4", zone="z")),
        running("low-0", "b", "1", owner="low", priority=5),
        running("low-1", "b", "2", owner="low"),
        make_pod("web-0", requests={"cpu": 1}, metadata=web, spec=apart_from("web")),
        make_pod("web-1", requests={"cpu": 2}, priority=10, metadata=web, spec=apart_from("low")),
    ]

    async def ask(cluster: TrialCluster) -> tuple[list[str], list[str]]:
        await cluster.place_pending()
        placed = [name for name, pod in cluster.pods().items() if pod.spec.node_name]
        return placed, list(cluster.notes)

    placed, notes = tried(objects, ask)
    assert ["default/web-1"] == placed
    assert "Preemption evicted pods of ReplicaSet default/low 10 times in a row" in notes[0]


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_a_replacement_has_its_own_ephemeral_claims(mode: str) -> None:
    """The old pod's claim is deleted, and the new one is provisioned."""
    storage = make_class("fast", mode=mode)
    template = {"spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}}
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": template}}
    pod = running("db-0", "a", owner="db", kind="StatefulSet", volumes=[volume])

    async def ask(cluster: TrialCluster) -> tuple[list[str], list[str]]:
        await drain_nodes(cluster, ["a"])
        claims = cluster.server.all(PersistentVolumeClaim)
        nodes = [one.spec.node_name for one in cluster.pods().values()]
        return [one.status.phase for one in claims], nodes

    assert (["Bound"], ["b"]) == tried([node("a"), node("b"), storage, pod], ask)


def test_a_replacement_has_its_own_resource_claims() -> None:
    """One from each template; the old pod's claim is deleted."""
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {"requests": []}}},
    }
    asked = [
        {"name": "one", "resourceClaimTemplateName": "gpu"},
        {"name": "none", "resourceClaimTemplateName": "missing"},
    ]
    pod = running("db-0", "a", owner="db", kind="StatefulSet", resourceClaims=asked)

    async def ask(cluster: TrialCluster) -> tuple[list[object], list[object]]:
        await drain_nodes(cluster, ["a"])
        claims = [one.metadata for one in cluster.server.all(ResourceClaim)]
        statuses = [one.status.resource_claim_statuses for one in cluster.pods().values()]
        return (
            [(one.name, one.labels, one.owner_references[0].name) for one in claims],
            [(one.name, one.resource_claim_name) for found in statuses for one in found],
        )

    name = "db-0-one-00001"
    expected = [(name, {"a": "b"}, "db-0")], [("one", name)]
    assert expected == tried([node("a"), node("b"), decode_object(raw), pod], ask)


def test_a_pod_without_a_ready_condition_counts_as_healthy() -> None:
    """Manifests of running pods lack it."""

    async def ask(cluster: TrialCluster) -> int:
        (found,) = cluster.budgets.covering(next(iter(cluster.pods().values())))
        return found.status.current_healthy

    bare = running("web-0", "a", owner="web")
    objects: list[KubeObject] = [node("a"), bare, budget("web", "web", minAvailable=1)]
    assert tried(objects, ask) == 1


def test_applied_objects_keep_what_controllers_wrote() -> None:
    """A manifest has no volume and no allocation, which does not release them."""
    allocated = dra.claim(name="g", allocation=dra.allocation_of("g0"), reserved_for=["a"])
    owned = replace(allocated.metadata, annotations={"from": "controller"})
    allocated = replace(allocated, metadata=owned)
    bound = make_claim("v", storage_class="fast", volume="disk")
    volume = make_volume("disk", storage_class="fast", claim={"namespace": "default", "name": "v"})

    async def ask(cluster: TrialCluster) -> list[KubeObject]:
        manifest = dra.claim(dra.request(), name="g", uid="", annotations={"a": "b"})
        empty = replace(volume, spec=replace(volume.spec, claim_ref=None))
        return [cluster.add(item) for item in (manifest, make_claim("v"), empty)]

    devices, claim, disk = cast("list[Any]", tried([allocated, bound, volume], ask))
    assert ("uid-g", allocated.status) == (devices.metadata.uid, devices.status)
    assert {"from": "controller", "a": "b"} == devices.metadata.annotations
    assert 1 == len(devices.spec.devices.requests)
    assert ("disk", "fast") == (claim.spec.volume_name, claim.spec.storage_class_name)
    assert "v" == disk.spec.claim_ref.name


def test_a_template_that_was_not_saved() -> None:
    """The claim that was made from it shows what it asks for."""
    made = dra.claim(dra.request(count=2), name="made", reserved_for=["uid"])
    claims = [{"name": "x", "resourceClaimTemplateName": "gpu"}]
    pod = running("web-0", "a", owner="web", resourceClaims=claims)
    created = (PodResourceClaimStatus(name="x", resource_claim_name="made"),)
    pod = replace(pod, status=replace(pod.status, resource_claim_statuses=created))

    async def ask(cluster: TrialCluster) -> list[ResourceClaim]:
        await drain_nodes(cluster, ["a"])
        return list(cluster.server.all(ResourceClaim))

    (found,) = tried([node("a"), node("b"), made, pod], ask)
    assert ("web-00001-x-00001", made.spec) == (found.metadata.name, found.spec)
