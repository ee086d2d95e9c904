"""QueueStatistics tells how many pods wait, and where; metrics are read from it."""

from __future__ import annotations

import msgspec


class QueueStatistics(msgspec.Struct, frozen=True):
    """Counts at one moment.

    Attributes:
        active, backoff: Pods there.
        unschedulable: Pods in unschedulablePods that no plugin gates.
        gated: Pods in unschedulablePods that a plugin gates.
        in_flight: Pods that have been popped and are not done.
        in_flight_events: Event label and count, sorted; pods in flight count as `PodPopped`.
        unschedulable_plugins: Plugin, profile and how many waiting pods it rejected, sorted.
        scheduling_cycle: How many pods have been popped so far.
    """

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: tuple[tuple[str, int], ...]
    unschedulable_plugins: tuple[tuple[str, str, int], ...]
    scheduling_cycle: int
