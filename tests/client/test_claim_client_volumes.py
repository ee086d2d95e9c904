"""Updates of volumes and claims send what kube-scheduler sends, and lose nothing."""

from __future__ import annotations

import asyncio
from copy import deepcopy

import msgspec
import pytest
from msgspec.structs import replace

from kubesched.api.errors import ApiError, ConflictError, NotFoundError
from kubesched.api.volume import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
)
from kubesched.client.claim_client import VolumeClient

from .records import Answering, Plain, recorded_writes

CLAIM: Plain = {
    "kind": "PersistentVolumeClaim",
    "apiVersion": "v1",
    "metadata": {
        "name": "c1",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "3",
        "annotations": {"a": "b"},
        "managedFields": [{"manager": "x"}],
    },
    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow", "unheardOf": 1},
    "status": {"phase": "Pending"},
}


def writer(server: Answering) -> VolumeClient:
    """Return a client for which every pod exists."""
    return VolumeClient(server, lambda _namespace, _name: True)


def test_a_volume_is_updated_as_recorded() -> None:
    """The volume as stored, with annotation and reference, is what kube-scheduler sent."""
    (write,) = (write for write in recorded_writes()["volume-binding"] if write["method"] == "PUT")
    stored = deepcopy(write["body"])
    del stored["metadata"]["annotations"], stored["spec"]["claimRef"]
    known = msgspec.convert(stored, PersistentVolume)
    bound = msgspec.convert(write["body"], PersistentVolume)
    wanted = replace(
        known,
        metadata=replace(known.metadata, annotations=bound.metadata.annotations),
        spec=replace(known.spec, claim_ref=bound.spec.claim_ref),
    )
    server = Answering(stored, write["response"])
    answer = asyncio.run(writer(server).update_persistent_volume(wanted))
    assert [("GET", write["path"], None), ("PUT", write["path"], write["body"])] == server.in_short
    assert msgspec.convert(write["response"], PersistentVolume) == answer


def test_a_claim_keeps_what_is_not_read_here() -> None:
    """Only the annotations change."""
    known = msgspec.convert(CLAIM, PersistentVolumeClaim)
    annotations = {"volume.kubernetes.io/selected-node": "n1"}
    wanted = replace(known, metadata=replace(known.metadata, annotations=annotations))
    server = Answering(CLAIM, CLAIM)
    asyncio.run(writer(server).update_persistent_volume_claim(wanted))
    expected = CLAIM | {"metadata": CLAIM["metadata"] | {"annotations": annotations}}
    assert expected == server.in_short[1][2]


def test_the_version_that_is_known_is_sent() -> None:
    """An object that has changed since is refused by the server, not overwritten."""
    known = msgspec.convert(CLAIM, PersistentVolumeClaim)
    newer = CLAIM | {"metadata": CLAIM["metadata"] | {"resourceVersion": "9"}}
    server = Answering(newer, ConflictError("the object has been modified"))
    with pytest.raises(ConflictError, match="modified"):
        asyncio.run(writer(server).update_persistent_volume_claim(known))
    assert "3" == server.in_short[1][2]["metadata"]["resourceVersion"]


def test_removing_a_reference() -> None:
    """A removed claim reference is not sent."""
    stored = {"metadata": {"name": "v", "annotations": {"a": "b"}}, "spec": {"claimRef": {}}}
    server = Answering(stored, stored)
    known = msgspec.convert({"metadata": {"name": "v"}}, PersistentVolume)
    asyncio.run(writer(server).update_persistent_volume(known))
    assert {"metadata": {"name": "v"}, "spec": {}} == server.in_short[1][2]


def test_an_object_that_is_gone() -> None:
    """A refusal of the GET is the caller's."""
    server = Answering(NotFoundError('persistentvolumes "v" not found'))
    volume = PersistentVolume()
    with pytest.raises(NotFoundError):
        asyncio.run(writer(server).update_persistent_volume(volume))


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"spec": 3}'])
def test_answers_that_cannot_be_read(answer: bytes) -> None:
    """An answer that is no such object is an error like others."""
    spec = PersistentVolumeSpec(claim_ref=ObjectReference(name="c"))
    volume = PersistentVolume(spec=spec)
    server = Answering(b"{}", answer)
    with pytest.raises(ApiError) as caught:
        asyncio.run(writer(server).update_persistent_volume(volume))
    assert 500 == caught.value.code
