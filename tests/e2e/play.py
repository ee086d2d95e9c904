"""One run: two replicas, pods, failures of a seed, and its violations."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from . import checkers, fault_plan
from .harness import Harness, until
from .history import Bound, History, LeaseWrite, Posted
from .replica import Lease, Replica
from .workload import Workload, create_nodes

_REPLICAS: Final = 2
_NODES: Final = 5
_PODS_PER_SECOND: Final = 20.0
# On a machine that is busy with other things a process may take a minute to start.
_START_SECONDS_MAX: Final = 240.0
_SETTLE_SECONDS_MAX: Final = 240.0
_FAULTY_LEASES: Final = 3.5
"""The length of a plan of failures, in lease durations."""
# None is that of a replica that was about to be started at the end.
_GOOD_EXIT_CODES: Final = (0, 1, -signal.SIGKILL, None)
_BAD_WORDS: Final = ("Traceback", "never retrieved", "never awaited", "Unclosed")


class Run(msgspec.Struct, frozen=True):
    """The parameters of a run.

    Attributes:
        seed: The seed of all random choices.
        lease: The times of the election.
        keep: The directory for logs and histories of failed runs; None keeps none.
    """

    seed: int
    lease: Lease
    keep: Path | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The result of a run.

    Attributes:
        run: The run.
        problems: The violations.
        faults: The failures, one line each.
        pods: Number of pods that were bound.
        terms: How often a replica took over the lease.
        processes: Number of replicas.
        refused: Number of bindings that the server refused.
        seconds: How long it took.
        log: The replicas' logs, if there are problems.
    """

    run: Run
    problems: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    pods: int = 0
    terms: int = 0
    processes: int = 0
    refused: int = 0
    seconds: float = 0.0
    log: str = ""


async def play(run: Run) -> Outcome:
    """Run in a new directory."""
    with tempfile.TemporaryDirectory(prefix="kubesched-e2e-") as directory:
        return await _play(run, Path(directory))


async def _play(run: Run, directory: Path) -> Outcome:
    began = time.monotonic()
    random = Random(run.seed)
    faults = fault_plan.plan(random, run.lease, run.lease.duration_seconds * _FAULTY_LEASES)
    problems: list[str] = []
    async with Harness(directory, run.lease, Random(run.seed + 1)) as harness:
        try:
            await _live_through(harness, faults, Workload(harness, random, _PODS_PER_SECOND))
        except AssertionError as error:
            problems.append(str(error))
    problems += checkers.violations(harness.history.entries)
    problems += [words for one in harness.replicas for words in _misbehaviour(one)]
    return _outcome(run, harness, problems, faults, time.monotonic() - began)


async def _live_through(
    harness: Harness, faults: list[fault_plan.Fault], workload: Workload
) -> None:
    await create_nodes(harness, _NODES)
    await harness.keep_replicas(_REPLICAS)
    await workload.create_one()
    await until(lambda: not harness.history.unbound, _START_SECONDS_MAX, "the first pod is bound")
    working = asyncio.ensure_future(workload.run())
    try:
        await fault_plan.apply(faults, harness)
    finally:
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
    # Whatever has happened, from here on pods must be bound again.
    await workload.create_one()
    await until(lambda: not harness.history.unbound, _SETTLE_SECONDS_MAX, "all pods are bound")
    for replica in await harness.stop_replicas():
        has_lost = "Leaderelection lost" in replica.log()
        is_good = replica.exit_code == int(has_lost) or _was_young(replica)
        assert is_good, f"{replica.name} ended with {replica.exit_code} when it was asked to"


def _misbehaviour(replica: Replica) -> list[str]:
    found = []
    if replica.exit_code not in _GOOD_EXIT_CODES and not _was_young(replica):
        found.append(f"{replica.name} ended with {replica.exit_code}")
    log = replica.log()
    found += [f"{replica.name} logged {words!r}" for words in _BAD_WORDS if words in log]
    return found


def _was_young(replica: Replica) -> bool:
    """Whether it was stopped before it could log its start."""
    return replica.exit_code == -signal.SIGTERM and not replica.log()


def _outcome(
    run: Run,
    harness: Harness,
    problems: list[str],
    faults: list[fault_plan.Fault],
    seconds: float,
) -> Outcome:
    entries = harness.history.entries
    outcome = Outcome(
        run,
        tuple(problems),
        tuple(map(str, faults)),
        pods=sum(isinstance(entry, Bound) for entry in entries),
        terms=_terms(harness.history),
        processes=len(harness.replicas),
        refused=sum(isinstance(entry, Posted) and entry.code != 201 for entry in entries),
        seconds=seconds,
    )
    if not problems:
        return outcome
    log = "\n".join(f"==== {one.name} ({one.exit_code})\n{one.log()}" for one in harness.replicas)
    if run.keep is not None:
        told = [*problems, *outcome.faults, *map(str, entries), log]
        run.keep.mkdir(parents=True, exist_ok=True)
        (run.keep / f"seed-{run.seed}.txt").write_text("\n".join(told))
    return msgspec.structs.replace(outcome, log=log)


def _terms(history: History) -> int:
    leases = [entry for entry in history.entries if isinstance(entry, LeaseWrite)]
    return leases[-1].transitions if leases else 0
