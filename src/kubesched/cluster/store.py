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
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from kubesched.api.errors import AlreadyExistsError, GoneError, NotFoundError

V = TypeVar("V")

CHANGES_KEPT: Final = 10_000


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
    """One write, with the version that it made.

    Attributes:
        value: The object after the write; its last state, with the new version, if deleted.
        previous: The object before the write; None if it is new.
    """

    type: ChangeType
    version: int
    key: Key
    value: V
    previous: V | None


class _Log(Generic[V]):
    """The newest changes of a kind.

    Attributes:
        compacted: The version of the newest change that is no longer kept.
        watches: What each watch calls at a change, in order of registration.
    """

    def __init__(self, kept: int, compacted: int) -> None:
        self.compacted = compacted
        self.watches: dict[Watch[V], Callable[[], None]] = {}
        self._kept = kept
        self._changes: list[Change[V]] = []
        self._versions: list[int] = []

    def append(self, change: Change[V]) -> None:
        self._changes.append(change)
        self._versions.append(change.version)
        # Halving occasionally is cheaper than dropping one change each time.
        if len(self._changes) >= 2 * self._kept:
            surplus = len(self._changes) - self._kept
            self.compacted = self._versions[surplus - 1]
            del self._changes[:surplus], self._versions[:surplus]

    def forget(self, version: int) -> None:
        """Keep no change; `version` is that of the store."""
        self.compacted = version
        del self._changes[:], self._versions[:]

    @property
    def newest(self) -> int:
        """The version of the newest change; that of the newest dropped one if none is kept."""
        return self._versions[-1] if self._versions else self.compacted

    def check(self, version: int) -> None:
        """Raise GoneError if changes after a version are no longer kept."""
        if version < self.compacted:
            raise GoneError(f"too old resource version: {version} ({self.compacted})")

    def after(self, version: int, limit: int | None = None) -> list[Change[V]]:
        """Return the changes after a version, oldest first; raises GoneError if some are gone."""
        self.check(version)
        start = bisect_right(self._versions, version)
        return self._changes[start : None if limit is None else start + limit]


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

    @property
    def has_changes(self) -> bool:
        """Whether `read` would return or raise something."""
        return self.version < self._log.newest

    def read(self, limit: int | None = None) -> list[Change[V]]:
        """Return the changes since the last read, oldest first, at most `limit` of them.

        Raises GoneError if some of the changes are no longer kept.
        """
        changes = self._log.after(self.version, limit)
        if changes:
            self.version = changes[-1].version
        return changes

    def close(self) -> None:
        """Stop; closing twice is fine."""
        self._log.watches.pop(self, None)


class Store(Generic[V]):
    """Objects by kind, namespace and name.

    The functions in `on_write` are called with every change, before any watcher is notified.
    """

    def __init__(self, stamp: Callable[[V, int], V], changes_kept: int = CHANGES_KEPT) -> None:
        """Start empty, at version 1, as etcd does.

        `stamp` returns a value with a version written into it. At least `changes_kept` changes are
        kept per kind, and at most twice as many.
        """
        if changes_kept < 1:
            raise ValueError("changes_kept must be at least 1")
        self.on_write: list[Callable[[Change[V]], object]] = []
        self._stamp = stamp
        self._changes_kept = changes_kept
        self._version = 1
        self._compacted = 0
        self._kinds: dict[str, dict[Key, V]] = {}
        self._logs: dict[str, _Log[V]] = {}

    @property
    def version(self) -> int:
        """The version of the newest write to any kind."""
        return self._version

    def restore(self, objects: Iterable[tuple[Key, V]], version: int) -> None:
        """Replace the content by that of another store, without its changes.

        The objects are in the order of their creation; `version` is that of the newest write.
        """
        self._kinds = {}
        for key, value in objects:
            self._kinds.setdefault(key.kind, {})[key] = value
        self._logs = {}
        self._version = self._compacted = version

    # Reading.

    def everything(self) -> Iterator[tuple[Key, V]]:
        """Yield all objects, as `restore` takes them."""
        for objects in self._kinds.values():
            yield from objects.items()

    def get(self, key: Key) -> V:
        """Return an object; raises NotFoundError if there is none."""
        try:
            return self._kinds[key.kind][key]
        except KeyError:
            raise NotFoundError(f'{key.kind} "{key.name}" not found') from None

    def find(self, key: Key) -> V | None:
        """Return an object, None if there is none."""
        return self._kinds.get(key.kind, {}).get(key)

    def keyed(self, kind: str) -> dict[Key, V]:
        """Return the objects of a kind by their keys, in the order of their creation."""
        return dict(self._kinds.get(kind, {}))

    def list(self, kind: str, namespace: str | None = None) -> tuple[V, ...]:
        """Return the objects of a kind, of one namespace or of all, in the order of creation."""
        return _of_namespace(self._kinds.get(kind, {}), namespace)

    def list_at(self, kind: str, version: int, namespace: str | None = None) -> tuple[V, ...]:
        """Return the objects of a kind as they were at an older version.

        Raises GoneError if changes since that version are no longer kept.
        """
        objects = self.keyed(kind)
        for change in reversed(self._log(kind).after(version)):
            if change.previous is None:
                del objects[change.key]
            else:
                objects[change.key] = change.previous
        return _of_namespace(objects, namespace)

    def newest_change(self, kind: str) -> int:
        """Return the version of the newest change to a kind."""
        return self._log(kind).newest

    def count(self, kind: str) -> int:
        """Return how many objects of a kind there are."""
        return len(self._kinds.get(kind, {}))

    # Writing.

    def create(self, key: Key, value: V) -> V:
        """Add an object; return it with its version. Raises AlreadyExistsError if it is there."""
        objects = self._kinds.setdefault(key.kind, {})
        if key in objects:
            raise AlreadyExistsError(f'{key.kind} "{key.name}" already exists')
        self._version += 1
        value = self._stamp(value, self._version)
        objects[key] = value
        self._changed(ChangeType.ADDED, key, value, None)
        return value

    def update(self, key: Key, value: V) -> V:
        """Replace an object; return it with its new version. Raises NotFoundError without one."""
        previous = self.get(key)
        self._version += 1
        value = self._stamp(value, self._version)
        self._kinds[key.kind][key] = value
        self._changed(ChangeType.MODIFIED, key, value, previous)
        return value

    def delete(self, key: Key) -> V:
        """Remove an object; return its last state, with the version of the removal.

        Raises NotFoundError if there is none.
        """
        previous = self.get(key)
        del self._kinds[key.kind][key]
        self._version += 1
        value = self._stamp(previous, self._version)
        self._changed(ChangeType.DELETED, key, value, previous)
        return value

    def _changed(self, type_: ChangeType, key: Key, value: V, previous: V | None) -> None:
        log = self._log(key.kind)
        change = Change(type_, self._version, key, value, previous)
        log.append(change)
        for call in self.on_write:
            call(change)
        # A watcher that is notified may close itself or others.
        for on_change in tuple(log.watches.values()):
            on_change()

    # Watching.

    def watch(
        self, kind: str, version: int, on_change: Callable[[], None] | None = None
    ) -> Watch[V]:
        """Return a watch on the changes of a kind after a version, as from `list`.

        `on_change` is called at each change from now on; it must not write. Raises GoneError if
        changes since that version are no longer kept.
        """
        log = self._log(kind)
        log.check(version)
        watch = Watch(kind, version, log)
        if on_change is not None:
            log.watches[watch] = on_change
        return watch

    def compact_all(self) -> None:
        """Forget all changes so far, of every kind."""
        self._compacted = self._version
        for log in self._logs.values():
            log.forget(self._version)

    def _log(self, kind: str) -> _Log[V]:
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = _Log(self._changes_kept, self._compacted)
        return log


def _of_namespace(objects: Mapping[Key, V], namespace: str | None) -> tuple[V, ...]:
    return tuple(one for key, one in objects.items() if namespace in (None, key.namespace))
