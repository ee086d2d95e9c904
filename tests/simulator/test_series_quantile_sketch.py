"""Quantiles of a sketch, compared with sorting."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.simulator.series import ACCURACY, MAX, MIN, QuantileSketch

VALUES = st.lists(st.floats(0, 1e9), min_size=1, max_size=60)


def _sketch(values: list[float]) -> QuantileSketch:
    sketch = QuantileSketch()
    for value in values:
        sketch.add(value)
    return sketch


@given(VALUES, st.floats(0, 1))
def test_quantiles_are_within_the_accuracy(values: list[float], share: float) -> None:
    """Of the exact ones."""
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
    """However many values there are."""
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
