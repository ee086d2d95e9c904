"""Resource claims are written as kube-scheduler writes them, and lose nothing."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError, ConflictError
from kubesched.api.media_types import PROTOBUF, STRATEGIC_MERGE_PATCH
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from kubesched.client.claim_client import ClaimClient, with_finalizers
from kubesched.client.pod_client import PodClient
from kubesched.simulator.virtual_loop import run

from .records import Answering, Plain

PATH = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"
FINALIZER = "resource.kubernetes.io/delete-protection"
DEVICES: Plain = {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}
CLAIM: Plain = {
    "kind": "ResourceClaim",
    "apiVersion": "resource.k8s.io/v1",
    "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "3"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"unheardOf": 1}}]}},
}
USER = ResourceClaimConsumerReference(resource="pods", name="p", uid="pu")
PLAIN_USER = {"resource": "pods", "name": "p", "uid": "pu"}


def writer(server: Answering) -> ClaimClient:
    """Return a writer."""
    return ClaimClient(server, PodClient(server, lambda: 0, lambda _event: None), Random(0))


def claim(plain: Plain = CLAIM) -> ResourceClaim:
    """Return a claim as it is known."""
    return msgspec.convert(plain, ResourceClaim)


def with_status(**status: Any) -> Plain:
    """Return the claim as stored, with a status."""
    return CLAIM | {"status": status}


def test_a_claim_is_read() -> None:
    """The response to a GET is decoded."""
    server = Answering(CLAIM)
    assert claim() == asyncio.run(writer(server).get("ns", "c"))
    assert [("GET", PATH, None)] == server.in_short


def test_creating_a_claim() -> None:
    """The request has no uid, version or status."""
    generated = replace(
        claim(),
        metadata=ObjectMeta(generate_name="p-", namespace="ns", uid="x", resource_version="4"),
        status=ResourceClaimStatus(reserved_for=(USER,)),
    )
    server = Answering(CLAIM)
    assert claim() == asyncio.run(writer(server).create(generated))
    expected = {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"generateName": "p-", "namespace": "ns"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {}}]}},
    }
    assert [("POST", PATH.removesuffix("/c"), expected)] == server.in_short


def test_a_finalizer_is_added() -> None:
    """Everything else stays as stored."""
    server = Answering(CLAIM, CLAIM)
    known = claim()
    wanted = replace(known, metadata=replace(known.metadata, finalizers=(FINALIZER,)))
    asyncio.run(writer(server).update(wanted))
    expected = CLAIM | {"metadata": CLAIM["metadata"] | {"finalizers": [FINALIZER]}}
    assert [("GET", PATH, None), ("PUT", PATH, expected)] == server.in_short


ALLOCATION = AllocationResult(
    devices=msgspec.convert(DEVICES, type(AllocationResult().devices)), allocation_timestamp="now"
)


@pytest.mark.parametrize(
    ("stored", "status", "expected"),
    [
        pytest.param(
            {},
            ResourceClaimStatus(allocation=ALLOCATION, reserved_for=(USER,)),
            {
                "allocation": {"devices": DEVICES, "allocationTimestamp": "now"},
                "reservedFor": [PLAIN_USER],
            },
            id="allocate and reserve",
        ),
        pytest.param(
            {},
            ResourceClaimStatus(allocation=AllocationResult()),
            {"allocation": {}},
            id="an allocation of nothing is one",
        ),
        pytest.param(
            {"allocation": {"devices": DEVICES, "unheardOf": 1}},
            ResourceClaimStatus(allocation=ALLOCATION, reserved_for=(USER,)),
            {
                "allocation": {"devices": DEVICES, "unheardOf": 1, "allocationTimestamp": "now"},
                "reservedFor": [PLAIN_USER],
            },
            id="reserve what is allocated",
        ),
        pytest.param(
            {"allocation": {}, "reservedFor": [PLAIN_USER], "devices": [{"data": 2}]},
            ResourceClaimStatus(),
            {},
            id="deallocate",
        ),
    ],
)
def test_statuses(stored: Plain, status: ResourceClaimStatus, expected: Plain) -> None:
    """The status is written into the stored one."""
    server = Answering(with_status(**stored), CLAIM)
    asyncio.run(writer(server).update_status(replace(claim(), status=status)))
    written = CLAIM | {"status": expected}
    assert [("GET", PATH, None), ("PUT", f"{PATH}/status", written)] == server.in_short


def test_data_of_drivers_is_kept() -> None:
    """Data of allocated devices that is not decoded is not lost."""
    devices = [{"driver": "d", "pool": "p", "device": "x", "networkData": {"ips": ["10.0.0.1"]}}]
    stored = with_status(allocation={"devices": DEVICES}, devices=devices)
    server = Answering(stored, CLAIM)
    asyncio.run(writer(server).update_status(claim(stored)))
    assert devices == server.in_short[1][2]["status"]["devices"]


def test_a_pod_is_released_whatever_else_has_changed() -> None:
    """A strategic merge patch with the claim's uid as precondition."""
    server = Answering()
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="pu"))
    asyncio.run(writer(server).release(claim(), pod))
    patch = {
        "metadata": {"uid": "u"},
        "status": {"reservedFor": [{"$patch": "delete", "uid": "pu"}]},
    }
    assert [("PATCH", f"{PATH}/status", patch)] == server.in_short
    assert STRATEGIC_MERGE_PATCH == server.sent[0].content_type


PROTECTED = CLAIM | {"metadata": CLAIM["metadata"] | {"finalizers": ["other", FINALIZER]}}
NEWER = PROTECTED | {"metadata": PROTECTED["metadata"] | {"resourceVersion": "5"}}


def test_a_claim_is_deleted_without_its_finalizer() -> None:
    """The finalizer is taken off first; after a conflict from the newest version."""
    conflict = ConflictError("modified")
    server = Answering(NEWER, conflict, NEWER, NEWER, NEWER)
    run(writer(server).delete(claim(PROTECTED)))
    assert ["GET", "PUT", "GET", "GET", "PUT", "DELETE"] == [one[0] for one in server.in_short]
    updates = [body["metadata"] for method, _, body in server.in_short if method == "PUT"]
    assert ["3", "5"] == [metadata["resourceVersion"] for metadata in updates]
    assert [["other"]] * 2 == [metadata["finalizers"] for metadata in updates]
    options = {"kind": "DeleteOptions", "apiVersion": "resource.k8s.io/v1"}
    assert ("DELETE", PATH, options) == server.in_short[-1]


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        pytest.param(ConflictError("modified"), 5, id="conflicts"),
        pytest.param(ApiError(403, "Forbidden", "no"), 1, id="refusals"),
    ],
)
def test_deleting_gives_up(error: ApiError, tries: int) -> None:
    """Five conflicts are enough, and one of anything else."""
    answers: list[Plain | Exception] = [CLAIM, error, CLAIM]
    server = Answering(*answers * 5)
    with pytest.raises(ApiError, match=str(error)):
        run(writer(server).delete(claim()))
    assert tries == [one[0] for one in server.in_short].count("PUT")


INVALID = ApiError(422, "Invalid", "spec: field is immutable")


def test_finalizers_that_json_cannot_write_are_written_in_protobuf() -> None:
    """A driver's parameters are compared byte by byte, and JSON shows them rewritten."""
    wanted = replace(claim(), metadata=replace(claim().metadata, finalizers=(FINALIZER,)))
    stored = b"k8s\0\x12\x05\x0a\x03\x0a\x01c"
    server = Answering(CLAIM, INVALID, stored, CLAIM)
    assert claim() == asyncio.run(writer(server).update(wanted))
    get, put = server.sent[2:]
    assert ("GET", PATH, PROTOBUF) == (get.method, get.path, get.accept)
    assert ("PUT", PATH, PROTOBUF) == (put.method, put.path, put.content_type)
    assert with_finalizers(stored, [FINALIZER], "3") == put.body


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        pytest.param((CLAIM, INVALID, CLAIM), "Invalid", id="speaks JSON only"),
        pytest.param(
            (CLAIM, INVALID, b"k8s\0\x12\x00", INVALID), "Invalid", id="invalid after all"
        ),
        pytest.param(
            (CLAIM, INVALID, b"k8s\0\x12\x00", ConflictError("newer")),
            "Conflict",
            id="changed meanwhile",
        ),
    ],
)
def test_other_errors_about_finalizers(
    answers: tuple[bytes | Plain | Exception, ...], reason: str
) -> None:
    """The server's error is raised, unless the claim has changed meanwhile."""
    with pytest.raises(ApiError) as caught:
        asyncio.run(writer(Answering(*answers)).update(claim()))
    assert reason == caught.value.reason
