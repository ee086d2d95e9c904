"""QueueMove is the move of a pod, or of equal pods together, from one part of the queue to another.

Metrics count moves (`queue_incoming_pods_total` counts those into activeQ, backoffQ and
unschedulablePods).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum

import msgspec


class QueuePlace(Enum):
    """Where a pod is; the values are upstream's metric labels where it has one."""

    # Identity is enough for a hash, and faster than Enum's own, which hashes the name in Python.
    __hash__ = object.__hash__

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"
    NOWHERE = ""


class QueueMove(msgspec.Struct, frozen=True):
    """One move of one pod, and of those that follow it.

    Attributes:
        pod: `namespace/name`.
        origin: Where the pod was.
        destination: Where it is now; equal to `origin` if an event moved it out of
            unschedulablePods and a PreEnqueue plugin gated it again.
        event: The label of the event that moved it.
        now: Time of the move, in seconds.
        gating_plugin: The PreEnqueue plugin that gates it, "" if none.
        followers: `namespace/name` of equal pods that move with it, in order. They may change
            after the observers have returned.
    """

    pod: str
    origin: QueuePlace
    destination: QueuePlace
    event: str
    now: float
    gating_plugin: str = ""
    followers: Collection[str] = ()

    @property
    def pods(self) -> int:
        """The number of pods that move."""
        return 1 + len(self.followers)


MoveObserver = Callable[[QueueMove], None]
