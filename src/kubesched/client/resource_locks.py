"""Locks of leader election: Leases, annotated Endpoints or ConfigMaps, and two at a time.

Every write names the resource version that it is based on, so of two candidates one is refused.

Upstream: staging/src/k8s.io/client-go/tools/leaderelection/resourcelock: interface.go,
          leaselock.go, multilock.go (v1.36); endpointslock.go, configmaplock.go (v1.23)
Differs:  the locks that upstream has removed work, if a flag allows them; of two locks, only the
          candidate that has written the primary creates the secondary, because candidates that
          know only the primary could lead at the same time otherwise; the secondary is not
          written if it cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from kubesched.api.errors import NotFoundError
from kubesched.api.volume import ObjectReference
from kubesched.client.election_record import (
    ElectionRecord,
    annotation_of,
    raw_record,
    record_of_annotation,
    record_of_spec,
    spec_of,
)
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

Plain = dict[str, Any]
RecordEvent = Callable[[ObjectReference, str], None]


class LockError(Exception):
    """A lock cannot be used: it was not read before, or its record is invalid."""


class ResourceLock(Protocol):
    """An object with an election record. Methods raise `ApiError` and `LockError`."""

    @property
    def identity(self) -> str:
        """The identity of this candidate."""
        ...

    @property
    def description(self) -> str:
        """Namespace and name of the lock, for messages."""
        ...

    async def get(self) -> tuple[ElectionRecord, bytes]:
        """Return the record, and bytes that change with every write."""
        ...

    async def create(self, record: ElectionRecord) -> None:
        """Create the object with this record."""
        ...

    async def update(self, record: ElectionRecord) -> None:
        """Write the record, if the object has not changed since it was last read or written."""
        ...

    def record_event(self, words: str) -> None:
        """Record an event about the object: `<identity> <words>`."""
        ...


class _LockObject:
    """The object of one lock as the server last sent it; unknown fields are kept."""

    def __init__(
        self,
        rest: Rest,
        kind: tuple[str, str, str],
        namespace: str,
        name: str,
    ) -> None:
        self.api_version, self.kind, plural = kind
        self._rest = rest
        self._namespace = namespace
        self._name = name
        group = f"/apis/{self.api_version}" if "/" in self.api_version else "/api/v1"
        self._collection = f"{group}/namespaces/{namespace}/{plural}"
        self.content: Plain | None = None

    @property
    def description(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def get(self) -> Plain:
        path = f"{self._collection}/{self._name}"
        self.content = _decoded(await self._rest.send(Request(path=path)))
        return self.content

    async def create(self, metadata: Plain, rest_of: Plain) -> None:
        content = self._headed(
            {"metadata": {"name": self._name, "namespace": self._namespace, **metadata}, **rest_of}
        )
        # As upstream, after a failed create the lock must be read before it is written.
        self.content = None
        body = msgspec.json.encode(content)
        request = Request(method="POST", path=self._collection, body=body)
        self.content = _decoded(await self._rest.send(request))

    async def update(self, content: Plain) -> None:
        path = f"{self._collection}/{self._name}"
        body = msgspec.json.encode(self._headed(content))
        self.content = _decoded(await self._rest.send(Request(method="PUT", path=path, body=body)))

    def current(self) -> Plain:
        if self.content is None:
            kind = {"Lease": "lease", "Endpoints": "endpoint"}.get(self.kind, "configmap")
            raise LockError(f"{kind} not initialized, call get or create first")
        return self.content

    def _headed(self, content: Plain) -> Plain:
        return {"kind": self.kind, "apiVersion": self.api_version, **content}

    @property
    def reference(self) -> ObjectReference:
        """A reference to the object as last seen, for events."""
        metadata = (self.content or {}).get("metadata") or {}
        return ObjectReference(
            api_version=self.api_version,
            kind=self.kind,
            namespace=self._namespace,
            name=self._name,
            uid=metadata.get("uid") or "",
            resource_version=metadata.get("resourceVersion") or "",
        )


class LeaseLock:
    """A lock in a Lease.

    Args:
        rest: Sends the requests.
        namespace: Of the lock.
        name: Of the lock.
        identity: Of this candidate.
        record_event: Called with the events.
        labels: Set on the Lease whenever it is written.
    """

    def __init__(
        self,
        rest: Rest,
        namespace: str,
        name: str,
        identity: str,
        record_event: RecordEvent | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        kind = ("coordination.k8s.io/v1", "Lease", "leases")
        self._object = _LockObject(rest, kind, namespace, name)
        self._identity = identity
        self._record_event = record_event
        self._labels = dict(labels or {})

    @property
    def identity(self) -> str:
        """The identity of this candidate."""
        return self._identity

    @property
    def description(self) -> str:
        """`namespace/name`."""
        return self._object.description

    async def get(self) -> tuple[ElectionRecord, bytes]:
        """Return the record, and bytes that change with every write."""
        lease = await self._object.get()
        try:
            record = record_of_spec(lease.get("spec") or {})
        except ValueError as error:
            raise LockError(f"lease {self.description}: {error}") from None
        return record, raw_record(record)

    async def create(self, record: ElectionRecord) -> None:
        """Create the Lease with this record."""
        metadata = {"labels": self._labels} if self._labels else {}
        await self._object.create(metadata, {"spec": spec_of(record)})

    async def update(self, record: ElectionRecord) -> None:
        """Write the record, if the Lease has not changed since it was last read or written."""
        lease = self._object.current()
        metadata = lease.get("metadata") or {}
        if self._labels:
            metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), **self._labels}}
        await self._object.update({**lease, "metadata": metadata, "spec": spec_of(record)})

    def record_event(self, words: str) -> None:
        """Record an event about the Lease."""
        if self._record_event is not None:
            self._record_event(self._object.reference, f"{self._identity} {words}")


class AnnotationLock:
    """A lock in an annotation of Endpoints or a ConfigMap, as before Leases.

    Args:
        rest: Sends the requests.
        kind: `Endpoints` or `ConfigMap`.
        namespace: Of the lock.
        name: Of the lock.
        identity: Of this candidate.
        record_event: Called with the events.
    """

    def __init__(
        self,
        rest: Rest,
        kind: str,
        namespace: str,
        name: str,
        identity: str,
        record_event: RecordEvent | None = None,
    ) -> None:
        plural = "endpoints" if kind == "Endpoints" else "configmaps"
        self._object = _LockObject(rest, ("v1", kind, plural), namespace, name)
        self._identity = identity
        self._record_event = record_event

    @property
    def identity(self) -> str:
        """The identity of this candidate."""
        return self._identity

    @property
    def description(self) -> str:
        """`namespace/name`."""
        return self._object.description

    async def get(self) -> tuple[ElectionRecord, bytes]:
        """Return the record and the annotation's bytes; an empty record without an annotation."""
        content = await self._object.get()
        annotations = (content.get("metadata") or {}).get("annotations") or {}
        text = annotations.get(ANNOTATION, "")
        try:
            record = record_of_annotation(text) if text else ElectionRecord()
        except ValueError as error:
            raise LockError(f"{self.description}: annotation {ANNOTATION}: {error}") from None
        return record, text.encode()

    async def create(self, record: ElectionRecord) -> None:
        """Create the object with this record."""
        await self._object.create({"annotations": {ANNOTATION: annotation_of(record)}}, {})

    async def update(self, record: ElectionRecord) -> None:
        """Write the record, if the object has not changed since it was last read or written."""
        content = self._object.current()
        metadata = content.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: annotation_of(record)}
        await self._object.update({**content, "metadata": {**metadata, "annotations": annotations}})

    def record_event(self, words: str) -> None:
        """Record an event about the object."""
        if self._record_event is not None:
            self._record_event(self._object.reference, f"{self._identity} {words}")


class MultiLock:
    """Two locks at a time, to migrate from one kind to another while old candidates run.

    Args:
        primary: The lock that old candidates know.
        secondary: The lock to move to.
    """

    def __init__(self, primary: ResourceLock, secondary: ResourceLock) -> None:
        self._primary = primary
        self._secondary = secondary
        self._lacks_secondary = False

    @property
    def identity(self) -> str:
        """The identity of this candidate."""
        return self._primary.identity

    @property
    def description(self) -> str:
        """Namespace and name of the primary lock."""
        return self._primary.description

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
    """Return a lock by the name of its kind.

    Args:
        kind: `leases`, `endpoints`, `configmaps`, `endpointsleases` or `configmapsleases`.
        rest: Sends the requests.
        namespace: Of the lock.
        name: Of the lock.
        identity: Of this candidate.
        record_event: Called with the object and text of each event; its type is Normal, its
            reason LeaderElection.
        allows_removed: Whether to allow kinds that Kubernetes has removed.

    Raises:
        ValueError: The kind is unknown or removed.
    """
    lease = LeaseLock(rest, namespace, name, identity, record_event)
    if kind == LEASES:
        return lease
    if kind not in _REMOVED:
        raise ValueError(f"Invalid lock-type {kind}")
    if not allows_removed:
        raise ValueError(_REMOVED[kind])
    object_kind = "Endpoints" if kind.startswith("endpoints") else "ConfigMap"
    old = AnnotationLock(rest, object_kind, namespace, name, identity, record_event)
    return MultiLock(old, lease) if kind.endswith(LEASES) else old


def _decoded(body: bytes) -> Plain:
    try:
        content = json.loads(body)
    except ValueError as error:
        raise LockError(f"the server sent no JSON: {error}") from None
    if not isinstance(content, dict):
        raise LockError("the server sent no object")
    return content
