from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime

import pytest

from kubesched.api.errors import ConflictError, NotFoundError
from kubesched.api.volume import ObjectReference
from kubesched.client.requests import Request
from kubesched.client.resource_locks import (
    ANNOTATION,
    UNKNOWN_LEADER,
    ElectionRecord,
    LockError,
    ResourceLock,
    new_lock,
)
from tests.loops import on_virtual_time

from .lock_server import FaultyRest, LockServer

_TIME = datetime(2024, 5, 1, 10, tzinfo=UTC)
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/n"


def _record(holder: str, transitions: int = 0) -> ElectionRecord:
    return ElectionRecord(
        holder_identity=holder,
        lease_duration_seconds=15,
        acquire_time=_TIME,
        renew_time=_TIME,
        leader_transitions=transitions,
    )


def _lock(server: LockServer, kind: str, identity: str = "a") -> ResourceLock:
    rest = FaultyRest(server, random.Random(0))
    return new_lock(kind, rest, "ns", "n", identity, allows_removed=True)


@pytest.mark.parametrize(
    "kind", ["leases", "endpoints", "configmaps", "endpointsleases", "configmapsleases"]
)
@on_virtual_time
async def test_reading_and_writing(kind: str) -> None:
    """A record that was created or updated is read; a stale update is refused."""
    server = LockServer(asyncio.get_running_loop().time)
    mine, yours = _lock(server, kind), _lock(server, kind, "b")
    assert "ns/n" == mine.description
    with pytest.raises(NotFoundError):
        await mine.get()
    await mine.create(_record("a"))
    found, raw = await yours.get()
    assert _record("a") == found
    await mine.update(_record("a", 1))
    with pytest.raises(ConflictError):
        await yours.update(_record("b", 1))
    found, changed = await yours.get()
    assert _record("a", 1) == found
    assert raw != changed


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("leases", "lease not initialized, call get or create first"),
        ("endpoints", "endpoint not initialized, call get or create first"),
        ("configmaps", "configmap not initialized, call get or create first"),
    ],
)
@on_virtual_time
async def test_lock_must_be_read_before_it_is_written(kind: str, words: str) -> None:
    """Without a known version no update is sent."""
    server = LockServer(asyncio.get_running_loop().time)
    with pytest.raises(LockError) as caught:
        await _lock(server, kind).update(_record("a"))
    assert words == str(caught.value)


@on_virtual_time
async def test_other_fields_are_kept() -> None:
    """Fields beside the record are sent back unchanged."""
    server = LockServer(asyncio.get_running_loop().time)
    content = {
        "metadata": {"name": "n", "namespace": "ns", "annotations": {"x": "y"}},
        "data": {"k": "v"},
    }
    path = "/api/v1/namespaces/ns/configmaps"
    server.handle(Request(method="POST", path=path, body=json.dumps(content).encode()))
    lock = _lock(server, "configmaps")
    assert (ElectionRecord(), b"") == await lock.get()
    await lock.update(_record("a"))
    stored = server.objects[f"{path}/n"]
    assert {"k": "v"} == stored["data"]
    assert {"x", ANNOTATION} == set(stored["metadata"]["annotations"])


@on_virtual_time
async def test_two_locks_that_disagree_have_an_unknown_holder() -> None:
    """A holder that only one of two locks names is not the leader."""
    server = LockServer(asyncio.get_running_loop().time)
    await _lock(server, "configmaps").create(_record("old"))
    multi = _lock(server, "configmapsleases")
    found, raw = await multi.get()
    assert "old" == found.holder_identity
    await _lock(server, "leases").create(_record("a"))
    found, both = await multi.get()
    assert UNKNOWN_LEADER == found.holder_identity
    assert raw != both


@on_virtual_time
async def test_missing_secondary_lock() -> None:
    """The holder of the primary writes it again before it creates the secondary."""
    server = LockServer(asyncio.get_running_loop().time)
    await _lock(server, "configmaps", "a").create(_record("a"))
    multi = _lock(server, "configmapsleases", "a")
    with pytest.raises(NotFoundError):
        await multi.get()
    await multi.create(_record("a", 1))
    paths = [path.rpartition("/ns/")[2] for _, path, _ in server.history]
    assert ["configmaps/n", "configmaps/n", "leases/n"] == paths
    assert _record("a", 1) == (await multi.get())[0]


@on_virtual_time
async def test_update_makes_a_missing_secondary() -> None:
    """A candidate that replaces an old one makes the lock that the old one did not know."""
    server = LockServer(asyncio.get_running_loop().time)
    await _lock(server, "endpoints", "old").create(_record("old"))
    multi = _lock(server, "endpointsleases", "a")
    await multi.get()
    await multi.update(_record("a", 1))
    assert _record("a", 1) == (await multi.get())[0]


@pytest.mark.parametrize(
    ("kind", "about"),
    [
        ("leases", ["Lease"]),
        ("endpoints", ["Endpoints"]),
        ("configmapsleases", ["ConfigMap", "Lease"]),
    ],
)
@on_virtual_time
async def test_events_are_about_the_objects(kind: str, about: list[str]) -> None:
    """Each object gets its event, with the identity and the version last seen."""
    server = LockServer(asyncio.get_running_loop().time)
    said: list[tuple[ObjectReference, str]] = []

    def record_event(reference: ObjectReference, text: str) -> None:
        said.append((reference, text))

    rest = FaultyRest(server, random.Random(0))
    lock = new_lock(kind, rest, "ns", "n", "a", record_event, allows_removed=True)
    await lock.create(_record("a"))
    lock.record_event("became leader")
    assert about == [reference.kind for reference, _ in said]
    assert {"a became leader"} == {text for _, text in said}
    versions = [o["metadata"]["resourceVersion"] for _, _, o in server.history]
    assert versions == [reference.resource_version for reference, _ in said]


@pytest.mark.parametrize("text", ["{", '{"holderIdentity":3}'])
@on_virtual_time
async def test_broken_annotation_is_a_lock_error(text: str) -> None:
    """A malformed record raises LockError."""
    server = LockServer(asyncio.get_running_loop().time)
    content = {"metadata": {"name": "n", "annotations": {ANNOTATION: text}}}
    path = "/api/v1/namespaces/ns/endpoints"
    server.handle(Request(method="POST", path=path, body=json.dumps(content).encode()))
    with pytest.raises(LockError, match="annotation"):
        await _lock(server, "endpoints").get()
