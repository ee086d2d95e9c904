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
from kubesched.cluster.server import Follower
from kubesched.cluster.store import Key, Store


def _selected(item: KubeObject) -> KubeObject | None:
    """Return what the scheduler's field selector matches: no pods that have finished."""
    return None if isinstance(item, Pod) and item.status.phase in FINISHED else item


class SimulatedInformer(Follower[KubeObject, KubeObject]):
    """Lists and watches one kind."""

    def __init__(
        self,
        store: Store[KubeObject],
        kind: str,
        handler: ResourceEventHandler,
        latency: Callable[[], float],
    ) -> None:
        """Set up; `start` begins to deliver objects and their changes to the handler.

        `latency` draws the seconds from a change to its delivery.
        """
        super().__init__(store, kind, self._deliver, _selected, latency, at_once=None)
        self._handler = handler

    @property
    def is_current(self) -> bool:
        """Whether every change was delivered."""
        return self._watch is not None and not self._watch.has_changes

    def lose(self, outage_seconds: float, *, expired: bool) -> None:
        """Break the watch; after the outage it resumes, with a new list if `expired`."""
        if self._watch is not None:
            version = 0 if expired else self._watch.version
            self.stop()
            asyncio.get_running_loop().call_later(outage_seconds, self._resume, version)

    def _resume(self, version: int) -> None:
        try:
            if version:
                self._follow(version)
        except GoneError:
            version = 0
        if not version:
            self._list_again()

    def _deliver(self, _key: Key, before: KubeObject | None, after: KubeObject | None) -> None:
        if after is None:
            assert before is not None, "what is gone was there"
            is_known = self.newest is not None
            self._handler.deleted(self.newest or before, is_final_state_known=is_known)
        elif before is None:
            self._handler.added(after)
        else:
            self._handler.updated(before, after)
