"""Arrivals: creation times and run times of pods, drawn from a workload's own random streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, log
from random import Random
from typing import Final

from kubesched.simulator.scenario import PodArrivals, RunTime

_SECONDS_PER_HOUR: Final = 3600.0
# exp(700) is near the largest float; no pod runs that long.
_LOG_MAX: Final = 60.0


def arrival_seconds(arrivals: PodArrivals, end_seconds: float, random: Random) -> Iterator[float]:
    """Yield the time of each burst in virtual seconds, up to the end.

    Args:
        arrivals: The arrival process.
        end_seconds: The end of the simulation.
        random: A random source used for these arrivals only.
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
            # Multiplied, because a running sum would drift.
            yield arrivals.start + number * arrivals.every
            number += 1
    else:
        assert arrivals.per_hour is not None, "one of three is given"
        seconds = arrivals.start
        while True:
            seconds += random.expovariate(arrivals.per_hour / _SECONDS_PER_HOUR)
            yield seconds


def run_seconds(run_time: RunTime | None, random: Random) -> Callable[[], float | None]:
    """Return a function that draws run times in seconds; None: the pod runs until deleted."""
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
