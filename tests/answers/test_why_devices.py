"""Pods that hold devices release them with their end, and new nodes have devices too."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.answers.trial import ChangeKind
from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject, OwnerReference
from kubesched.api.resource import EXTENDED_RESOURCE_CLAIM_ANNOTATION, ResourceClaim
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.plugins.dynamic_resources import objects as dra
from tests.plugins.volume_objects import claim_volumes, make_claim, make_class, make_csi_node
from tests.simulator.clusters import cluster_of

from .test_why import ask

WANTED = dra.claim(dra.request(), name="new")
WANTING_SPEC = {"resourceClaims": [{"name": "x", "resourceClaimName": "new"}]}
WANTING = make_pod("pod", spec=WANTING_SPEC)

USES_TWO = {"resourceClaims": [{"name": n, "resourceClaimName": n} for n in ("held", "shared")]}


def holder(name: str, on: str, claim: str) -> Pod:
    """Return a pod on a node that uses a claim."""
    claims = [{"name": "x", "resourceClaimName": claim}]
    return make_pod(name, uid=name, node_name=on, spec={"resourceClaims": claims})


def held(*users: str, name: str = "held") -> ResourceClaim:
    """Return a claim that has device g0 of pool p1."""
    return dra.claim(
        dra.request(), name=name, allocation=dra.allocation_of("g0"), reserved_for=users
    )


def one_device(*others: KubeObject) -> list[KubeObject]:
    """Return a node with one device, a node without, and other objects."""
    device = dra.slice_of([dra.device("g0")], node_name="n")
    return [make_node("m"), make_node("n"), dra.device_class(), device, WANTED, *others]


@pytest.mark.parametrize(
    ("others", "sentences"),
    [
        (
            [held("a"), holder("a", "n", "held")],
            ["evict pod default/a (priority 0) from node n", "add a node like n ("],
        ),
        # A device is free only without its last user.
        (
            [held("a", "b"), holder("a", "n", "held"), holder("b", "n", "held")],
            ["add a node like n (", "free node n of its 2 pods"],
        ),
    ],
)
def test_devices_that_others_hold(others: list[KubeObject], sentences: list[str]) -> None:
    """Preemption does not help, but an eviction does, or one more node."""
    found = [change.sentence for change in ask(WANTING, *one_device(*others)).changes]
    assert len(sentences) == len(found)
    assert all(map(str.startswith, found, sentences))


def test_a_new_node_has_no_more_devices_than_its_like() -> None:
    """Nor may it attach more volumes."""
    wanted = dra.claim(dra.request(count=2), name="new")
    report = ask(WANTING, *one_device()[:-1], wanted)
    assert [ChangeKind.LOWER_REQUEST] == [change.kind for change in report.changes]
    claims = [make_claim(name, storage_class="fast") for name in ("x", "y")]
    pod = make_pod("pod", volumes=claim_volumes("x", "y"))
    limit = make_csi_node("n", {"csi.example.com": 1})
    report = ask(pod, make_node("n"), limit, make_class("fast"), *claims)
    assert () == report.changes


def test_a_deleted_pod_releases_its_devices() -> None:
    """Its claim for extended resources goes with it; what others use stays."""
    owner = OwnerReference(api_version="v1", kind="Pod", name="a", uid="a", controller=True)
    special = dra.claim(
        name="special",
        allocation=dra.allocation_of("g1"),
        reserved_for=["a"],
        annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
        owner_references=(owner,),
    )
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "special"}}
    pod = make_pod("a", uid="a", node_name="n", spec=USES_TWO, status=status)
    cluster = cluster_of(make_node("n"), held("a"), held("a", "b", name="shared"), special, pod)
    before = cluster.delete([PodInfo(pod)])
    assert ["held", "shared", "special"] == sorted(claim.metadata.name for claim in before)
    left = {one.metadata.name: one.status for one in cluster.cache.objects.list(ResourceClaim)}
    assert {"held": False, "shared": True} == {
        name: status.allocation is not None for name, status in left.items()
    }


@pytest.mark.parametrize(("users", "is_released"), [((), True), (("pod",), True), (("a",), False)])
def test_a_claim_that_nobody_uses_is_released(users: tuple[str, ...], is_released: bool) -> None:
    """Its devices are where the pod does not fit; the scheduler looks for others then."""
    claim = dra.claim(
        dra.request(),
        name="new",
        allocation=replace(dra.allocation_of("g0"), node_selector=dra.node_selector("x", "n")),
        reserved_for=users,
    )
    slices = [dra.slice_of([dra.device("g0")], node_name="n")]
    slices.append(dra.slice_of([dra.device("g0")], "s2", pool="p2", node_name="m"))
    nodes = [make_node("n", labels={"x": "n"}, unschedulable=True), make_node("m")]
    pod = make_pod("pod", uid="pod", spec=WANTING_SPEC)
    report = ask(pod, *nodes, dra.device_class(), *slices, claim)
    note = "It fits m once the devices of ResourceClaim new are released"
    assert is_released == any(text.startswith(note) for text in report.notes)
