"""Arrival times and run times of pods."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.simulator.scenario import LogNormal, PodArrivals, RunTime, Uniform
from kubesched.simulator.script import arrival_seconds, run_seconds


@pytest.mark.parametrize(
    ("arrivals", "end", "expected"),
    [
        pytest.param(PodArrivals(at=(5.0, 1.0, 9.0)), 9.0, [1.0, 5.0], id="times-in-order"),
        pytest.param(PodArrivals(every=4.0), 10.0, [0.0, 4.0, 8.0], id="every"),
        pytest.param(PodArrivals(every=4.0, start=1.0, end=6.0), 10.0, [1.0, 5.0], id="window"),
        pytest.param(PodArrivals(every=4.0, start=11.0), 10.0, [], id="too-late"),
    ],
)
def test_arrival_times_are_sorted(arrivals: PodArrivals, end: float, expected: list[float]) -> None:
    """All are before the end."""
    assert expected == list(arrival_seconds(arrivals, end, Random(0)))


def test_a_fixed_interval_does_not_drift() -> None:
    """The millionth time is exact."""
    times = arrival_seconds(PodArrivals(every=0.1), 1e9, Random(0))
    assert next(islice(times, 1_000_000, None)) == 1_000_000 * 0.1


def test_poisson_arrivals_have_mean_and_variance() -> None:
    """Both are the number of arrivals per hour."""
    times = list(arrival_seconds(PodArrivals(per_hour=60.0), 3600.0 * 500, Random(1)))
    assert times == sorted(times)
    assert pytest.approx(60.0, rel=0.03) == len(times) / 500
    hours = [0] * 500
    for seconds in times:
        hours[int(seconds / 3600)] += 1
    variance = sum((count - 60) ** 2 for count in hours) / 500
    assert pytest.approx(60.0, rel=0.25) == variance


@given(st.integers(0, 100))
def test_equal_seeds_give_equal_times(seed: int) -> None:
    """Nothing else matters."""
    arrivals = PodArrivals(per_hour=100.0, start=50.0)
    first, again = (list(arrival_seconds(arrivals, 3600.0, Random(seed))) for _ in range(2))
    assert first == again
    assert all(50.0 <= seconds < 3600.0 for seconds in first)


@pytest.mark.parametrize(
    ("run_time", "mean", "lowest", "highest"),
    [
        pytest.param(RunTime(fixed=5.0), 5.0, 5.0, 5.0, id="fixed"),
        pytest.param(RunTime(exponential=5.0), 5.0, 0.0, 200.0, id="exponential"),
        pytest.param(RunTime(uniform=Uniform(2.0, 8.0)), 5.0, 2.0, 8.0, id="uniform"),
        pytest.param(RunTime(log_normal=LogNormal(4.0, 0.5)), 4.53, 0.0, 200.0, id="log-normal"),
    ],
)
def test_run_times_have_mean_and_bounds(
    run_time: RunTime, mean: float, lowest: float, highest: float
) -> None:
    """Both are the scenario's."""
    draw = run_seconds(run_time, Random(2))
    drawn = [draw() for _ in range(5_000)]
    known = [seconds for seconds in drawn if seconds is not None]
    assert len(known) == len(drawn)
    assert lowest <= min(known) <= max(known) <= highest
    assert pytest.approx(mean, rel=0.06) == sum(known) / len(known)


def test_pods_without_a_run_time_run_for_ever() -> None:
    """They end when they are deleted."""
    assert run_seconds(None, Random(0))() is None
