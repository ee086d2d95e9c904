from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec.structs import replace

from kubesched.api.errors import ConflictError, NotFoundError
from kubesched.api.volume import ObjectReference
from kubesched.client.requests import Request
from kubesched.client.resource_locks import (
    ANNOTATION,
    UNKNOWN_LEADER,
    ElectionRecord,
    LockError,
    ResourceLock,
    annotation_of,
    new_lock,
    raw_record,
    record_of_annotation,
    record_of_spec,
    spec_of,
)
from tests.loops import on_virtual_time

from .lock_server import FaultyRest, LockServer

_TIME = datetime(2024, 5, 1, 10, tzinfo=UTC)
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/n"


@pytest.fixture(name="server")
def _server() -> LockServer:
    return LockServer()


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
async def test_reading_and_writing(server: LockServer, kind: str) -> None:
    """A record that was created or updated is read; a stale update is refused."""
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
async def test_lock_must_be_read_before_it_is_written(
    server: LockServer, kind: str, words: str
) -> None:
    """Without a known version no update is sent."""
    with pytest.raises(LockError) as caught:
        await _lock(server, kind).update(_record("a"))
    assert words == str(caught.value)


@on_virtual_time
async def test_other_fields_are_kept(server: LockServer) -> None:
    """Fields beside the record are sent back unchanged."""
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
async def test_two_locks_that_disagree_have_an_unknown_holder(server: LockServer) -> None:
    """A holder that only one of two locks names is not the leader."""
    await _lock(server, "configmaps").create(_record("old"))
    multi = _lock(server, "configmapsleases")
    found, raw = await multi.get()
    assert "old" == found.holder_identity
    await _lock(server, "leases").create(_record("a"))
    found, both = await multi.get()
    assert UNKNOWN_LEADER == found.holder_identity
    assert raw != both


@on_virtual_time
async def test_missing_secondary_lock(server: LockServer) -> None:
    """The holder of the primary writes it again before it creates the secondary."""
    await _lock(server, "configmaps", "a").create(_record("a"))
    multi = _lock(server, "configmapsleases", "a")
    with pytest.raises(NotFoundError):
        await multi.get()
    await multi.create(_record("a", 1))
    paths = [path.rpartition("/ns/")[2] for _, path, _ in server.history]
    assert ["configmaps/n", "configmaps/n", "leases/n"] == paths
    assert _record("a", 1) == (await multi.get())[0]


@on_virtual_time
async def test_update_makes_a_missing_secondary(server: LockServer) -> None:
    """A candidate that replaces an old one makes the lock that the old one did not know."""
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
async def test_events_are_about_the_objects(
    server: LockServer, kind: str, about: list[str]
) -> None:
    """Each object gets its event, with the identity and the version last seen."""
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
async def test_broken_annotation_is_a_lock_error(server: LockServer, text: str) -> None:
    """A malformed record raises LockError."""
    content = {"metadata": {"name": "n", "annotations": {ANNOTATION: text}}}
    path = "/api/v1/namespaces/ns/endpoints"
    server.handle(Request(method="POST", path=path, body=json.dumps(content).encode()))
    with pytest.raises(LockError, match="annotation"):
        await _lock(server, "endpoints").get()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("endpoints", "endpoints lock is removed, migrate to leases"),
        ("configmaps", "configmaps lock is removed, migrate to leases"),
        ("endpointsleases", "endpointsleases lock is removed, migrate to leases"),
        ("configmapsleases", "configmapsleases lock is removed, migrated to leases"),
        ("secrets", "Invalid lock-type secrets"),
    ],
)
def test_removed_locks_are_refused_unless_asked_for(
    server: LockServer, kind: str, message: str
) -> None:
    """The words are upstream's."""
    rest = FaultyRest(server, random.Random(0))
    with pytest.raises(ValueError, match="lock") as caught:
        new_lock(kind, rest, "ns", "n", "a")
    assert message == str(caught.value)


# Records.

_MOMENT = datetime(2024, 5, 1, 10, 0, 0, 500_000, tzinfo=UTC)
_WHOLE = replace(_record("a", 3), acquire_time=_MOMENT, renew_time=_MOMENT)


def test_spec_has_microseconds() -> None:
    """A Lease's times are written with six digits, in UTC, and nothing is added that is empty."""
    zone = timezone(timedelta(hours=2))
    assert {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2024-05-01T10:00:00.500000Z",
        "renewTime": "2024-05-01T10:00:00.500000Z",
        "leaseTransitions": 3,
    } == spec_of(_WHOLE)
    moved = ElectionRecord(acquire_time=_MOMENT.astimezone(zone))
    assert "2024-05-01T10:00:00.500000Z" == spec_of(moved)["acquireTime"]


def test_annotation_has_seconds() -> None:
    """An annotation's times are written in whole seconds, its count under another name."""
    assert (
        '{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2024-05-01T10:00:00Z",'
        '"renewTime":"2024-05-01T10:00:00Z","leaderTransitions":3}'
    ) == annotation_of(_WHOLE)


def test_reads_what_it_writes() -> None:
    """A spec holds the whole record, an annotation all but the fractions of times."""
    assert _WHOLE == record_of_spec(spec_of(_WHOLE))
    read = record_of_annotation(annotation_of(_WHOLE))
    assert _MOMENT.replace(microsecond=0) == read.renew_time
    assert 3 == read.leader_transitions


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None, "renewTime": None}])
def test_empty_lease(spec: dict[str, None]) -> None:
    """It has no holder, and its duration is 0."""
    assert ElectionRecord() == record_of_spec(spec)


def test_raw_record_tells_microseconds_apart() -> None:
    """Every renewal is a change."""
    later = ElectionRecord(renew_time=_MOMENT + timedelta(microseconds=1))
    assert raw_record(ElectionRecord(renew_time=_MOMENT)) != raw_record(later)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"holderIdentity":1}', '{"renewTime":"soon"}'])
def test_refuses_what_is_no_record(text: str) -> None:
    """A broken annotation is a ValueError."""
    with pytest.raises(ValueError, match=r"."):
        record_of_annotation(text)
