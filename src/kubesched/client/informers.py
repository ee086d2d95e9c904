"""Informers follow several kinds for one handler.

Upstream: staging/src/k8s.io/client-go/informers/factory.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from types import MappingProxyType

from kubesched.api.scheme import Kind
from kubesched.client.informer import Handler, Informer
from kubesched.client.requests import Rest
from kubesched.client.selection import EVERYTHING, Selection


class Informers:
    """One informer per kind; objects of different kinds are told of in any order."""

    def __init__(self, rest: Rest, handler: Handler, random: Random) -> None:
        """Set up; `run` begins.

        Args:
            rest: Sends the requests.
            handler: Is told of the objects of all kinds.
            random: Draws pauses and the lengths of watches.
        """
        self._rest = rest
        self._handler = handler
        self._random = random
        self._informers: dict[str, Informer] = {}

    def add(self, kind: Kind, selection: Selection = EVERYTHING) -> Informer:
        """Return the informer of a kind, which is made if there is none yet."""
        name = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        informer = self._informers.get(name)
        if informer is None:
            informer = Informer(self._rest, kind, self._handler, self._random, selection)
            self._informers[name] = informer
        return informer

    @property
    def by_name(self) -> Mapping[str, Informer]:
        """The informers by name, such as `pods` and `replicasets.apps`."""
        return MappingProxyType(self._informers)

    @property
    def has_synced(self) -> bool:
        """Whether the handler has been told of all the objects there were at the beginning."""
        return all(informer.has_synced for informer in self._informers.values())

    async def run(self) -> None:
        """Follow for ever; what a handler raises ends it."""
        async with asyncio.TaskGroup() as group:
            for name, informer in self._informers.items():
                group.create_task(informer.run(), name=f"informer of {name}")

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced`."""
        for informer in list(self._informers.values()):
            await informer.wait_for_sync()
