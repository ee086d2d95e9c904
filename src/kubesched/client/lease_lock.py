"""LeaseLock keeps the record of an election in a Lease.

Every write names the resource version that it is based on, so of two candidates one is refused.

Upstream: staging/src/k8s.io/client-go/tools/leaderelection/resourcelock: interface.go,
          leaselock.go (v1.36)
Differs:  two records are equal only if their times are, to the microsecond; upstream compares
          seconds, so a candidate may miss a renewal and take over up to a second too early.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from kubesched.api.coordination import Lease, LeaseSpec
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheme import kind_of
from kubesched.api.times import micro_time, moment_at, parse_time
from kubesched.client.requests import Request, Rest, path_of

_LEASES: Final = kind_of(Lease)
_REMOVED: Final = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")

Plain = dict[str, Any]
RecordEvent = Callable[[Lease, str], None]


class ElectionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads, and for how long.

    Attributes:
        holder_identity: The leader's identity, "" for none.
        lease_duration_seconds: How long candidates wait after the last change they see.
        acquire_time: When the leader acquired the lock; None if not set.
        renew_time: When it last renewed it; None if not set.
        leader_transitions: How often the leader has changed.
        preferred_holder: Who should lead instead, "" for none.
        strategy: How the preferred holder was chosen.
    """

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    leader_transitions: int = 0
    preferred_holder: str = ""
    strategy: str = ""


def record_of_spec(spec: Plain) -> ElectionRecord:
    """Return the record of a Lease's spec.

    Raises:
        ValueError: A field has the wrong type.
    """
    fields = msgspec.convert(spec, LeaseSpec)
    return ElectionRecord(
        holder_identity=fields.holder_identity or "",
        lease_duration_seconds=fields.lease_duration_seconds or 0,
        acquire_time=_moment(fields.acquire_time),
        renew_time=_moment(fields.renew_time),
        leader_transitions=fields.lease_transitions or 0,
        preferred_holder=fields.preferred_holder or "",
        strategy=fields.strategy or "",
    )


def _moment(text: str | None) -> datetime | None:
    return moment_at(parse_time(text)) if text else None


def spec_of(record: ElectionRecord) -> Plain:
    """Return a Lease's spec."""
    spec: Plain = {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": record.lease_duration_seconds,
        "acquireTime": None if record.acquire_time is None else micro_time(record.acquire_time),
        "renewTime": None if record.renew_time is None else micro_time(record.renew_time),
        "leaseTransitions": record.leader_transitions,
    }
    if record.preferred_holder:
        spec["preferredHolder"] = record.preferred_holder
    if record.strategy:
        spec["strategy"] = record.strategy
    return spec


def check_lock_kind(kind: str) -> None:
    """Check the kind of a lock.

    Raises:
        ValueError: It is another one than `leases`.
    """
    if kind in _REMOVED:
        raise ValueError(f"{kind} lock is removed, migrate to leases")
    if kind != _LEASES.plural:
        raise ValueError(f"Invalid lock-type {kind}")


class LockError(Exception):
    """The lock cannot be used: it was not read before, or its record is invalid."""


class LeaseLock:
    """A lock in a Lease. Methods raise `ApiError` and `LockError`.

    Attributes:
        identity: Of this candidate.
        description: `namespace/name`.
    """

    def __init__(
        self,
        rest: Rest,
        namespace: str,
        name: str,
        identity: str,
        record_event: RecordEvent | None = None,
    ) -> None:
        """Set up; nothing is sent yet.

        Args:
            rest: Sends the requests.
            namespace: Of the Lease.
            name: Of the Lease.
            identity: Of this candidate.
            record_event: Called with the Lease and the text of each event.
        """
        self.identity = identity
        self.description = f"{namespace}/{name}"
        self._rest = rest
        self._namespace = namespace
        self._name = name
        self._record_event = record_event
        # As the server last sent it; unknown fields are kept.
        self._lease: Plain | None = None

    async def get(self) -> ElectionRecord:
        """Return the record."""
        lease = await self._send("GET", self._name)
        try:
            return record_of_spec(lease.get("spec") or {})
        except ValueError as error:
            raise LockError(f"lease {self.description}: {error}") from None

    async def create(self, record: ElectionRecord) -> None:
        """Create the Lease with this record."""
        # As upstream, after a failed create the lock must be read before it is written.
        self._lease = None
        metadata = {"name": self._name, "namespace": self._namespace}
        await self._send("POST", "", {"metadata": metadata, "spec": spec_of(record)})

    async def update(self, record: ElectionRecord) -> None:
        """Write the record, if the Lease has not changed since it was last read or written."""
        if self._lease is None:
            raise LockError("lease not initialized, call get or create first")
        await self._send("PUT", self._name, {**self._lease, "spec": spec_of(record)})

    def record_event(self, words: str) -> None:
        """Record an event about the Lease: `<identity> <words>`."""
        if self._record_event is None:
            return
        metadata = (self._lease or {}).get("metadata") or {}
        about = ObjectMeta(
            name=self._name,
            namespace=self._namespace,
            uid=metadata.get("uid") or "",
            resource_version=metadata.get("resourceVersion") or "",
        )
        self._record_event(Lease(metadata=about), f"{self.identity} {words}")

    async def _send(self, method: str, name: str, content: Plain | None = None) -> Plain:
        """Send a request; return the Lease that the server answers with, and keep it."""
        body = b""
        if content is not None:
            header = {"kind": _LEASES.kind, "apiVersion": _LEASES.api_version}
            body = msgspec.json.encode({**header, **content})
        path = path_of(_LEASES, self._namespace, name)
        answer = await self._rest.send(Request(method=method, path=path, body=body))
        try:
            lease = json.loads(answer)
        except ValueError as error:
            raise LockError(f"the server sent no JSON: {error}") from None
        if not isinstance(lease, dict):
            raise LockError("the server sent no object")
        self._lease = lease
        return lease
