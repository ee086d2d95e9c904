"""Objects holds all objects but nodes and pods; plugins read it as upstream reads its listers.

Invariants: iteration is in the order of arrival of namespaces, then of names in a namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.snapshot.changes import ChangeLog

K = TypeVar("K", bound=KubeObject)

ObjectName: TypeAlias = tuple[str, str]
"""Namespace and name of an object."""


class Objects:
    """Read access by class, namespace and name, "" for cluster-scoped kinds; counts all changes."""

    def __init__(self) -> None:
        self.changes = 0
        self._kinds: dict[type, dict[str, dict[str, KubeObject]]] = {}
        self._logs: dict[type, ChangeLog[ObjectName]] = {}

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        """Return the object, None if it does not exist."""
        spaces = self._kinds.get(kind)
        space = None if spaces is None else spaces.get(namespace)
        # Stored under its own class.
        return None if space is None else space.get(name)  # type: ignore[return-value]

    def list(self, kind: type[K], namespace: str | None = None) -> Iterable[K]:
        """Iterate over the objects of a kind, of one namespace or of all."""
        spaces = self._kinds.get(kind, {})
        chosen = spaces.values() if namespace is None else [spaces.get(namespace, {})]
        for space in chosen:
            yield from space.values()  # type: ignore[misc]  # stored under their own class

    def any(self, kind: type[K], namespace: str | None = None) -> bool:
        """Whether an object of the kind exists, in one namespace or in any."""
        spaces = self._kinds.get(kind)
        if not spaces:
            return False
        return namespace is None or bool(spaces.get(namespace))

    def knows(self, kind: type[K]) -> bool:
        """Whether the kind was ever stored, or marked as complete."""
        return kind in self._kinds

    def version(self, kind: type[K]) -> int:
        """Return a number that increases with every change of the kind, for use as a cache key."""
        log = self._logs.get(kind)
        return 0 if log is None else log.version

    def changed_since(self, kind: type[K], version: int) -> Sequence[ObjectName] | None:
        """Return (namespace, name) of each change of the kind since a version, oldest first.

        None if the version is older than the log of changes.
        """
        return self.changes_of(kind).since(version)

    def changes_of(self, kind: type[KubeObject]) -> ChangeLog[ObjectName]:
        """Return the log of the objects of a kind that were put or deleted."""
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = ChangeLog()
        return log


class ObjectStore(Objects):
    """Objects with methods to change them."""

    def declare_complete(self, kind: type) -> None:
        """Mark a kind as complete, even if it has no objects."""
        self._kinds.setdefault(kind, {})

    def put(self, item: KubeObject) -> KubeObject | None:
        """Add or replace an object; return the one it replaces, None if none."""
        metadata = item.metadata
        space = self._kinds.setdefault(type(item), {}).setdefault(metadata.namespace, {})
        previous = space.get(metadata.name)
        space[metadata.name] = item
        self._moved(type(item), metadata)
        return previous

    def delete(self, item: KubeObject) -> KubeObject | None:
        """Remove an object; return it as stored, None if it was not."""
        spaces = self._kinds.get(type(item), {})
        space = spaces.get(item.metadata.namespace, {})
        previous = space.pop(item.metadata.name, None)
        if previous is not None:
            if not space:
                del spaces[item.metadata.namespace]
            self._moved(type(item), item.metadata)
        return previous

    def _moved(self, kind: type[KubeObject], metadata: ObjectMeta) -> None:
        self.changes_of(kind).add((metadata.namespace, metadata.name))
        self.changes += 1
