"""QueueMove is a pod's move from one part of the queue to another.

Metrics count moves (`queue_incoming_pods_total` counts those into activeQ, backoffQ and
unschedulablePods), and the decision log lists them.
"""

from __future__ import annotations

from collections.abc import Callable
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
    """One move of one pod.

    Attributes:
        pod: `namespace/name`.
        origin: Where the pod was.
        destination: Where it is now; equal to `origin` if an event moved it out of
            unschedulablePods and a PreEnqueue plugin gated it again.
        event: The label of the event that moved it.
        now: Time of the move, in seconds.
        gating_plugin: The PreEnqueue plugin that gates it, "" if none.
    """

    pod: str
    origin: QueuePlace
    destination: QueuePlace
    event: str
    now: float
    gating_plugin: str = ""


MoveObserver = Callable[[QueueMove], None]
