"""How a queue behaves, and what it has to know of each profile.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, Option (v1.36)
Differs:  feature gates are options like the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kubesched.queue.gates import PreEnqueue
from kubesched.queue.registrations import Registration


class QueueOptions(msgspec.Struct, frozen=True):
    """How the queue behaves; the defaults are those of 1.36.

    Attributes:
        initial_backoff_seconds: Backoff after the first failure.
        max_backoff_seconds: The longest backoff; 0 means none.
        max_in_unschedulable_pods_seconds: After how long a pod is tried without any event.
        pops_from_backoff: Gate SchedulerPopFromBackoffQ.
        queueing_hints: Gate SchedulerQueueingHints, which 1.36 does not let one turn off. Without
            it any registered event moves a pod, nothing is remembered of what happens in flight,
            and a pod is backed off if a move came in or after its cycle.
        generic_workload: Gate GenericWorkload: members of pod groups go by backoff alone.
    """

    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    max_in_unschedulable_pods_seconds: float = 300.0
    pops_from_backoff: bool = True
    queueing_hints: bool = True
    generic_workload: bool = False


class ProfileRules(msgspec.Struct, frozen=True):
    """What the queue has to know of a profile.

    Attributes:
        pre_enqueue: PreEnqueue plugin -> what asks it, in the order of asking.
        registrations: What the profile's plugins registered (`registrations_of`).
    """

    pre_enqueue: Mapping[str, PreEnqueue] = {}
    registrations: Sequence[Registration] = ()
