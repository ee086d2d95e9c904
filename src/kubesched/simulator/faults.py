"""Faults: what goes wrong in a simulated cluster, how often, and how it is drawn.

Each kind of fault has its own stream of random numbers, so that one kind's share moves no other.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from kubesched.api.errors import ApiError, ConflictError
from kubesched.config.durations import DurationSeconds
from kubesched.simulator.random_streams import RandomStreams

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""How many of all cases, 0 to 1."""


class RequestFaults(msgspec.Struct, frozen=True, rename="camel"):
    """What happens to requests of one kind.

    Attributes:
        conflict: Share that is refused with 409.
        error: Share that is refused with 500.
        unanswered: Share that is carried out while the answer gets lost.
        slow: Share that takes longer.
        slow_by: How much longer, seconds.
    """

    conflict: Share = 0.0
    error: Share = 0.0
    unanswered: Share = 0.0
    slow: Share = 0.0
    slow_by: DurationSeconds = 1.0


class WatchFaults(msgspec.Struct, frozen=True, rename="camel"):
    """How the scheduler's watches break.

    Attributes:
        every: Mean seconds between two losses of a kind's watch; 0 for never.
        outage: How long nothing is heard then, seconds.
        expired: Share of losses after which the scheduler has to list everything again.
    """

    every: DurationSeconds = 0.0
    outage: DurationSeconds = 5.0
    expired: Share = 0.5


class ExtenderFaults(msgspec.Struct, frozen=True, rename="camel"):
    """What happens to the scheduler's questions to its extenders.

    Attributes:
        error: Share that is answered with 500.
        unanswered: Share that is never answered.
        slow: Share that takes longer.
        slow_by: How much longer, seconds.
        every: Mean seconds from the end of an outage to the next; 0 for none.
        outage: How long an extender refuses every connection then, seconds.
    """

    error: Share = 0.0
    unanswered: Share = 0.0
    slow: Share = 0.0
    slow_by: DurationSeconds = 1.0
    every: DurationSeconds = 0.0
    outage: DurationSeconds = 30.0


class FaultPlan(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that goes wrong by chance.

    Attributes:
        bind: Binding requests.
        status: Status patches.
        delete: Deletions, as preemption makes them.
        watch: The scheduler's watches.
        extender: The scheduler's extenders.
        deleted_while_binding: Share of pods that somebody deletes while they are being bound.
    """

    bind: RequestFaults = RequestFaults()
    status: RequestFaults = RequestFaults()
    delete: RequestFaults = RequestFaults()
    watch: WatchFaults = WatchFaults()
    extender: ExtenderFaults = ExtenderFaults()
    deleted_while_binding: Share = 0.0


NO_FAULTS = FaultPlan()


class RequestFate(msgspec.Struct, frozen=True):
    """What becomes of one request.

    Attributes:
        refusal: Refused with this, if not None.
        is_answered: Whether the answer arrives.
        extra_seconds: How much longer it takes.
    """

    refusal: ApiError | None = None
    is_answered: bool = True
    extra_seconds: float = 0.0


_FINE = RequestFate()


class RequestFaultDraws:
    """Draws the fate of requests of one kind."""

    def __init__(self, random_streams: RandomStreams, name: str, faults: RequestFaults) -> None:
        self._random = random_streams.stream(f"faults/{name}")
        self._faults = faults
        self._is_fine = not (faults.conflict or faults.error or faults.unanswered or faults.slow)

    def draw(self) -> RequestFate:
        """Return the next request's fate."""
        if self._is_fine:
            return _FINE
        faults = self._faults
        is_conflict, is_error, is_lost, is_slow = (
            self._random.random() < share
            for share in (faults.conflict, faults.error, faults.unanswered, faults.slow)
        )
        refusal: ApiError | None = None
        if is_conflict:
            refusal = ConflictError("simulated: the object has been modified")
        elif is_error:
            refusal = ApiError(500, "InternalError", "simulated: internal error")
        return RequestFate(refusal, not is_lost, faults.slow_by if is_slow else 0.0)
