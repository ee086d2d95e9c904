"""Informers keep the objects of each kind and pass every change to one event handler.

Upstream: staging/src/k8s.io/client-go/tools/cache/shared_informer.go, the_real_fifo.go,
          controller.go, informers/factory.go (v1.36)
Invariants: a handler that applies all events holds the objects that exist; the events of an object
            arrive in order, each once.
Differs:  no deletion is reported for an object whose addition was not; each informer has one
          handler, called on the event loop: an event that it cannot process ends the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import chain
from random import Random
from types import MappingProxyType
from typing import Final

from kubesched.api.meta import KubeObject, ResourceEventHandler
from kubesched.api.scheme import Kind
from kubesched.client.reflector import Listed, Reflector, WatchFailure
from kubesched.client.requests import Rest
from kubesched.client.watch_events import ADDED, DELETED, MODIFIED, WatchEvent

# Objects handled before the event loop runs other tasks: a few milliseconds.
_OBJECTS_AT_ONCE: Final = 64
_NONE: Final[dict[str, KubeObject]] = {}


class Informer:
    """Keeps the objects of one kind."""

    def __init__(
        self,
        rest: Rest,
        kind: Kind,
        handler: ResourceEventHandler,
        random: Random,
        field_selector: str = "",
    ) -> None:
        """Set up while a loop runs; `run` begins.

        The handler gets the events of the selected objects; `random` draws pauses and the lengths
        of watches.
        """
        self.kind = kind
        self._handler = handler
        self._items: Listed = {}
        self._synced = asyncio.Event()
        self._reflector = Reflector(rest, kind, self, random, field_selector)

    @property
    def has_synced(self) -> bool:
        """Whether the handler has received all objects of the first list."""
        return self._synced.is_set()

    @property
    def items(self) -> Iterator[KubeObject]:
        """The objects, to be read before the next event."""
        return _each(self._items)

    @property
    def failure(self) -> WatchFailure:
        """Why the objects cannot be read at present."""
        return self._reflector.failure

    async def run(self) -> None:
        """List and watch until cancelled."""
        await self._reflector.run()

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    # Called by the reflector.

    async def replace(self, items: Listed) -> None:
        """Report deletions, then additions and changes; yields to the event loop in between."""
        # Only the reflector changes the objects, and it waits for this to end.
        before = self._items
        for at, old in enumerate(_each(before)):
            metadata = old.metadata
            named = items.get(metadata.namespace, _NONE)
            if metadata.name in named:
                named[metadata.name] = _same_or_new(old, named[metadata.name])
            await _yield_now_and_then(at)
        self._items = items
        for at, old in enumerate(_each(before)):
            if old.metadata.name not in items.get(old.metadata.namespace, _NONE):
                self._handler.deleted(old, is_final_state_known=False)
            await _yield_now_and_then(at)
        for at, item in enumerate(_each(items)):
            metadata = item.metadata
            self._report(before.get(metadata.namespace, _NONE).get(metadata.name), item)
            await _yield_now_and_then(at)
        self._synced.set()

    def apply(self, event: WatchEvent[KubeObject]) -> None:
        """Report a watch event."""
        item = event.object
        named = self._items.setdefault(item.metadata.namespace, {})
        name = item.metadata.name
        if event.type in (ADDED, MODIFIED):
            old = named.get(name)
            named[name] = new = _same_or_new(old, item)
            self._report(old, new)
        elif event.type == DELETED:
            if named.pop(name, None) is not None:
                self._handler.deleted(item)
            if not named:
                del self._items[item.metadata.namespace]

    def _report(self, old: KubeObject | None, new: KubeObject) -> None:
        if old is None:
            self._handler.added(new)
        elif old is not new:
            self._handler.updated(old, new)


def _each(items: Listed) -> Iterator[KubeObject]:
    return chain.from_iterable(named.values() for named in items.values())


async def _yield_now_and_then(at: int) -> None:
    if at % _OBJECTS_AT_ONCE == _OBJECTS_AT_ONCE - 1:
        await asyncio.sleep(0)


def _same_or_new(old: KubeObject | None, new: KubeObject) -> KubeObject:
    """Return the old object if both have the same resource version, else the new one."""
    if old is not None and old.metadata.resource_version == new.metadata.resource_version:
        return old
    return new


class Informers:
    """One informer per kind; events of different kinds arrive in any order."""

    def __init__(self, rest: Rest, handler: ResourceEventHandler, random: Random) -> None:
        """Set up; `run` begins.

        The handler gets the events of all kinds; `random` draws pauses and the lengths of watches.
        """
        self._rest = rest
        self._handler = handler
        self._random = random
        self._informers: dict[str, Informer] = {}

    def add(self, kind: Kind, field_selector: str = "") -> None:
        """Add the informer of a kind."""
        name = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        self._informers[name] = Informer(
            self._rest, kind, self._handler, self._random, field_selector
        )

    @property
    def by_name(self) -> Mapping[str, Informer]:
        """The informers by name, such as `pods` and `replicasets.apps`."""
        return MappingProxyType(self._informers)

    @property
    def has_synced(self) -> bool:
        """Whether the handler has received all objects of the first list."""
        return all(informer.has_synced for informer in self._informers.values())

    async def run(self) -> None:
        """Run all informers until cancelled; an exception of a handler ends all."""
        async with asyncio.TaskGroup() as group:
            for name, informer in self._informers.items():
                group.create_task(informer.run(), name=f"informer of {name}")

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced`."""
        for informer in list(self._informers.values()):
            await informer.wait_for_sync()
