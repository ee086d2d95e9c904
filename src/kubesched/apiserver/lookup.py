"""StoredObjects shows admission what is stored.

Upstream: staging/src/k8s.io/client-go/listers (v1.36)
Differs:  what is seen is never behind; upstream's admission reads caches that are.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.apiserver.plain import Plain
from kubesched.apiserver.stored_object import StoredObject, sort_key
from kubesched.cluster.store import Key, Store


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
        listing = self._store.list(group_resource, namespace or None)
        for stored in sorted(listing.items, key=sort_key):
            yield stored.plain
