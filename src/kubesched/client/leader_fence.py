"""Until when this process may act as the leader, for every write to ask.

Candidates take over one lease duration after the last change they saw. They cannot have seen a
renewal before it was sent, so the time it was sent plus the lease duration is safe: whoever asks
the fence before each write never acts beside the next leader, even after having been stopped for a
while (SIGSTOP, a paused virtual machine) and before the elector itself has noticed.

Upstream: none; leaderelection.go says that it does no fencing (v1.36)
Differs:  all of it, for safety.
Invariants: of all candidates for one lock at most one fence holds, whatever gets lost or late,
            as long as clocks run at the same rate.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class LeaderFence:
    """One candidate's permission to act.

    It is written by the elector's thread alone, and may be asked by any.
    """

    def __init__(self) -> None:
        self._holds_until = float("-inf")
        self._second: datetime | None = None
        self._since = 0.0

    def holds(self, now: float) -> bool:
        """Whether this process may act as the leader.

        Args:
            now: The present moment of the elector's clock. Use `time.monotonic` and not a loop's
                own time, which may be older than the process' last stop.
        """
        return now < self._holds_until

    @property
    def holds_until(self) -> float:
        """The end of the permission as it is now known."""
        return self._holds_until

    def extend(self, sent: float, renew_time: datetime | None, duration_seconds: int) -> None:
        """Take note that a record that names this process has been written.

        kube-scheduler's candidates see changes of `renew_time` by whole seconds only. A second
        renewal in the same second therefore counts from the first.

        Args:
            sent: A moment before the write was sent.
            renew_time: What the record says.
            duration_seconds: The lease's, as the record says it.
        """
        second = None if renew_time is None else renew_time.replace(microsecond=0)
        if second is None or second != self._second:
            self._since = sent
            self._second = second
        self._holds_until = self._since + duration_seconds

    def drop(self) -> None:
        """Give the permission back."""
        self._holds_until = float("-inf")
        self._second = None


class ElectionStatistics(msgspec.Struct, frozen=True):
    """What metrics say of one elector.

    Attributes:
        name: Of the lock, the metrics' label.
        master_status: 1 while it leads, else 0: leader_election_master_status.
        slowpath_total: Renewals that had to read the lock first: leader_election_slowpath_total.
    """

    name: str
    master_status: int
    slowpath_total: int
