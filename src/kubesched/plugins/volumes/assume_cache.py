"""AssumeCache: objects as they will be after the scheduler's writes.

An assumed object is valid until the API server's object changes, which is then newer.

Upstream: pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go (v1.36)
Invariants: an assumed object is returned only while the object it was made from is current.
Differs:  an assumed object expires when it is read, not by an event; results are equal.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.snapshot.changes import ChangeLog
from kubesched.snapshot.objects import Objects

K = TypeVar("K", bound=KubeObject)


class AssumeError(Exception):
    """An object changed since the decision; the text has the reason."""


class _Assumed(msgspec.Struct, Generic[K], frozen=True):
    made_from: K
    item: K


class AssumeCache(Generic[K]):
    """The assumed objects of one kind.

    Attributes:
        kind: The class of the objects.
        resource: The kind's plural name, for messages.
        changes: The name of each object that was assumed or restored, without its namespace.
    """

    def __init__(self, kind: type[K], resource: str) -> None:
        self.kind = kind
        self.resource = resource
        self.changes: ChangeLog[str] = ChangeLog()
        self._assumed: dict[str, _Assumed[K]] = {}

    def get(self, objects: Objects, name: str, namespace: str = "") -> K | None:
        """Return the assumed object, else the stored one; None if there is none."""
        stored = objects.get(self.kind, name, namespace)
        return None if stored is None else self.current(stored)

    def current(self, stored: K) -> K:
        """Return the assumed version of a stored object, else the object itself."""
        if not self._assumed:
            return stored
        key = stored.metadata.key
        assumed = self._assumed.get(key)
        if assumed is None:
            return stored
        if _is_same_version(assumed, stored):
            return assumed.item
        del self._assumed[key]
        return stored

    def assume(self, objects: Objects, item: K) -> None:
        """Assume `item`.

        Raises AssumeError if the stored object is missing, or has another version.
        """
        key = item.metadata.key
        stored = objects.get(self.kind, item.metadata.name, item.metadata.namespace)
        if stored is None:
            raise AssumeError(f'{self.resource} "{key}" not found')
        is_at, wants = stored.metadata.resource_version, item.metadata.resource_version
        if is_at != wants:
            raise AssumeError(f'"{key}" is out of sync (stored: {is_at}, assume: {wants})')
        self._assumed[key] = _Assumed(stored, item)
        self.changes.add(item.metadata.name)

    def restore(self, item: K) -> None:
        """Drop the assumed object if it has the version of `item`."""
        key = item.metadata.key
        assumed = self._assumed.get(key)
        if (
            assumed is not None
            and assumed.item.metadata.resource_version == item.metadata.resource_version
        ):
            del self._assumed[key]
            self.changes.add(item.metadata.name)


def _is_same_version(assumed: _Assumed[K], stored: K) -> bool:
    if assumed.made_from is stored:
        return True
    version = stored.metadata.resource_version
    return version != "" and version == assumed.item.metadata.resource_version
