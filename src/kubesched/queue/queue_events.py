"""The events and labels that the queue itself uses.

Upstream: pkg/scheduler/framework/events.go (v1.36)
Differs:  leaving the queue has labels too, because moves are logged.
"""

from __future__ import annotations

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
