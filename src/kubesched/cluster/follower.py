"""Follower reports every change to the objects of a kind, some time after it happened.

Upstream: staging/src/k8s.io/client-go/tools/cache/shared_informer.go (v1.36)
Invariants: the changes of an object are reported in their order; the first has no state before,
            the last has none after; the receiver may write.
Differs:  changes within one delay are reported together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from kubesched.api.errors import GoneError
from kubesched.cluster.server import OnChange
from kubesched.cluster.store import ChangeType, Key, Store, Watch

V = TypeVar("V")
T = TypeVar("T")

# The maximum number of changes reported at once, so that other tasks can run in between.
_BATCH = 200


class Follower(Generic[V, T]):
    """Watches one kind."""

    def __init__(
        self,
        store: Store[V],
        kind: str,
        on_change: OnChange[T],
        view: Callable[[V], T],
        delay_seconds: Callable[[], float] | None = None,
    ) -> None:
        """Set up; nothing happens before `start`.

        Args:
            store: Where objects are.
            kind: As the store names it.
            on_change: Receives changes.
            view: The form in which objects are reported.
            delay_seconds: From a change to its report; None for as soon as possible.
        """
        self._store = store
        self._kind = kind
        self._on_change = on_change
        self._view = view
        self._delay_seconds = delay_seconds
        self._known: dict[Key, T] = {}
        self._watch: Watch[V] | None = None
        self._is_due = False
        self._is_stopped = False

    def start(self) -> None:
        """Report all objects now, and changes from now on."""
        found = self._store.keyed(self._kind)
        self._watch = self._store.watch(self._kind, self._store.version, self._wake)
        for key in [key for key in self._known if key not in found]:
            self._report(key, None)
        for key, value in found.items():
            self._report(key, self._view(value))

    def stop(self) -> None:
        """Report nothing more; stopping twice is fine."""
        self._is_stopped = True
        if self._watch is not None:
            self._watch.close()

    def _wake(self) -> None:
        if not self._is_due:
            self._is_due = True
            loop = asyncio.get_running_loop()
            if self._delay_seconds is None:
                loop.call_soon(self._read)
            else:
                loop.call_later(self._delay_seconds(), self._read)

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
            is_gone = change.type is ChangeType.DELETED
            self._report(change.key, None if is_gone else self._view(change.value))
        if self._watch.has_changes and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._read)

    def _report(self, key: Key, after: T | None) -> None:
        before = self._known.get(key)
        if before is not after:
            if after is None:
                del self._known[key]
            else:
                self._known[key] = after
            self._on_change(key, before, after)
