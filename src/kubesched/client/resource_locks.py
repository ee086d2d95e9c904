"""Locks of leader election: Leases, annotated Endpoints or ConfigMaps, and two at a time.

Every write names the resource version that it is based on, so of two candidates one is refused.

Upstream: staging/src/k8s.io/client-go/tools/leaderelection/resourcelock: interface.go,
          leaselock.go, multilock.go (v1.36); endpointslock.go, configmaplock.go (v1.23)
Differs:  the locks that upstream has removed work, if a flag allows them; of two locks, only the
          candidate that has written the primary creates the secondary, because candidates that
          know only the primary could lead at the same time otherwise; the secondary is not
          written if it cannot be read. Two records of a Lease are equal only if their times are,
          to the microsecond; upstream compares seconds, so a candidate may miss a renewal and take
          over up to a second too early.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from kubesched.api.errors import NotFoundError
from kubesched.api.times import micro_time, second_time
from kubesched.api.volume import ObjectReference
from kubesched.client.requests import Request, Rest

LEASES: Final = "leases"
ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"
UNKNOWN_LEADER: Final = "leaderelection.k8s.io/unknown"

_REMOVED: Final = {
    "endpoints": "endpoints lock is removed, migrate to leases",
    "configmaps": "configmaps lock is removed, migrate to leases",
    "endpointsleases": "endpointsleases lock is removed, migrate to leases",
    "configmapsleases": "configmapsleases lock is removed, migrated to leases",
}

# By kind: the version, the name in paths, and the word in messages.
_OBJECTS: Final = {
    "Lease": ("coordination.k8s.io/v1", "leases", "lease"),
    "Endpoints": ("v1", "endpoints", "endpoint"),
    "ConfigMap": ("v1", "configmaps", "configmap"),
}

Plain = dict[str, Any]
RecordEvent = Callable[[ObjectReference, str], None]


# The content of a lock: in a Lease's spec, or in an annotation.


class ElectionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The leader and its lease.

    The holder is "" for none. A lease's duration is how long candidates wait after the last change
    they see.
    """

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    leader_transitions: int = 0


def record_of_spec(spec: Plain) -> ElectionRecord:
    """Return the record of a Lease's spec; raises ValueError if a field has the wrong type."""
    return _record(spec, "leaseTransitions")


def record_of_annotation(text: str) -> ElectionRecord:
    """Return the record of an annotation's JSON text; raises ValueError if it is invalid."""
    return _record(msgspec.json.decode(text, type=Plain), "leaderTransitions")


def _record(plain: Plain, transitions: str) -> ElectionRecord:
    given = {name: value for name, value in plain.items() if value is not None}
    given["leaderTransitions"] = given.get(transitions, 0)
    return msgspec.convert(given, ElectionRecord)


def _plain(record: ElectionRecord, transitions: str, text_of: Callable[[datetime], str]) -> Plain:
    return {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": record.lease_duration_seconds,
        "acquireTime": None if record.acquire_time is None else text_of(record.acquire_time),
        "renewTime": None if record.renew_time is None else text_of(record.renew_time),
        transitions: record.leader_transitions,
    }


def spec_of(record: ElectionRecord) -> Plain:
    """Return a Lease's spec: times with microseconds."""
    return _plain(record, "leaseTransitions", micro_time)


def annotation_of(record: ElectionRecord) -> str:
    """Return an annotation's JSON text: times in whole seconds."""
    return msgspec.json.encode(_plain(record, "leaderTransitions", second_time)).decode()


def raw_record(record: ElectionRecord) -> bytes:
    """Return bytes that are equal only for equal records."""
    return msgspec.json.encode(spec_of(record))


# Locks.


class LockError(Exception):
    """A lock cannot be used: it was not read before, or its record is invalid."""


class _ObjectLock(ABC):
    """The object of one lock as the server last sent it; unknown fields are kept."""

    def __init__(
        self,
        rest: Rest,
        namespace: str,
        name: str,
        identity: str,
        record_event: RecordEvent | None = None,
        *,
        kind: str = "Lease",
    ) -> None:
        """Set up; nothing is sent yet. The kind is `Lease`, `Endpoints` or `ConfigMap`."""
        self.identity = identity
        self.description = f"{namespace}/{name}"
        self._kind = kind
        self._api_version, plural, self._word = _OBJECTS[kind]
        self._rest = rest
        self._namespace = namespace
        self._name = name
        self._record_event = record_event
        group = f"/apis/{self._api_version}" if "/" in self._api_version else "/api/v1"
        self._collection = f"{group}/namespaces/{namespace}/{plural}"
        self._path = f"{self._collection}/{name}"
        self._content: Plain | None = None

    async def get(self) -> tuple[ElectionRecord, bytes]:
        """Return the record, empty without one, and bytes that change with every write."""
        self._content = _decoded(await self._rest.send(Request(path=self._path)))
        return self._read(self._content)

    async def create(self, record: ElectionRecord) -> None:
        """Create the object with this record."""
        metadata = {"name": self._name, "namespace": self._namespace}
        # As upstream, after a failed create the lock must be read before it is written.
        self._content = None
        await self._send("POST", self._collection, self._written({"metadata": metadata}, record))

    async def update(self, record: ElectionRecord) -> None:
        """Write the record, if the object has not changed since it was last read or written."""
        if self._content is None:
            raise LockError(f"{self._word} not initialized, call get or create first")
        await self._send("PUT", self._path, self._written(self._content, record))

    @abstractmethod
    def _read(self, content: Plain) -> tuple[ElectionRecord, bytes]:
        """Return the record in an object, and its text."""

    @abstractmethod
    def _written(self, content: Plain, record: ElectionRecord) -> Plain:
        """Return an object with a record."""

    async def _send(self, method: str, path: str, content: Plain) -> None:
        content = {"kind": self._kind, "apiVersion": self._api_version, **content}
        request = Request(method=method, path=path, body=msgspec.json.encode(content))
        self._content = _decoded(await self._rest.send(request))

    def record_event(self, words: str) -> None:
        """Record an event about the object as last seen."""
        if self._record_event is None:
            return
        metadata = (self._content or {}).get("metadata") or {}
        reference = ObjectReference(
            api_version=self._api_version,
            kind=self._kind,
            namespace=self._namespace,
            name=self._name,
            uid=metadata.get("uid") or "",
            resource_version=metadata.get("resourceVersion") or "",
        )
        self._record_event(reference, f"{self.identity} {words}")


class LeaseLock(_ObjectLock):
    """A lock in a Lease."""

    def _read(self, content: Plain) -> tuple[ElectionRecord, bytes]:
        try:
            record = record_of_spec(content.get("spec") or {})
        except ValueError as error:
            raise LockError(f"lease {self.description}: {error}") from None
        return record, raw_record(record)

    def _written(self, content: Plain, record: ElectionRecord) -> Plain:
        return {**content, "spec": spec_of(record)}


class AnnotationLock(_ObjectLock):
    """A lock in an annotation of Endpoints or a ConfigMap, as before Leases."""

    def _read(self, content: Plain) -> tuple[ElectionRecord, bytes]:
        annotations = (content.get("metadata") or {}).get("annotations") or {}
        text = annotations.get(ANNOTATION, "")
        try:
            record = record_of_annotation(text) if text else ElectionRecord()
        except ValueError as error:
            raise LockError(f"{self.description}: annotation {ANNOTATION}: {error}") from None
        return record, text.encode()

    def _written(self, content: Plain, record: ElectionRecord) -> Plain:
        metadata = content.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: annotation_of(record)}
        return {**content, "metadata": {**metadata, "annotations": annotations}}


class MultiLock:
    """Two locks at a time, to migrate from one kind to another while old candidates run.

    Old candidates know the primary lock; the secondary one is the lock to move to.
    """

    def __init__(self, primary: AnnotationLock, secondary: LeaseLock) -> None:
        self.identity = primary.identity
        self.description = primary.description
        self._primary = primary
        self._secondary = secondary
        self._lacks_secondary = False

    async def get(self) -> tuple[ElectionRecord, bytes]:
        """Return the primary's record, with an unknown holder if the locks disagree."""
        self._lacks_secondary = False
        record, raw = await self._primary.get()
        try:
            second, second_raw = await self._secondary.get()
        except NotFoundError:
            # The leader is an old candidate that does not know the secondary lock.
            if record.holder_identity != self.identity:
                return record, raw
            self._lacks_secondary = True
            raise
        if record.holder_identity != second.holder_identity:
            record = msgspec.structs.replace(record, holder_identity=UNKNOWN_LEADER)
            raw = raw_record(record)
        return record, raw + b"," + second_raw

    async def create(self, record: ElectionRecord) -> None:
        """Create both objects, or only the secondary if this candidate holds the primary."""
        if self._lacks_secondary:
            # Old candidates read only the primary, so it must have the new term too.
            await self._primary.update(record)
        else:
            await self._primary.create(record)
        await self._secondary.create(record)

    async def update(self, record: ElectionRecord) -> None:
        """Write the primary, then read and write the secondary."""
        await self._primary.update(record)
        try:
            await self._secondary.get()
        except NotFoundError:
            await self._secondary.create(record)
            return
        await self._secondary.update(record)

    def record_event(self, words: str) -> None:
        """Record events about both objects."""
        self._primary.record_event(words)
        self._secondary.record_event(words)


ResourceLock: TypeAlias = LeaseLock | AnnotationLock | MultiLock
"""A lock. Its methods raise `ApiError` and `LockError`."""


def new_lock(
    kind: str,
    rest: Rest,
    namespace: str,
    name: str,
    identity: str,
    record_event: RecordEvent | None = None,
    *,
    allows_removed: bool = False,
) -> ResourceLock:
    """Return a lock by the name of its kind, which may be a removed one only if that is allowed.

    Kinds are `leases`, `endpoints`, `configmaps`, `endpointsleases` and `configmapsleases`.
    `record_event` is called with the object and text of each event, whose type is Normal and whose
    reason is LeaderElection. Raises ValueError if the kind is unknown or removed.
    """
    lease = LeaseLock(rest, namespace, name, identity, record_event)
    if kind == LEASES:
        return lease
    if kind not in _REMOVED:
        raise ValueError(f"Invalid lock-type {kind}")
    if not allows_removed:
        raise ValueError(_REMOVED[kind])
    object_kind = "Endpoints" if kind.startswith("endpoints") else "ConfigMap"
    old = AnnotationLock(rest, namespace, name, identity, record_event, kind=object_kind)
    return MultiLock(old, lease) if kind.endswith(LEASES) else old


def _decoded(body: bytes) -> Plain:
    try:
        return msgspec.json.decode(body, type=Plain)
    except ValueError as error:
        raise LockError(f"the server sent no object: {error}") from None
