"""Latencies and injected faults of a simulated cluster, and the random sources that draw them.

Invariants: a random stream depends only on the seed and its name, so drawing from one does not
            affect the others; streams are the same on every machine and under any PYTHONHASHSEED.
            Each kind of fault has a stream of its own.
"""

from __future__ import annotations

from random import Random
from typing import Annotated

import msgspec

from kubesched.config.decoding import DurationSeconds


class RandomStreams:
    """Creates streams by name from one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, Random] = {}

    def stream(self, concern: str) -> Random:
        """Return the stream of a concern; later calls return the same object."""
        found = self._streams.get(concern)
        if found is None:
            # Text is hashed with SHA-512 by `Random`, never with Python's own hash.
            found = self._streams[concern] = Random(f"{self.seed}/{concern}")
        return found


class Latencies(msgspec.Struct, frozen=True, rename="camel"):
    """Latencies; each that is drawn is between 0.5 and 1.5 times the value.

    Attributes:
        request: Round trip of a request to the API server.
        watch: Maximum delay between a write and its watch event.
        pod_start: From a pod's binding until it runs.
        pod_stop: From a pod's deletion until it has ended; limited by its grace period.
        controller: From a change until a controller reacts.
        node_failure_detection: From a node's last heartbeat until it is tainted.
        pod_garbage_collection: From a node's deletion until its pods are deleted.
    """

    request: DurationSeconds = 0.004
    watch: DurationSeconds = 0.01
    pod_start: DurationSeconds = 2.0
    pod_stop: DurationSeconds = 1.0
    controller: DurationSeconds = 0.1
    node_failure_detection: DurationSeconds = 40.0
    pod_garbage_collection: DurationSeconds = 40.0


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A share of all cases, 0 to 1."""


class RequestFaults(msgspec.Struct, frozen=True, rename="camel"):
    """Faults of the scheduler's requests of one kind; shares are between 0 and 1.

    Attributes:
        conflict: Share that is refused with 409.
        error: Share that is refused with 500.
        unanswered: Share that is carried out but whose response is lost.
        slow: Share that is delayed.
        slow_by: The delay.
    """

    conflict: Share = 0.0
    error: Share = 0.0
    unanswered: Share = 0.0
    slow: Share = 0.0
    slow_by: DurationSeconds = 1.0


class WatchFaults(msgspec.Struct, frozen=True, rename="camel"):
    """Faults of the scheduler's watches.

    Attributes:
        every: Mean time between two losses of a kind's watch; 0s for never.
        outage: Time without watch events after a loss.
        expired: Share of losses after which the scheduler has to relist.
    """

    every: DurationSeconds = 0.0
    outage: DurationSeconds = 5.0
    expired: Share = 0.5


class ExtenderFaults(msgspec.Struct, frozen=True, rename="camel"):
    """Faults of the scheduler's calls to its extenders; shares are between 0 and 1.

    Attributes:
        error: Share that is answered with 500.
        unanswered: Share that is never answered.
        slow: Share that is delayed.
        slow_by: The delay.
        every: Mean time from the end of an outage to the next; 0s for none.
        outage: Time for which an extender then refuses connections.
    """

    error: Share = 0.0
    unanswered: Share = 0.0
    slow: Share = 0.0
    slow_by: DurationSeconds = 1.0
    every: DurationSeconds = 0.0
    outage: DurationSeconds = 30.0


class FaultPlan(msgspec.Struct, frozen=True, rename="camel"):
    """All injected faults.

    Attributes:
        bind: Faults of Binding requests.
        status: Faults of status patches.
        delete: Faults of deletions by preemption.
        watch: Faults of the scheduler's watches.
        extender: Faults of the scheduler's extenders.
        deleted_while_binding: Share of pods that are deleted while they are being bound.
    """

    bind: RequestFaults = RequestFaults()
    status: RequestFaults = RequestFaults()
    delete: RequestFaults = RequestFaults()
    watch: WatchFaults = WatchFaults()
    extender: ExtenderFaults = ExtenderFaults()
    deleted_while_binding: Share = 0.0


NO_FAULTS = FaultPlan()
