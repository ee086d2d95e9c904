"""The options of a scheduling queue.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, Option (v1.36)
Differs:  feature gates are options like the others; queueing hints, which 1.36 does not let users
          turn off, are always on.
"""

from __future__ import annotations

import msgspec


class QueueOptions(msgspec.Struct, frozen=True):
    """Backoff times and feature gates; the defaults are those of 1.36.

    Attributes:
        initial_backoff_seconds: Backoff after the first failure.
        max_backoff_seconds: The longest backoff; 0 means no backoff.
        max_in_unschedulable_pods_seconds: Time after which a pod is retried without any event.
        pops_from_backoff: Gate SchedulerPopFromBackoffQ: an idle scheduler pops rejected pods
            early.
        generic_workload: Gate GenericWorkload: members of pod groups are retried after backoff
            alone.
    """

    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    max_in_unschedulable_pods_seconds: float = 300.0
    pops_from_backoff: bool = True
    generic_workload: bool = False
