"""SimulatedInformer passes all objects of a kind to a handler, then every change, in order.

Each change arrives after a latency. A broken watch resumes where it stopped or, if the version has
expired, relists: objects that are gone are then deleted with an unknown final state.

Upstream: client-go's reflector and DeltaFIFO (v1.36)
Invariants: a handler that applies all calls ends with the current objects.
Differs:  changes within one latency arrive together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesched.api.core import Pod
from kubesched.api.errors import GoneError
from kubesched.api.event_handler import ResourceEventHandler
from kubesched.api.meta import KubeObject
from kubesched.api.pod import FINISHED
from kubesched.cluster.store import Change, ChangeType, Key, Store, Watch
from kubesched.simulator.object_server import key_of


def is_unfinished(item: KubeObject) -> bool:
    """Whether the scheduler's field selector matches an object: a pod that is not finished."""
    return not isinstance(item, Pod) or item.status.phase not in FINISHED


def is_anything(item: KubeObject) -> bool:
    """Match every object."""
    return True


class SimulatedInformer:
    """Lists and watches one kind.

    Attributes:
        kind: Its name in the store.
        known: The objects as last delivered to the handler.
        relists: Number of relists.
    """

    def __init__(
        self,
        store: Store[KubeObject],
        kind: str,
        handler: ResourceEventHandler,
        latency: Callable[[], float],
        selects: Callable[[KubeObject], bool] = is_anything,
    ) -> None:
        """Set up; `start` begins to deliver the selected objects and their changes to the handler.

        `latency` draws the seconds from a change to its delivery.
        """
        self.kind = kind
        self.known: dict[Key, KubeObject] = {}
        self.relists = 0
        self._store = store
        self._handler = handler
        self._latency = latency
        self._selects = selects
        self._watch: Watch[KubeObject] | None = None
        self._delivery: asyncio.TimerHandle | None = None

    @property
    def is_current(self) -> bool:
        """Whether every change was delivered."""
        return self._watch is not None and not self._watch.has_changes

    def start(self) -> None:
        """Deliver all objects now, and changes from now on."""
        self._relist()

    def lose(self, outage_seconds: float, *, expired: bool) -> None:
        """Break the watch; after the outage it resumes, with a new list if `expired`."""
        watch = self._watch
        if watch is None:
            return
        watch.close()
        self._watch = None
        if self._delivery is not None:
            self._delivery.cancel()
            self._delivery = None
        version = 0 if expired else watch.version
        asyncio.get_running_loop().call_later(outage_seconds, self._resume, version)

    def _resume(self, version: int) -> None:
        if version:
            try:
                self._follow(version)
            except GoneError:
                self._relist_again()
        else:
            self._relist_again()

    def _relist_again(self) -> None:
        self.relists += 1
        self._relist()

    def _follow(self, version: int) -> None:
        self._watch = self._store.watch(self.kind, version, self._on_change)
        if self._watch.has_changes:
            self._on_change()

    def _on_change(self) -> None:
        if self._delivery is None:
            loop = asyncio.get_running_loop()
            self._delivery = loop.call_later(self._latency(), self._deliver)

    def _deliver(self) -> None:
        self._delivery = None
        watch = self._watch
        assert watch is not None, "a delivery is cancelled with its watch"
        try:
            changes = watch.read()
        except GoneError:
            watch.close()
            self._relist_again()
            return
        for change in changes:
            self._deliver_change(change)

    def _deliver_change(self, change: Change[KubeObject]) -> None:
        old = self.known.get(change.key)
        if change.type is not ChangeType.DELETED and self._selects(change.value):
            self._deliver_state(change.key, old, change.value)
        elif old is not None:
            del self.known[change.key]
            self._handler.deleted(change.value)

    def _deliver_state(self, key: Key, old: KubeObject | None, new: KubeObject) -> None:
        self.known[key] = new
        if old is None:
            self._handler.added(new)
        else:
            self._handler.updated(old, new)

    def _relist(self) -> None:
        listing = self._store.list(self.kind)
        there = {key_of(item): item for item in listing.items if self._selects(item)}
        for key in [key for key in self.known if key not in there]:
            self._handler.deleted(self.known.pop(key), is_final_state_known=False)
        for key, item in there.items():
            old = self.known.get(key)
            if old is None or old.metadata.resource_version != item.metadata.resource_version:
                self._deliver_state(key, old, item)
        self._follow(listing.version)
