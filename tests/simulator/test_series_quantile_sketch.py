"""Quantiles from counters, against sorting."""

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
def test_quantiles_are_close(values: list[float], share: float) -> None:
    """A quantile is within the accuracy of the exact one."""
    exact = sorted(values)[max(math.ceil(share * len(values)), 1) - 1]
    got = _sketch(values).quantile(share)
    assert got is not None
    assert abs(got - exact) <= ACCURACY * exact * 1.000001 + MIN


@given(VALUES)
def test_exact_parts(values: list[float]) -> None:
    """Count, largest and mean are exact."""
    sketch = _sketch(values)
    assert (len(values), max(values)) == (sketch.count, sketch.largest)
    assert pytest.approx(sum(values) / len(values)) == sketch.mean


def test_memory_is_bounded() -> None:
    """However many values there are, there are few counters."""
    sketch = _sketch([10 ** (power / 1000) for power in range(-6_000, 14_000)])
    assert len(sketch._counts) <= math.log(MAX / MIN) / math.log(1.02) + 2


def test_without_values_there_is_nothing_to_tell() -> None:
    """No values, no quantiles."""
    sketch = QuantileSketch()
    assert sketch.quantile(0.5) is None
    assert sketch.mean is None


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_refuses_what_is_no_duration(value: float) -> None:
    """Negative values and non-numbers are refused."""
    with pytest.raises(ValueError, match="cannot be counted"):
        QuantileSketch().add(value)


def test_histogram() -> None:
    """Every value is in one bar; a bar begins where the one before ends."""
    sketch = _sketch([0.0, 0.5, 1.5, 1.6, 20.0, 1e12])
    assert sketch.histogram((1.0, 10.0)) == (2, 2, 2)
