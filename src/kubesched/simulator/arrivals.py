"""Arrivals: when pods come, and for how long they run, drawn from a workload's own streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, log
from random import Random
from typing import Final

from kubesched.simulator.scenario import PodArrivals, RunTime

_SECONDS_PER_HOUR: Final = 3600.0
# exp(700) is as large as a float gets; no pod runs that long.
_LOG_MAX: Final = 60.0


def arrival_seconds(arrivals: PodArrivals, end_seconds: float, random: Random) -> Iterator[float]:
    """Yield the times at which a burst comes, before the end.

    Args:
        arrivals: The process.
        end_seconds: When the simulation ends.
        random: Of the arrivals alone.
    """
    end = end_seconds if arrivals.end is None else min(arrivals.end, end_seconds)
    for seconds in _endless(arrivals, random):
        if seconds >= end:
            return
        yield seconds


def _endless(arrivals: PodArrivals, random: Random) -> Iterator[float]:
    if arrivals.at:
        yield from sorted(arrivals.at)
    elif arrivals.every is not None:
        number = 0
        while True:
            # Multiplied, because a sum of many would drift.
            yield arrivals.start + number * arrivals.every
            number += 1
    else:
        assert arrivals.per_hour is not None, "one of three is given"
        seconds = arrivals.start
        while True:
            seconds += random.expovariate(arrivals.per_hour / _SECONDS_PER_HOUR)
            yield seconds


def run_seconds(run_time: RunTime | None, random: Random) -> Callable[[], float | None]:
    """Return what draws the next pod's run time; None for a pod that runs until it is deleted."""
    if run_time is None:
        return lambda: None
    if run_time.fixed is not None:
        fixed = run_time.fixed
        return lambda: fixed
    if run_time.exponential is not None:
        rate = 1 / run_time.exponential
        return lambda: random.expovariate(rate)
    if run_time.uniform is not None:
        shortest, longest = run_time.uniform.min, run_time.uniform.max
        return lambda: random.uniform(shortest, longest)
    assert run_time.log_normal is not None, "one of four is given"
    median, sigma = log(run_time.log_normal.median), run_time.log_normal.sigma
    return lambda: exp(min(random.gauss(median, sigma), _LOG_MAX))
