"""StoredObject is an object in the store, with forms of it that are computed when needed.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/caching_object.go (v1.36)
Invariants: the object is never changed; its JSON is encoded once for all watchers.
Differs:  both versions of a group that serves two (autoscaling) show the same fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar, cast

import msgspec

from kubesched.api.codec import decode_object
from kubesched.api.meta import KubeObject
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import known_type
from kubesched.cluster.store import Key, Store

T = TypeVar("T", bound=KubeObject)

_TYPE: Final = frozenset(("kind", "apiVersion"))


class StoredObject:
    """An object with its versions and forms; `plain` is the form it is stored in."""

    __slots__ = ("_items", "_others", "_typed", "plain")

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self._items: dict[str, bytes] = {}
        self._others: dict[str, Plain] = {}
        self._typed: KubeObject | None = None

    def typed(self, type_: type[T]) -> T:
        """Return the object as a value of `kubesched.api`."""
        if self._typed is None:
            try:
                self._typed = msgspec.convert(self.plain, type_)
            except msgspec.ValidationError:
                # Reads nulls as absent fields, which takes longer.
                self._typed = cast("T", decode_object(self.plain))
        return cast("T", self._typed)

    def form(self, resource: Resource) -> Plain:
        """Return the object in the version of a resource."""
        version = resource.api_version
        if self.plain.get("apiVersion") == version:
            return self.plain
        other = self._others.get(version)
        if other is None:
            is_event = resource.group == EVENTS_GROUP
            other = from_core(self.plain) if is_event else {**self.plain, "apiVersion": version}
            self._others[version] = other
        return other

    def item(self, resource: Resource) -> bytes:
        """Return the object as JSON without its kind, as lists show it."""
        version = resource.api_version
        found = self._items.get(version)
        if found is None:
            plain = self.form(resource)
            found = encode({name: plain[name] for name in plain if name not in _TYPE})
            self._items[version] = found
        return found

    def json(self, resource: Resource) -> bytes:
        """Return the object as JSON."""
        return head(resource) + self.item(resource)[1:]


def head(resource: Resource) -> bytes:
    """Return the beginning of an object's JSON: its kind and version."""
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


def stamp(stored: StoredObject, version: int) -> StoredObject:
    """Return an object with a resource version."""
    metadata = {**stored.plain["metadata"], "resourceVersion": str(version)}
    return StoredObject({**stored.plain, "metadata": metadata})


def sort_key(stored: StoredObject) -> str:
    """Return the key that sorts lists: the path in upstream's storage."""
    metadata = stored.plain["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


# Events: one form is stored, that of the core group, and two are shown.

EVENTS_GROUP: Final = "events.k8s.io"
# Names in events.k8s.io, and in the core group.
_TO_CORE: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_FROM_CORE: Final = {core: newer for newer, core in _TO_CORE.items()}
# Fields that the core form always has, and the newer form only if they are not empty.
_OPTIONAL_IN_NEWER: Final = ("reportingController", "reportingInstance")


def to_core(event: Plain) -> Plain:
    """Return an event of events.k8s.io as the core group has it."""
    core = {_TO_CORE.get(name, name): value for name, value in event.items()}
    core |= {"kind": "Event", "apiVersion": "v1"}
    for name, absent in known_type("core_v1", "Event").zero().items():
        core.setdefault(name, absent)
    return core


def from_core(event: Plain) -> Plain:
    """Return an event of the core group as events.k8s.io has it."""
    newer = {_FROM_CORE.get(name, name): value for name, value in event.items()}
    newer |= {"kind": "Event", "apiVersion": f"{EVENTS_GROUP}/v1"}
    for name in _OPTIONAL_IN_NEWER:
        if not newer.get(name):
            newer.pop(name, None)
    return newer


# Objects that admission reads.


class StoredObjects:
    """Objects by resource, namespace and name, as they are stored."""

    def __init__(self, store: Store[StoredObject]) -> None:
        self._store = store

    def get(self, group_resource: str, namespace: str, name: str) -> Plain | None:
        """Return an object, None if there is none."""
        found = self._store.find(Key(group_resource, namespace, name))
        return None if found is None else found.plain

    def items(self, group_resource: str, namespace: str = "") -> Iterator[Plain]:
        """Yield the objects of a namespace, or of all for "", in the order of their names."""
        for stored in sorted(self._store.list(group_resource, namespace or None), key=sort_key):
            yield stored.plain
