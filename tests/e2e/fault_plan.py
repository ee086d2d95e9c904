"""Seeded plans of failures, and their injection."""

from __future__ import annotations

import asyncio
import signal
from random import Random
from typing import Final

import msgspec

from .faulty_front import FaultyFront, Network
from .harness import Harness
from .recording_server import RequestFault
from .replica import Lease, Replica

_KINDS: Final = {
    "kill": 4,
    "terminate": 3,
    "freeze": 5,
    "restart server": 3,
    "crash server": 3,
    "refuse": 3,
    "silence": 4,
    "silence all": 1,
    "delay": 2,
    "reset": 2,
    "requests": 7,
}
_TARGETS: Final = ("leader", "leader", "leader", "follower")
_EFFECTS: Final = ("409", "429", "429", "500", "503", "hang", "lost", "lost")
_REQUESTS: Final = ("leases", "leases", "bindings", "bindings", "writes", "reads", "all")


class Fault(msgspec.Struct, frozen=True):
    """One failure.

    Attributes:
        at_seconds: When it begins, counted from the beginning of the plan.
        kind: One of `_KINDS`.
        target: The replica that it affects, if it is one: the `leader` or `follower` at that time.
        seconds: How long it lasts.
        requests: The requests that fail, if that is the kind.
        delay_seconds: The delay of each chunk of bytes, if that is the kind.
    """

    at_seconds: float
    kind: str
    target: str
    seconds: float
    requests: RequestFault | None = None
    delay_seconds: float = 0.0

    def __str__(self) -> str:
        words = [f"{self.at_seconds:5.2f} s: {self.kind}"]
        failing = self.requests
        if failing is not None:
            words.append(f"{failing.effect} for {failing.share:.0%} of {failing.requests}")
        else:
            words.append(self.target)
        return f"{', '.join(words)}, for {self.seconds:.2f} s"


def plan(random: Random, lease: Lease, seconds: float) -> list[Fault]:
    """Return the failures of so many seconds, in order of time."""
    times = sorted(random.uniform(0.0, seconds) for _ in range(random.randint(2, 6)))
    return [_fault(random, lease, at) for at in times]


def _fault(random: Random, lease: Lease, at_seconds: float) -> Fault:
    kind = random.choices(list(_KINDS), list(_KINDS.values()))[0]
    # Shorter than the lease as well as longer.
    seconds = random.uniform(0.1, 1.8) * lease.duration_seconds
    requests = _failing_requests(random) if kind == "requests" else None
    # What arrives late must not outlive the rest of a lease that its sender no longer renews.
    slack = lease.duration_seconds - lease.renew_deadline_seconds
    delay = random.uniform(0.0, slack / 4) if kind == "delay" else 0.0
    return Fault(at_seconds, kind, random.choice(_TARGETS), seconds, requests, delay)


def _failing_requests(random: Random) -> RequestFault:
    effect = random.choice(_EFFECTS)
    retry = random.choice((None, 0, 1)) if effect in {"429", "503"} else None
    requests, share = random.choice(_REQUESTS), random.choice((0.2, 0.5, 1.0))
    return RequestFault(effect, requests, share, retry)


async def apply(faults: list[Fault], harness: Harness) -> None:
    """Inject each failure at its time; return when all are over."""
    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for fault in faults:
            await asyncio.sleep(began + fault.at_seconds - asyncio.get_running_loop().time())
            group.create_task(_happen(fault, harness))


async def _happen(fault: Fault, harness: Harness) -> None:
    if fault.requests is not None:
        await harness.request_faults.inject(fault.requests, fault.seconds)
    elif fault.kind.endswith("server"):
        await _end_server(harness, is_crash=fault.kind.startswith("crash"), seconds=fault.seconds)
    else:
        target = harness.leader if fault.target == "leader" else harness.follower
        if target is not None:
            await _hit(fault, harness, target)


async def _end_server(harness: Harness, *, is_crash: bool, seconds: float) -> None:
    if not harness.has_server:
        return
    if is_crash:
        # Requests in progress get no answer.
        harness.break_connections()
    await harness.stop_server()
    await asyncio.sleep(seconds)
    await harness.start_server()


async def _hit(fault: Fault, harness: Harness, target: Replica) -> None:
    front = target.front
    assert front is not None, "all have one here"
    if fault.kind == "kill":
        target.send(signal.SIGKILL)
    elif fault.kind == "terminate":
        target.send(signal.SIGTERM)
    elif fault.kind == "freeze":
        target.send(signal.SIGSTOP)
        await asyncio.sleep(fault.seconds)
        target.send(signal.SIGCONT)
    elif fault.kind == "reset":
        front.reset()
    elif fault.kind == "delay":
        front.delay_seconds = fault.delay_seconds
        await asyncio.sleep(fault.seconds)
        front.delay_seconds = 0.0
    elif fault.kind == "refuse":
        await _cut([front], Network.REFUSED, fault.seconds)
    elif fault.kind == "silence":
        await _cut([front], Network.SILENT, fault.seconds)
    else:
        fronts = [one.front for one in harness.running if one.front is not None]
        await _cut(fronts, Network.SILENT, fault.seconds)


async def _cut(fronts: list[FaultyFront], network: Network, seconds: float) -> None:
    for front in fronts:
        await front.become(network)
    await asyncio.sleep(seconds)
    for front in fronts:
        await front.become(Network.GOOD)
