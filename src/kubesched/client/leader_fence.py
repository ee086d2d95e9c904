"""LeaderFence knows until when this process may act as the leader; it is checked before writes.

Candidates take over one lease duration after the last change that they observed. They cannot
observe a renewal before it was sent, so a leader is safe until the time of sending plus the lease
duration. A process that checks the fence before each write never writes beside the next leader,
even after it was stopped for a while (SIGSTOP, a paused virtual machine).

Upstream: none; leaderelection.go documents that it does no fencing (v1.36)
Differs:  all of it, for safety.
Invariants: of all candidates for one lock at most one fence holds, even if messages are lost or
            late, as long as clocks run at the same rate.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class LeaderFence:
    """One candidate's permission to act.

    Only the elector's thread writes it; any thread may read it.
    """

    def __init__(self) -> None:
        self._holds_until = float("-inf")
        self._second: datetime | None = None
        self._since = 0.0

    def holds(self, now: float) -> bool:
        """Whether this process may act as the leader.

        Args:
            now: Seconds on the elector's clock. Use `time.monotonic`, not the loop's time, which
                may be from before the process was stopped.
        """
        return now < self._holds_until

    @property
    def holds_until(self) -> float:
        """The end of the permission, in seconds on the elector's clock."""
        return self._holds_until

    def extend(self, sent: float, renew_time: datetime | None, duration_seconds: int) -> None:
        """Extend the permission after a record that names this process was written.

        kube-scheduler's candidates compare `renew_time` in whole seconds. A second renewal
        within the same second therefore counts from the first.

        Args:
            sent: A time before the write was sent.
            renew_time: The record's.
            duration_seconds: The record's lease duration.
        """
        second = None if renew_time is None else renew_time.replace(microsecond=0)
        if second is None or second != self._second:
            self._since = sent
            self._second = second
        self._holds_until = self._since + duration_seconds

    def drop(self) -> None:
        """End the permission."""
        self._holds_until = float("-inf")
        self._second = None


class ElectionStatistics(msgspec.Struct, frozen=True):
    """The metrics of one elector.

    Attributes:
        name: Of the lock, the metrics' label.
        master_status: 1 while it leads, else 0: leader_election_master_status.
        slowpath_total: Renewals that had to read the lock first: leader_election_slowpath_total.
    """

    name: str
    master_status: int
    slowpath_total: int
