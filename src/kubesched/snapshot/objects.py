"""Objects holds all objects but nodes and pods; plugins read it as upstream reads its listers.

Invariants: iteration is in the order of arrival of namespaces, then of names in a namespace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final, Protocol, TypeVar, cast

from kubesched.api.meta import ObjectMeta


class KubernetesObject(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""
        ...


K = TypeVar("K", bound=KubernetesObject)
_CHANGES_KEPT: Final = 1024
_NOTHING: Final[Mapping[str, KubernetesObject]] = MappingProxyType({})


class Objects:
    """Read access by class, namespace and name. Cluster-scoped kinds have namespace ``""``.

    Attributes:
        changes: The number of changes so far, of all kinds together.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._kinds: dict[type, dict[str, dict[str, KubernetesObject]]] = {}
        self._versions: dict[type, int] = {}
        self._changed: dict[type, deque[tuple[str, str]]] = {}

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        """Return the object, None if it does not exist."""
        found = self._kinds.get(kind, {}).get(namespace, _NOTHING).get(name)
        return cast("K | None", found)

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
        """Whether the kind was ever stored, or marked as complete by `know`."""
        return kind in self._kinds

    def version(self, kind: type[K]) -> int:
        """Return a number that increases with every change of the kind, for use as a cache key."""
        return self._versions.get(kind, 0)

    def changed_since(self, kind: type[K], version: int) -> Sequence[tuple[str, str]] | None:
        """Return (namespace, name) of each change of the kind since a version, oldest first.

        None if the version is older than the log of changes.
        """
        changed = self._changed.get(kind, ())
        first = len(changed) - (self.version(kind) - version)
        return tuple(islice(changed, first, None)) if 0 <= first <= len(changed) else None


class ObjectStore(Objects):
    """Objects with methods to change them."""

    def declare_complete(self, kind: type) -> None:
        """Mark a kind as complete, even if it has no objects."""
        self._kinds.setdefault(kind, {})

    def put(self, item: KubernetesObject) -> KubernetesObject | None:
        """Add or replace an object; return the one it replaces, None if none."""
        metadata = item.metadata
        space = self._kinds.setdefault(type(item), {}).setdefault(metadata.namespace, {})
        previous = space.get(metadata.name)
        space[metadata.name] = item
        self._moved(type(item), metadata)
        return previous

    def delete(self, item: KubernetesObject) -> KubernetesObject | None:
        """Remove an object; return it as stored, None if it was not."""
        spaces = self._kinds.get(type(item), {})
        space = spaces.get(item.metadata.namespace, {})
        previous = space.pop(item.metadata.name, None)
        if previous is not None:
            if not space:
                del spaces[item.metadata.namespace]
            self._moved(type(item), item.metadata)
        return previous

    def _moved(self, kind: type, metadata: ObjectMeta) -> None:
        changed = self._changed.get(kind)
        if changed is None:
            changed = self._changed[kind] = deque(maxlen=_CHANGES_KEPT)
        changed.append((metadata.namespace, metadata.name))
        self.changes += 1
        self._versions[kind] = self._versions.get(kind, 0) + 1
