"""StoredObject is what the store keeps: an object, and forms of it once they are needed.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/caching_object.go (v1.36)
Invariants: the object is never changed; JSON is made once however many watchers there are.
Differs:  both versions of a group that serves two (autoscaling) show the same fields.
"""

from __future__ import annotations

from typing import Final, TypeVar, cast

import msgspec

from kubesched.api.codec import decode_object
from kubesched.api.meta import KubeStruct
from kubesched.apiserver.event_forms import EVENTS_GROUP, from_core
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.resources import Resource
from kubesched.cluster.store import Key

T = TypeVar("T", bound=KubeStruct)

_TYPE: Final = frozenset(("kind", "apiVersion"))


class StoredObject:
    """An object with its versions and forms.

    Attributes:
        plain: The object in the form it is stored in.
    """

    __slots__ = ("_items", "_others", "_typed", "plain")

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self._items: dict[str, bytes] = {}
        self._others: dict[str, Plain] = {}
        self._typed: KubeStruct | None = None

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
            other = self._others[version] = self._converted(resource)
        return other

    def _converted(self, resource: Resource) -> Plain:
        if resource.group == EVENTS_GROUP:
            return from_core(self.plain)
        return {**self.plain, "apiVersion": resource.api_version}

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
    """Return the beginning of an object's JSON, up to where its own fields begin."""
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


def stamp(stored: StoredObject, version: int) -> StoredObject:
    """Return an object with a resource version."""
    metadata = {**stored.plain["metadata"], "resourceVersion": str(version)}
    return StoredObject({**stored.plain, "metadata": metadata})


def key_of(resource: Resource, namespace: str, name: str) -> Key:
    """Return where an object is kept."""
    return Key(resource.storage_kind, namespace, name)


def sort_key(stored: StoredObject) -> str:
    """Return what lists are sorted by: the path in upstream's storage."""
    metadata = stored.plain["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
