"""Time series compared with lists of all changes, and quantiles with sorting."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.simulator.series import (
    ACCURACY,
    BINS_MAX,
    MAX,
    MIN,
    CountSeries,
    Gauge,
    QuantileSketch,
    SeriesValues,
)

STEPS = st.lists(st.tuples(st.floats(0, 1_000), st.floats(0, 100)), min_size=1, max_size=40)


def _lengths(values: SeriesValues, end: float) -> list[float]:
    """Return how long each bin lasts: the last one to the end."""
    width, others = values.width_seconds, len(values.means) - 1
    return [width] * others + [end - others * width]


@given(STEPS, st.floats(0.1, 50))
def test_gauge_means_are_weighted_by_time(steps: list[tuple[float, float]], width: float) -> None:
    """The area of the bins equals that of the steps, and so does the peak."""
    gauge = Gauge(width)
    now = value = area = 0.0
    for delay, following in steps:
        area += value * delay
        now += delay
        value = following
        gauge.set(now, value)
    values = gauge.values()
    total = sum(
        mean * length for mean, length in zip(values.means, _lengths(values, now), strict=True)
    )
    assert pytest.approx(area, abs=1e-6) == total
    assert max(following for _, following in steps) == max(values.peaks) == gauge.peak
    assert len(values.means) <= BINS_MAX
    if now:
        assert pytest.approx(area / now, abs=1e-9) == gauge.mean()


def test_gauge_by_hand() -> None:
    """Two pods from second 5 to 15, in bins of ten seconds."""
    gauge = Gauge(10.0)
    gauge.add(5.0, 2)
    gauge.add(15.0, -2)
    gauge.advance(20.0)
    values = gauge.values()
    assert (values.means[:2], values.peaks[:2]) == ((1.0, 1.0), (2.0, 2.0))
    assert gauge.mean() == 1.0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5)), max_size=60))
def test_adding_to_a_gauge_equals_setting_it(steps: list[tuple[int, int]]) -> None:
    """Also for many changes at one time."""
    added, put = Gauge(2.0), Gauge(2.0)
    now = 0.0
    for delay, change in steps:
        now += delay
        added.add(now, change)
        put.set(now, put.value + change)
    assert put.values() == added.values()
    assert (put.value, put.peak, put.mean()) == (added.value, added.peak, added.mean())


def test_the_mean_of_a_gauge_at_second_zero() -> None:
    """It is the value that was set."""
    gauge = Gauge()
    gauge.set(0.0, 3.0)
    assert (gauge.mean(), gauge.values().means) == (3.0, (3.0,))


@given(st.lists(st.floats(0, 500), min_size=1, max_size=60))
def test_merged_bins_have_all_counts(delays: list[float]) -> None:
    """Merging bins loses no count."""
    counter = CountSeries(1.0)
    now = 0.0
    for delay in delays:
        now += delay
        counter.add(now)
    values = counter.values()
    assert len(delays) == counter.total == sum(values.peaks)
    lengths = [max(each, 0.1 * values.width_seconds) for each in _lengths(values, now)]
    total = sum(mean * length for mean, length in zip(values.means, lengths, strict=True))
    assert pytest.approx(len(delays)) == total / 3600
    assert len(values.means) <= BINS_MAX


def test_the_number_of_bins_is_bounded() -> None:
    """Ten thousand hours have as many as one."""
    counter, gauge = CountSeries(1.0), Gauge(1.0)
    for hour in range(10_000):
        counter.add(hour * 3600.0)
        gauge.set(hour * 3600.0, hour)
    assert len(counter.values().means) <= BINS_MAX
    assert len(gauge.values().means) <= BINS_MAX
    assert counter.values().width_seconds * BINS_MAX >= 10_000 * 3600


@pytest.mark.parametrize(
    ("end", "rates"),
    [
        (600.0, (360.0, 360.0, 360.0)),  # a rest of half a width
        (480.0, (360.0, 360.0)),
        (480.000001, (360.0, 360.0)),  # the clock moves in ticks, so the end may be a little late
        (500.0, (360.0, 360.0)),
    ],
)
def test_rates_are_per_hour_whatever_is_left_for_the_last_bin(
    end: float, rates: tuple[float, ...]
) -> None:
    """One in ten seconds is 360 an hour."""
    counter, gauge = CountSeries(240.0), Gauge(240.0)
    for at in range(0, int(end), 10):
        counter.add(float(at))
    counter.advance(end)
    gauge.set(0.0, 1.0)
    gauge.advance(end)
    assert pytest.approx(rates) == counter.values().means
    assert pytest.approx((1.0,) * len(rates)) == gauge.values().means


def test_a_bin_width_must_be_positive() -> None:
    """Zero is an error."""
    with pytest.raises(ValueError, match="width"):
        Gauge(0.0)


# Quantiles.

VALUES = st.lists(st.floats(0, 1e9), min_size=1, max_size=60)


def _sketch(values: list[float]) -> QuantileSketch:
    sketch = QuantileSketch()
    for value in values:
        sketch.add(value)
    return sketch


@given(VALUES, st.floats(0, 1))
def test_quantiles_are_within_the_accuracy(values: list[float], share: float) -> None:
    """They are compared with exact ones."""
    exact = sorted(values)[max(math.ceil(share * len(values)), 1) - 1]
    got = _sketch(values).quantile(share)
    assert got is not None
    assert abs(got - exact) <= ACCURACY * exact * 1.000001 + MIN


@given(VALUES)
def test_count_maximum_and_mean_are_exact(values: list[float]) -> None:
    """They are kept beside the counters."""
    sketch = _sketch(values)
    assert (len(values), max(values)) == (sketch.count, sketch.largest)
    assert pytest.approx(sum(values) / len(values)) == sketch.mean


def test_the_number_of_counters_is_bounded() -> None:
    """It does not grow with the number of values."""
    sketch = _sketch([10 ** (power / 1000) for power in range(-6_000, 14_000)])
    assert len(sketch._counts) <= math.log(MAX / MIN) / math.log(1.02) + 2


def test_a_sketch_without_values_has_no_quantiles() -> None:
    """They are None."""
    sketch = QuantileSketch()
    assert sketch.quantile(0.5) is None
    assert sketch.mean is None


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_negative_values_and_nan_are_errors(value: float) -> None:
    """They are no durations."""
    with pytest.raises(ValueError, match="cannot be counted"):
        QuantileSketch().add(value)


def test_every_value_is_in_one_bar() -> None:
    """A bar begins where the one before ends."""
    sketch = _sketch([0.0, 0.5, 1.5, 1.6, 20.0, 1e12])
    assert sketch.histogram((1.0, 10.0)) == (2, 2, 2)
