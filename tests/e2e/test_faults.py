"""Two replicas under failures: a few seeds of `python -m tests.e2e.faults`."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from .fault_plan import plan
from .faults import violation_text
from .play import Outcome, Run, play
from .replica import SHORT, Lease


@pytest.mark.slow
def test_each_pod_is_bound_once_by_the_leader() -> None:
    """Whatever fails."""

    async def play_all() -> list[Outcome]:
        return await asyncio.gather(*(play(Run(seed, SHORT)) for seed in (0, 1, 2)))

    outcomes = asyncio.run(play_all())
    problems = [
        f"{violation_text(outcome)}\n{outcome.log}" for outcome in outcomes if outcome.problems
    ]
    assert not problems, "\n".join(problems)
    assert all(outcome.pods and outcome.processes >= 2 for outcome in outcomes)


def test_plans_are_seeded_and_in_order_of_time() -> None:
    """All kinds of failures occur."""
    plans = [plan(Random(seed), SHORT, 7.0) for seed in range(200)]
    assert plans == [plan(Random(seed), SHORT, 7.0) for seed in range(200)]
    assert all(one == sorted(one, key=lambda fault: fault.at_seconds) for one in plans)
    assert {
        *("kill", "terminate", "freeze", "restart server", "crash server", "refuse", "silence"),
        *("silence all", "delay", "reset", "requests"),
    } == {fault.kind for one in plans for fault in one}


def test_lease_times_are_parsed_and_written() -> None:
    """15/10/2 is upstream's default."""
    assert Lease(15.0, 10.0, 2.0) == Lease.parse("15/10/2")
    assert "2/1.4/0.3" == str(SHORT)
