"""QueueMove reports that a pod went from one part of the queue to another, and why.

Metrics count moves (`queue_incoming_pods_total` is one for every move into activeQ, backoffQ or
unschedulablePods), and a decision log writes them down.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec


class Place(Enum):
    """Where a pod is, as far as the queue knows; the values are upstream's metric labels."""

    # Members are compared by identity; Enum's own hash is that of their names, in Python.
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
        origin: Where it was.
        destination: Where it is now; equal to `origin` if an event took it out of
            unschedulablePods and a gate put it back.
        event: The label of what made it move.
        now: When, seconds.
        gating_plugin: The PreEnqueue plugin that holds it back, "" if none does.
    """

    pod: str
    origin: Place
    destination: Place
    event: str
    now: float
    gating_plugin: str = ""


MoveObserver = Callable[[QueueMove], None]
