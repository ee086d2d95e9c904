from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kubesched.client.leader_election import ElectionTiming, LeaderElector
from kubesched.client.resource_locks import (
    ANNOTATION,
    ElectionRecord,
    LeaseLock,
    ResourceLock,
    annotation_of,
    new_lock,
    record_of_annotation,
)
from kubesched.simulator.virtual_loop import run

from .lock_server import FaultyRest, LockServer, Plain

_START = datetime(2024, 5, 1, 10, tzinfo=UTC)
_DEFAULT = ElectionTiming()
_QUICK = ElectionTiming(
    lease_duration_seconds=3, renew_deadline_seconds=2, retry_period_seconds=0.5
)


class SecondsLock(LeaseLock):
    """A lock that sees changes by whole seconds, as kube-scheduler's candidates do."""

    async def get(self) -> tuple[ElectionRecord, bytes]:
        """Return a text of whole seconds."""
        record, _ = await super().get()
        return record, annotation_of(record).encode()


def _new_lock(kind: str, rest: FaultyRest, identity: str) -> ResourceLock:
    if kind == "leases by seconds":
        return SecondsLock(rest, "kube-system", "kube-scheduler", identity)
    return new_lock(kind, rest, "kube-system", "kube-scheduler", identity, allows_removed=True)


class Replica:
    """A candidate that is restarted with a new name whenever it ends."""

    def __init__(self, election: Election, number: int) -> None:
        self._election = election
        self._random = random.Random(election.random.random())
        self.number = number
        self.starts = 0
        # Wall clocks differ.
        self.skew_seconds = self._random.uniform(-100, 100)
        self.rest = self._new_rest()
        self.elector: LeaderElector | None = None
        self.task = asyncio.create_task(self._live())

    def _new_rest(self) -> FaultyRest:
        timeout_seconds = self._election.timing.client_timeout_seconds
        return FaultyRest(self._election.server, self._random, timeout_seconds=timeout_seconds)

    def _wall_clock(self) -> datetime:
        seconds = asyncio.get_running_loop().time() + self.skew_seconds
        return _START + timedelta(seconds=seconds)

    async def _live(self) -> None:
        while True:
            self.starts += 1
            kind = self._random.choice(self._election.kinds)
            self.elector = LeaderElector(
                _new_lock(kind, self.rest, f"r{self.number}-{self.starts}"),
                self._election.timing,
                clock=asyncio.get_running_loop().time,
                wall_clock=self._wall_clock,
                random=self._random.random,
            )
            await self.elector.run(lambda: None)
            await asyncio.sleep(1)

    def leads(self, now: float) -> bool:
        """Whether this process may act."""
        return self.elector is not None and self.elector.fence.holds(now)

    def stop(self) -> None:
        """Stop the elector."""
        if self.elector is not None:
            self.elector.stop()

    async def freeze(self) -> None:
        """Stop for ever without releasing the lock; what was sent still arrives.

        If a real process went on, its work could ask the fence before the elector does anything. So
        the end of the last permission counts.
        """
        if self.elector is not None:
            self._election.frozen.append(self.elector.fence.holds_until)
        self.elector = None
        self.rest.is_stopped = True
        self.rest = self._new_rest()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.task = asyncio.create_task(self._live())


class Election:
    """Replicas, their server, and their faults."""

    def __init__(self, seed: int, timing: ElectionTiming, kinds: list[str]) -> None:
        self.random = random.Random(seed)
        self.loop = asyncio.get_running_loop()
        self.timing = timing
        self.kinds = kinds
        self.frozen: list[float] = []
        self.server = LockServer()
        self.replicas = [Replica(self, number) for number in range(self.random.choice([2, 3]))]

    async def disturb(self) -> None:
        """Change the faults or the clock of one replica, stop it or freeze it."""
        replica = self.random.choice(self.replicas)
        events: list[Callable[[], object]] = [
            lambda: setattr(replica.rest, "is_cut", not replica.rest.is_cut),
            lambda: setattr(replica.rest, "fault_share", self.random.choice([0, 0.2, 0.9])),
            lambda: setattr(replica.rest, "delay_seconds_max", self.random.choice([0, 0.1, 4])),
            lambda: setattr(replica, "skew_seconds", self.random.uniform(-100, 100)),
            replica.stop,
            lambda: None,
        ]
        chosen = self.random.randrange(len(events))
        if chosen == len(events) - 1:
            await replica.freeze()
        else:
            events[chosen]()
        await asyncio.sleep(self.random.choice([0.01, 1, 5, 20]) * self.random.random())

    def heal(self) -> None:
        """End all faults."""
        for replica in self.replicas:
            replica.rest.is_cut = False
            replica.rest.fault_share = 0
            replica.rest.delay_seconds_max = 0

    def check(self) -> None:
        """At most one may act."""
        now = self.loop.time()
        self.frozen = [end for end in self.frozen if now < end]
        leaders = [replica.number for replica in self.replicas if replica.leads(now)]
        assert len(leaders) + len(self.frozen) <= 1, (leaders, self.frozen)

    async def end(self) -> None:
        """Stop all replicas."""
        for replica in self.replicas:
            replica.task.cancel()
        await asyncio.gather(*(r.task for r in self.replicas), return_exceptions=True)


def _check_transitions(history: list[tuple[float, str, Plain]]) -> None:
    """The count grows by one whenever another holder than the last one takes the lock."""
    last, count = "", -1
    for _, path, content in history:
        record = _record(path, content)
        if record.holder_identity not in {"", last}:
            last = record.holder_identity
            count += 1
        assert count == record.leader_transitions


def _record(path: str, content: Plain) -> ElectionRecord:
    if path.endswith("/leases/kube-scheduler"):
        spec = content["spec"]
        return ElectionRecord(
            holder_identity=spec["holderIdentity"], leader_transitions=spec["leaseTransitions"]
        )
    return record_of_annotation(content["metadata"]["annotations"][ANNOTATION])


def _play(seed: int, timing: ElectionTiming, kinds: list[str]) -> None:
    elections: list[Election] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        election = Election(seed, timing, kinds)
        elections.append(election)
        while loop.time() < 120 * timing.retry_period_seconds:
            await election.disturb()
        election.heal()
        await asyncio.sleep(1.5 * timing.lease_duration_seconds + 3 * timing.retry_period_seconds)
        leaders = [replica for replica in election.replicas if replica.leads(loop.time())]
        assert 1 == len(leaders)
        starts = leaders[0].starts
        await asyncio.sleep(3 * timing.lease_duration_seconds)
        assert leaders[0].leads(loop.time())
        assert starts == leaders[0].starts
        await election.end()
        if len(kinds) == 1 and not kinds[0].endswith("sleases"):
            _check_transitions(election.server.history)

    run(main(), on_idle=lambda: elections[0].check() if elections else None)


@pytest.mark.slow
@pytest.mark.parametrize("timing", [_DEFAULT, _QUICK], ids=["default", "quick"])
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(["leases"], id="leases"),
        pytest.param(["leases by seconds"], id="upstream"),
        pytest.param(["leases", "leases by seconds"], id="beside upstream"),
        pytest.param(["endpoints"], id="endpoints"),
        pytest.param(["configmaps"], id="configmaps"),
        pytest.param(["endpointsleases"], id="endpointsleases"),
        pytest.param(["configmapsleases", "configmaps"], id="migrating"),
    ],
)
def test_one_leader_with_any_faults(timing: ElectionTiming, kinds: list[str]) -> None:
    """At most one candidate may act at any time, and soon after the faults one does."""
    for seed in range(6):
        _play(seed, timing, kinds)
