"""LeaderElector takes part in an election: it acquires a lock, renews it and releases it.

A process whose main loop may be busy for seconds runs the elector in a thread of its own, with its
own event loop and connection, so that it keeps renewing during a long scheduling cycle:

    def elect() -> None:
        asyncio.run(elector.run(on_started_leading))

    threading.Thread(target=elect).start()

The callback then runs in that thread (pass it on with `loop.call_soon_threadsafe`), and `stop` must
be called with `elector_loop.call_soon_threadsafe(elector.stop)`. `fence`, `is_leader`, `leader`,
`health_error` and `statistics` may be used from any thread.

LeaderFence holds as long as the process may act as the leader. Other candidates take over one lease
duration after the last renewal that they observed, and they observe it after it was sent. So a
leader is safe until the time of sending plus the lease duration. A process that checks the fence
before each write never writes after a successor has taken over, even if the process was stopped for
a while (SIGSTOP, a paused virtual machine).

Upstream: staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go, healthzadaptor.go
          (v1.36)
Invariants: of all candidates for one lock at most one fence holds, even if messages are lost or
            late, as long as clocks run at the same rate.
Differs:  upstream does no fencing: here a leader's permission to act expires, and ends before the
          lock is released; a lock that another candidate holds is not released; coordinated
          election is not supported.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final

import msgspec

from kubesched.api.errors import ApiError, NotFoundError
from kubesched.client.resource_locks import ElectionRecord, LockError, ResourceLock


class LeaderFence:
    """One candidate's permission to act.

    Only the elector's thread writes it; any thread may read it. `holds_until` is the end of the
    permission, in seconds on the elector's clock.
    """

    def __init__(self) -> None:
        self.holds_until = -math.inf
        self._second: datetime | None = None
        self._since = 0.0

    def holds(self, now: float) -> bool:
        """Whether this process may act as the leader; `now` is in seconds on the elector's clock.

        Use `time.monotonic`, not the loop's time, which may be from before the process was stopped.
        """
        return now < self.holds_until

    def extend(self, sent: float, renew_time: datetime | None, duration_seconds: int) -> None:
        """Extend the permission after a record that names this process was written.

        `sent` is a time before the write was sent; the others are the record's. kube-scheduler's
        candidates compare `renew_time` in whole seconds. A second renewal within the same second
        therefore counts from the first.
        """
        second = None if renew_time is None else renew_time.replace(microsecond=0)
        if second is None or second != self._second:
            self._since = sent
            self._second = second
        self.holds_until = self._since + duration_seconds

    def drop(self) -> None:
        """End the permission."""
        self.holds_until = -math.inf
        self._second = None


class ElectionStatistics(msgspec.Struct):
    """The metrics of one elector.

    Attributes:
        name: Of the lock, the metrics' label.
        master_status: 1 while it leads, else 0: leader_election_master_status.
        slowpath_total: Renewals that had to read the lock first: leader_election_slowpath_total.
    """

    name: str
    master_status: int = 0
    slowpath_total: int = 0


# The election.

_JITTER_FACTOR: Final = 1.2
_RELEASED_SECONDS: Final = 1
_HEALTH_TOLERANCE_SECONDS: Final = 20.0
_CLIENT_TIMEOUT_SECONDS_MIN: Final = 1.0

_log: Final = logging.getLogger(__name__)


class ElectionTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The durations of an election.

    Attributes:
        lease_duration_seconds: How long candidates wait after the last change they see.
        renew_deadline_seconds: How long a leader tries to renew before it gives up.
        retry_period_seconds: Between two attempts.
    """

    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0

    def check(self) -> None:
        """Raise ValueError if a leader could not renew in time."""
        if self.lease_duration_seconds <= self.renew_deadline_seconds:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline_seconds <= _JITTER_FACTOR * self.retry_period_seconds:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        for name, seconds in (
            ("leaseDuration", self.lease_duration_seconds),
            ("renewDeadline", self.renew_deadline_seconds),
            ("retryPeriod", self.retry_period_seconds),
        ):
            if seconds < 1e-9:
                raise ValueError(f"{name} must be greater than zero")

    @property
    def client_timeout_seconds(self) -> float:
        """The limit for each request to the lock."""
        return max(_CLIENT_TIMEOUT_SECONDS_MIN, self.renew_deadline_seconds / 2)


class LeaderElector:
    """One candidate for one lock.

    Attributes:
        fence: Must be checked before every write that only the leader may do.
        statistics: The values of the election's metrics.
    """

    def __init__(
        self,
        lock: ResourceLock,
        timing: ElectionTiming,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], datetime],
        random: Callable[[], float],
        name: str = "kube-scheduler",
    ) -> None:
        """Set up; raises ValueError if the durations are invalid, or the lock has no identity.

        `clock` is monotonic, in seconds, and also runs while the process is stopped, as
        `time.monotonic`; `wall_clock` returns the current time with a time zone; `random` returns
        numbers in [0, 1), to spread the attempts of candidates; `name` is the label of metrics.
        """
        timing.check()
        if not lock.identity:
            raise ValueError("Lock identity is empty")
        self.fence = LeaderFence()
        self._lock = lock
        self._timing = timing
        self._clock = clock
        self._wall_clock = wall_clock
        self._random = random
        self.statistics = ElectionStatistics(name)
        self._stop = asyncio.Event()
        self._observed = ElectionRecord()
        self._observed_raw = b""
        self._observed_at = -math.inf
        self._reported_leader = ""

    @property
    def leader(self) -> str:
        """The identity of the last leader seen, "" for none."""
        return self._observed.holder_identity

    @property
    def is_leader(self) -> bool:
        """Whether this process is the last leader observed; its lease may have expired."""
        return self._observed.holder_identity == self._lock.identity

    def health_error(self) -> str:
        """Return why this process should be restarted, "" if it is healthy.

        The check is named `leaderElection`. A leader that cannot renew exits; one that does not
        exit is stuck.
        """
        limit = self._timing.lease_duration_seconds + _HEALTH_TOLERANCE_SECONDS
        if self.is_leader and self._clock() - self._observed_at > limit:
            return f"failed election to renew leadership on lease {self.statistics.name}"
        return ""

    def stop(self) -> None:
        """End `run`: release the lock and return."""
        self._stop.set()

    async def run(self, on_started_leading: Callable[[], None]) -> None:
        """Acquire the lock, lead, and return when the lead is lost; cancelling is like `stop`.

        `on_started_leading` is called once, when the lock has been acquired, and must be quick.
        When this returns the process must exit: work that it began as the leader may still be
        under way.
        """
        if await self._unless_stopped(self._acquire()):
            try:
                on_started_leading()
                await self._unless_stopped(self._renew())
            finally:
                await self._resign()

    async def _unless_stopped(self, work: Coroutine[Any, Any, bool]) -> bool:
        """Return the result of the work, False if `stop` was called first."""
        tasks = (asyncio.ensure_future(work), asyncio.ensure_future(self._stop.wait()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return not tasks[0].cancelled() and tasks[0].result()

    async def _acquire(self) -> bool:
        self._write(logging.INFO, "Attempting to acquire leader lease...")
        while True:
            has_acquired = await self._try_acquire_or_renew()
            self._report_transition()
            if has_acquired:
                break
            self._write(logging.DEBUG, "Failed to acquire lease")
            jitter = 1.0 + self._random() * _JITTER_FACTOR
            await asyncio.sleep(self._timing.retry_period_seconds * jitter)
        self._lock.record_event("became leader")
        self.statistics.master_status = 1
        self._write(logging.INFO, "Successfully acquired lease")
        return True

    async def _renew(self) -> bool:
        """Renew until no attempt succeeds within the deadline."""
        while True:
            if not await self._renew_within_deadline():
                self._write(logging.INFO, "Failed to renew lease")
                return False
            await asyncio.sleep(self._timing.retry_period_seconds)

    async def _renew_within_deadline(self) -> bool:
        period = self._timing.retry_period_seconds
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            async with asyncio.timeout_at(start + self._timing.renew_deadline_seconds):
                while True:
                    asked = loop.time()
                    if await self._try_acquire_or_renew():
                        return True
                    # After a slow attempt the next tick comes at once, as with Go's tickers.
                    tick = start + (math.floor((asked - start) / period) + 1) * period
                    await asyncio.sleep(max(0.0, tick - loop.time()))
        except TimeoutError:
            return False
        finally:
            self._report_transition()

    async def _resign(self) -> None:
        self.fence.drop()
        self.statistics.master_status = 0
        await self._release()
        self._lock.record_event("stopped leading")

    async def _try_acquire_or_renew(self) -> bool:
        """Try once to acquire or renew the lock; return whether this process leads."""
        now = self._clock()
        written_at = self._wall_clock()
        mine = ElectionRecord(
            holder_identity=self._lock.identity,
            lease_duration_seconds=int(self._timing.lease_duration_seconds),
            renew_time=written_at,
            acquire_time=written_at,
        )
        try:
            if self.is_leader and self._is_lease_valid(now) and await self._renew_at_once(mine):
                return True
            return await self._acquire_or_renew_after_reading(mine, now)
        except (ApiError, LockError) as error:
            self._write(logging.ERROR, "Failed to read or write lease", err=str(error))
            return False

    async def _renew_at_once(self, mine: ElectionRecord) -> bool:
        """Write without reading first, which succeeds if no other candidate has written."""
        sent = self._clock()
        record = _continued(mine, self._observed)
        try:
            await self._lock.update(record)
        except (ApiError, LockError) as error:
            words = "Failed to update lease optimistically, falling back to slow path"
            self._write(logging.INFO, words, err=str(error))
            return False
        self._keep(record, sent)
        return True

    async def _acquire_or_renew_after_reading(self, mine: ElectionRecord, now: float) -> bool:
        try:
            found, raw = await self._lock.get()
        except NotFoundError:
            sent = self._clock()
            await self._lock.create(mine)
            self._keep(mine, sent)
            return True
        if raw != self._observed_raw:
            self._observe(found)
            self._observed_raw = raw
        if found.holder_identity and self._is_lease_valid(now) and not self.is_leader:
            words = "Lease is held and has not yet expired"
            self._write(logging.DEBUG, words, holder=found.holder_identity)
            return False
        if self.is_leader:
            mine = _continued(mine, found)
            self.statistics.slowpath_total += 1
        else:
            transitions = found.leader_transitions + 1
            mine = msgspec.structs.replace(mine, leader_transitions=transitions)
        sent = self._clock()
        await self._lock.update(mine)
        self._keep(mine, sent)
        return True

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(self._timing.renew_deadline_seconds):
                found, _ = await self._lock.get()
                if not self.is_leader or found.holder_identity != self._lock.identity:
                    return
                now = self._wall_clock()
                released = ElectionRecord(
                    leader_transitions=found.leader_transitions,
                    lease_duration_seconds=_RELEASED_SECONDS,
                    renew_time=now,
                    acquire_time=now,
                )
                await self._lock.update(released)
                self._observe(released)
        except (ApiError, LockError, TimeoutError) as error:
            problem = str(error) or "no answer in time"
            self._write(logging.ERROR, "Failed to release lease", err=problem)

    def _is_lease_valid(self, now: float) -> bool:
        return self._observed_at + self._observed.lease_duration_seconds > now

    def _keep(self, record: ElectionRecord, sent: float) -> None:
        """Note that this process has written a record that names it."""
        self._observe(record)
        self.fence.extend(sent, record.renew_time, record.lease_duration_seconds)

    def _observe(self, record: ElectionRecord) -> None:
        self._observed = record
        self._observed_at = self._clock()

    def _report_transition(self) -> None:
        if self.leader != self._reported_leader:
            self._reported_leader = self.leader
            _log.info("New leader elected: %s", self.leader)

    def _write(self, level: int, message: str, **fields: str) -> None:
        """Write a structured line; handlers read the attribute `fields` of its record."""
        fields = {"lock": self._lock.description, **fields}
        _log.log(level, message, extra={"fields": fields}, stacklevel=2)


def _continued(mine: ElectionRecord, term: ElectionRecord) -> ElectionRecord:
    """Return the record for the next renewal within a term."""
    return msgspec.structs.replace(
        mine, acquire_time=term.acquire_time, leader_transitions=term.leader_transitions
    )
