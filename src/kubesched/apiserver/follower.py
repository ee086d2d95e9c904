"""Follower tells somebody in the process of every change to a kind, soon after it happened.

Upstream: none; there informers do this over the network.
Invariants: of each object the changes are told in their order; what is told first of an object has
            no state before, and the last has none after; who is told may write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesched.api.errors import GoneError
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.stored_object import StoredObject
from kubesched.cluster.store import Key, Store, Watch

Told = Callable[[Key, Plain | None, Plain | None], None]
"""Is told of a change: which object, its state before, and after; None where there is none."""

# So many changes are told at once at most, to let others have their turn.
_BATCH = 200


class Follower:
    """Follows one kind."""

    def __init__(self, store: Store[StoredObject], kind: str, told: Told) -> None:
        """Take what to follow.

        Args:
            store: Where objects are.
            kind: As the store names it.
            told: Is told of changes.
        """
        self._store = store
        self._kind = kind
        self._told = told
        self._known: dict[Key, Plain] = {}
        self._watch: Watch[StoredObject] | None = None
        self._is_due = False
        self._is_stopped = False

    def start(self) -> None:
        """Tell of what is there, and follow from now on."""
        listing = self._store.list(self._kind)
        self._watch = self._store.watch(self._kind, listing.version, self._wake)
        found = {_key(self._kind, stored): stored.plain for stored in listing.items}
        for key in [key for key in self._known if key not in found]:
            self._tell(key, None)
        for key, plain in found.items():
            self._tell(key, plain)

    def stop(self) -> None:
        """Tell nothing more; stopping twice is fine."""
        self._is_stopped = True
        if self._watch is not None:
            self._watch.close()

    def _wake(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._read)

    def _read(self) -> None:
        self._is_due = False
        if self._is_stopped:
            return
        assert self._watch is not None, "it has been started"
        try:
            changes = self._watch.read(_BATCH)
        except GoneError:
            self._watch.close()
            self.start()
            return
        for change in changes:
            is_gone = change.type.value == "DELETED"
            self._tell(change.key, None if is_gone else change.value.plain)
        if self._watch.has_changes:
            self._wake()

    def _tell(self, key: Key, plain: Plain | None) -> None:
        before = self._known.get(key)
        if before is not plain:
            if plain is None:
                del self._known[key]
            else:
                self._known[key] = plain
            self._told(key, before, plain)


def _key(kind: str, stored: StoredObject) -> Key:
    metadata = stored.plain["metadata"]
    return Key(kind, metadata.get("namespace", ""), metadata["name"])
