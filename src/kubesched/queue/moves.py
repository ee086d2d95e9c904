"""Moves of pods in the queue: the events of the queue itself, the labels, and the places.

Metrics count moves (`queue_incoming_pods_total` counts those into activeQ, backoffQ and
unschedulablePods).

Upstream: pkg/scheduler/framework/events.go (v1.36)
Differs:  leaving the queue has labels too, because moves are logged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import Final

import msgspec

from kubesched.framework.cluster_event import (
    ASSIGNED_POD,
    UNSCHEDULABLE_POD,
    WILDCARD,
    Action,
    ClusterEvent,
)

ASSIGNED_POD_ADD: Final = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE: Final = ClusterEvent(ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE)
UNSCHEDULED_POD_DELETE: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.DELETE)
UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(WILDCARD, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE: Final = ClusterEvent(WILDCARD, Action.ALL, "ForceActivate")

# Labels of moves without a cluster event.
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
POD_POPPED: Final = "PodPopped"
POD_DONE: Final = "Done"
POD_DISCARDED: Final = "Discarded"


class ClusterChange(msgspec.Struct, frozen=True):
    """A cluster event with the API object before (None if added) and after it (None if deleted)."""

    event: ClusterEvent
    old: object | None = None
    new: object | None = None


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
        followers: `namespace/name` of the pods that move with it, in order: equal ones, or others
            that the same plugin gates again. They may change after the observers have returned.
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
