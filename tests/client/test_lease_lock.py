"""Locks in Leases, and their records."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from kubesched.api.coordination import Lease
from kubesched.api.errors import ConflictError, NotFoundError
from kubesched.client.lease_lock import (
    ElectionRecord,
    LeaseLock,
    LockError,
    check_lock_kind,
    record_of_spec,
    spec_of,
)
from kubesched.simulator.virtual_loop import run

from .lock_server import LockServer, Way

_TIME = datetime(2024, 5, 1, 10, 0, 0, 500_000, tzinfo=UTC)
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/n"
_RECORD = ElectionRecord(
    holder_identity="a",
    lease_duration_seconds=15,
    acquire_time=_TIME,
    renew_time=_TIME,
    leader_transitions=3,
)


def _lock(server: LockServer, identity: str = "a") -> LeaseLock:
    return LeaseLock(Way(server, random.Random(0)), "ns", "n", identity)


def _play(story: Callable[[LockServer], Awaitable[None]]) -> None:
    async def main() -> None:
        await story(LockServer(asyncio.get_running_loop().time))

    run(main())


def test_a_lock_keeps_a_record() -> None:
    """Nothing at first; what is created or written is read, and a stale write is refused."""

    async def story(server: LockServer) -> None:
        mine, yours = _lock(server), _lock(server, "b")
        assert "ns/n" == mine.description
        with pytest.raises(NotFoundError):
            await mine.get()
        await mine.create(_RECORD)
        assert _RECORD == await yours.get()
        later = msgspec.structs.replace(_RECORD, leader_transitions=4)
        await mine.update(later)
        with pytest.raises(ConflictError):
            await yours.update(later)
        assert later == await yours.get()

    _play(story)


def test_lock_must_be_read_before_it_is_written() -> None:
    """Without a version to build on nothing is sent."""

    async def story(server: LockServer) -> None:
        with pytest.raises(LockError, match="lease not initialized, call get or create first"):
            await _lock(server).update(_RECORD)
        assert [] == server.history

    _play(story)


def test_what_others_wrote_stays() -> None:
    """Fields that are not the lock's own come back as the server sent them."""

    async def story(server: LockServer) -> None:
        lock = _lock(server)
        await lock.create(_RECORD)
        server.objects[_LEASE]["metadata"]["labels"] = {"x": "y"}
        await lock.get()
        await lock.update(_RECORD)
        assert {"x": "y"} == server.objects[_LEASE]["metadata"]["labels"]

    _play(story)


def test_events_are_about_the_lease() -> None:
    """With the identity of the candidate and the version last seen."""

    async def story(server: LockServer) -> None:
        said: list[tuple[Lease, str]] = []
        way = Way(server, random.Random(0))
        lock = LeaseLock(way, "ns", "n", "a", lambda lease, text: said.append((lease, text)))
        await lock.create(_RECORD)
        lock.record_event("became leader")
        [(lease, text)] = said
        assert "a became leader" == text
        stored = server.objects[_LEASE]["metadata"]
        shown = lease.metadata
        assert ("n", "ns", stored["uid"], stored["resourceVersion"]) == (
            *(shown.name, shown.namespace),
            *(shown.uid, shown.resource_version),
        )

    _play(story)


@pytest.mark.parametrize("spec", [{"holderIdentity": 3}, {"renewTime": "soon"}])
def test_broken_record_is_a_lock_error(spec: dict[str, Any]) -> None:
    """What is no record does not crash an election."""

    async def story(server: LockServer) -> None:
        lock = _lock(server)
        await lock.create(_RECORD)
        server.objects[_LEASE]["spec"] = spec
        with pytest.raises(LockError, match="lease ns/n"):
            await lock.get()

    _play(story)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("endpointsleases", "endpointsleases lock is removed, migrate to leases"),
        ("secrets", "Invalid lock-type secrets"),
    ],
)
def test_other_locks_are_refused(kind: str, message: str) -> None:
    """Only Leases are locks."""
    check_lock_kind("leases")
    with pytest.raises(ValueError, match="lock") as caught:
        check_lock_kind(kind)
    assert message == str(caught.value)


def test_spec_has_microseconds() -> None:
    """Times are written with six digits, in UTC, and nothing is added that is empty."""
    assert {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2024-05-01T10:00:00.500000Z",
        "renewTime": "2024-05-01T10:00:00.500000Z",
        "leaseTransitions": 3,
    } == spec_of(_RECORD)
    moved = ElectionRecord(acquire_time=_TIME.astimezone(timezone(timedelta(hours=2))))
    assert "2024-05-01T10:00:00.500000Z" == spec_of(moved)["acquireTime"]


@pytest.mark.parametrize(
    "record",
    [_RECORD, ElectionRecord(preferred_holder="b", strategy="OldestEmulationVersion")],
)
def test_reads_what_it_writes(record: ElectionRecord) -> None:
    """A spec holds the whole record."""
    assert record == record_of_spec(spec_of(record))


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None, "renewTime": None}])
def test_absent_fields_are_nobody(spec: dict[str, None]) -> None:
    """An empty lease is held by nobody, and valid for no time."""
    assert ElectionRecord() == record_of_spec(spec)
