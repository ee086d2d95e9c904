"""Store keeps objects with versions, and the changes of each kind in one order, for watchers.

One counter serves all kinds, so versions order writes across kinds. Values are opaque: a
function that the store is created with writes a version into a value.

Upstream: staging/src/k8s.io/apiserver/pkg/storage (v1.36)
Invariants: versions rise by one with every write; a kind's changes are in the order of their
            versions; a watcher sees every change after the version it began with, or an error.
Differs:  changes are kept by number, not by time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from kubesched.api.errors import AlreadyExistsError, ConflictError, GoneError, NotFoundError

V = TypeVar("V")

CHANGES_KEPT: Final = 10_000
CONFLICT: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class Key(NamedTuple):
    """The identity of an object.

    Attributes:
        kind: The plural name, with the group after a dot if there is one: `pods`,
            `leases.coordination.k8s.io`.
        namespace: "" for objects that live in none.
        name: Unique within kind and namespace.
    """

    kind: str
    namespace: str
    name: str


class ChangeType(StrEnum):
    """The type of a change, as in a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, Generic[V], frozen=True):
    """One write.

    Attributes:
        type: What happened.
        version: The version that the write made.
        key: Of the object.
        value: The object after the write; its last state, with the new version, if deleted.
        previous: The object before the write; None if it is new.
    """

    type: ChangeType
    version: int
    key: Key
    value: V
    previous: V | None


class Listing(msgspec.Struct, Generic[V], frozen=True):
    """The objects of a kind at a version, in the order of their creation."""

    items: tuple[V, ...]
    version: int


class _Stored(msgspec.Struct, Generic[V]):
    value: V
    version: int


class _Log(Generic[V]):
    """The newest changes of a kind.

    Attributes:
        compacted: The version of the newest change that is no longer kept.
        watches: What each watch calls at a change, in order of registration.
    """

    def __init__(self, kept: int) -> None:
        self.compacted = 0
        self.watches: dict[Watch[V], Callable[[], None]] = {}
        self._kept = kept
        self._changes: list[Change[V]] = []
        self._dropped = 0

    def append(self, change: Change[V]) -> None:
        self._changes.append(change)
        # Halving occasionally is cheaper than dropping one change each time.
        if len(self._changes) >= 2 * self._kept:
            self._drop(len(self._changes) - self._kept)

    def compact(self, version: int) -> None:
        """Forget changes up to a version."""
        self._drop(bisect_right(self._changes, version, key=lambda change: change.version))
        self.compacted = max(self.compacted, version)

    def _drop(self, count: int) -> None:
        if count:
            self.compacted = self._changes[count - 1].version
            self._dropped += count
            del self._changes[:count]

    def newer_than(self, version: int) -> list[Change[V]]:
        """Return the changes after a version, oldest first."""
        return self._changes[
            bisect_right(self._changes, version, key=lambda change: change.version) :
        ]

    @property
    def newest(self) -> int:
        """The version of the newest change; that of the newest dropped one if none is kept."""
        return self._changes[-1].version if self._changes else self.compacted

    def position_after(self, version: int) -> int:
        """Return the position of the first change after a version."""
        after = bisect_right(self._changes, version, key=lambda change: change.version)
        return self._dropped + after

    def read(self, position: int, limit: int | None) -> list[Change[V]]:
        """Return changes from a position on; raises IndexError if they are gone."""
        start = position - self._dropped
        if start < 0:
            raise IndexError(position)
        return self._changes[start : None if limit is None else start + limit]

    def has_after(self, position: int) -> bool:
        return position < self._dropped + len(self._changes)


class Watch(Generic[V]):
    """Reads the changes of a kind in order, at the watcher's own pace.

    Attributes:
        kind: What is watched.
        version: The newest version that it has read.
    """

    def __init__(self, kind: str, version: int, log: _Log[V]) -> None:
        self.kind = kind
        self.version = version
        self._log = log
        self._position = log.position_after(version)

    @property
    def has_changes(self) -> bool:
        """Whether `read` would return or raise something."""
        return self._log.has_after(self._position)

    def read(self, limit: int | None = None) -> list[Change[V]]:
        """Return the changes since the last read, oldest first, at most `limit` of them.

        Raises:
            GoneError: Some of the changes are no longer kept.
        """
        try:
            changes = self._log.read(self._position, limit)
        except IndexError:
            raise _gone(self.version, self._log.compacted) from None
        if changes:
            self._position += len(changes)
            self.version = changes[-1].version
        return changes

    def close(self) -> None:
        """Stop; closing twice is fine."""
        self._log.watches.pop(self, None)


class Store(Generic[V]):
    """Objects by kind, namespace and name.

    `on_write` is called with every change, before any watcher is notified.
    """

    on_write: Callable[[Change[V]], None] | None = None

    def __init__(self, stamp: Callable[[V, int], V], changes_kept: int = CHANGES_KEPT) -> None:
        """Start empty, at version 1, as etcd does.

        `stamp` returns a value with a version written into it. At least `changes_kept` changes are
        kept per kind, and at most twice as many.
        """
        if changes_kept < 1:
            raise ValueError("changes_kept must be at least 1")
        self._stamp = stamp
        self._changes_kept = changes_kept
        self._version = 1
        self._compacted = 0
        self._kinds: dict[str, dict[Key, _Stored[V]]] = {}
        self._logs: dict[str, _Log[V]] = {}

    @property
    def version(self) -> int:
        """The version of the newest write to any kind."""
        return self._version

    def restore(self, objects: Iterable[tuple[Key, V, int]], version: int) -> None:
        """Replace the content by that of another store, without its changes.

        The objects are in the order of their creation, each with its version; `version` is that of
        the newest write.
        """
        self._kinds = {}
        for key, value, own in objects:
            self._kinds.setdefault(key.kind, {})[key] = _Stored(value, own)
        self._logs = {}
        self._version = self._compacted = version

    # Reading.

    def everything(self) -> Iterator[tuple[Key, V, int]]:
        """Yield all objects with their versions, as `restore` takes them."""
        for objects in self._kinds.values():
            for key, stored in objects.items():
                yield key, stored.value, stored.version

    def get(self, key: Key) -> V:
        """Return an object; raises NotFoundError if there is none."""
        return self._stored(key).value

    def find(self, key: Key) -> V | None:
        """Return an object, None if there is none."""
        found = self._kinds.get(key.kind, {}).get(key)
        return None if found is None else found.value

    def list(self, kind: str, namespace: str | None = None) -> Listing[V]:
        """Return the objects of a kind, of one namespace or of all."""
        objects = self._kinds.get(kind, {})
        return Listing(
            tuple(
                stored.value
                for key, stored in objects.items()
                if namespace is None or key.namespace == namespace
            ),
            self._version,
        )

    def keyed(self, kind: str) -> dict[Key, V]:
        """Return the objects of a kind by their keys, in the order of their creation."""
        objects = self._kinds.get(kind, {})
        return {key: stored.value for key, stored in objects.items()}

    def list_at(self, kind: str, version: int, namespace: str | None = None) -> Listing[V]:
        """Return the objects of a kind as they were at an older version.

        Raises:
            GoneError: Changes since that version are no longer kept.
        """
        log = self._log(kind)
        if version < log.compacted:
            raise _gone(version, log.compacted)
        objects = {key: stored.value for key, stored in self._kinds.get(kind, {}).items()}
        for change in reversed(log.newer_than(version)):
            if change.previous is None:
                del objects[change.key]
            else:
                objects[change.key] = change.previous
        return Listing(
            tuple(
                value
                for key, value in objects.items()
                if namespace is None or key.namespace == namespace
            ),
            version,
        )

    def newest_change(self, kind: str) -> int:
        """Return the version of the newest change to a kind."""
        return self._log(kind).newest

    def count(self, kind: str) -> int:
        """Return how many objects of a kind there are."""
        return len(self._kinds.get(kind, {}))

    # Writing.

    def create(self, key: Key, value: V) -> V:
        """Add an object; return it with its version.

        Raises:
            AlreadyExistsError: There is one of that name.
        """
        objects = self._kinds.setdefault(key.kind, {})
        if key in objects:
            raise AlreadyExistsError(f'{key.kind} "{key.name}" already exists')
        self._version += 1
        value = self._stamp(value, self._version)
        objects[key] = _Stored(value, self._version)
        self._changed(ChangeType.ADDED, key, value, None)
        return value

    def update(self, key: Key, value: V, expected_version: int | None = None) -> V:
        """Replace an object, if it has the expected version; return it with its new version.

        Raises:
            NotFoundError: There is none.
            ConflictError: It has another version.
        """
        stored = self._stored(key, expected_version)
        previous = stored.value
        self._version += 1
        value = self._stamp(value, self._version)
        stored.value, stored.version = value, self._version
        self._changed(ChangeType.MODIFIED, key, value, previous)
        return value

    def delete(self, key: Key, expected_version: int | None = None) -> V:
        """Remove an object; return its last state, with the version of the removal.

        Raises:
            NotFoundError: There is none.
            ConflictError: It has another version than `expected_version`.
        """
        previous = self._stored(key, expected_version).value
        del self._kinds[key.kind][key]
        self._version += 1
        value = self._stamp(previous, self._version)
        self._changed(ChangeType.DELETED, key, value, previous)
        return value

    def _stored(self, key: Key, expected_version: int | None = None) -> _Stored[V]:
        stored = self._kinds.get(key.kind, {}).get(key)
        if stored is None:
            raise NotFoundError(f'{key.kind} "{key.name}" not found')
        if expected_version is not None and stored.version != expected_version:
            raise ConflictError(
                f'Operation cannot be fulfilled on {key.kind} "{key.name}": {CONFLICT}'
            )
        return stored

    def _changed(self, type_: ChangeType, key: Key, value: V, previous: V | None) -> None:
        log = self._log(key.kind)
        change = Change(type_, self._version, key, value, previous)
        log.append(change)
        if self.on_write is not None:
            self.on_write(change)
        # A watcher that is notified may close itself or others.
        for on_change in tuple(log.watches.values()):
            on_change()

    # Watching.

    def watch(
        self, kind: str, version: int, on_change: Callable[[], None] | None = None
    ) -> Watch[V]:
        """Return a watch on the changes of a kind after a version, as from `list`.

        `on_change` is called at each change from now on; it must not write.

        Raises:
            GoneError: Changes since that version are no longer kept.
        """
        log = self._log(kind)
        if version < log.compacted:
            raise _gone(version, log.compacted)
        watch = Watch(kind, version, log)
        if on_change is not None:
            log.watches[watch] = on_change
        return watch

    def compact(self, kind: str, version: int) -> None:
        """Forget the changes of a kind up to a version; watchers behind it get an error."""
        self._log(kind).compact(min(version, self._version))

    def compact_all(self) -> None:
        """Forget all changes so far, of every kind."""
        self._compacted = self._version
        for log in self._logs.values():
            log.compact(self._version)

    def _log(self, kind: str) -> _Log[V]:
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = _Log(self._changes_kept)
            log.compacted = self._compacted
        return log


def _gone(version: int, compacted: int) -> GoneError:
    return GoneError(f"too old resource version: {version} ({compacted})")
