from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.app.metrics.family import SERIES_MAX, UNEXPECTED, CounterVec, HistogramVec

BOUNDS = (0.5, 1.0, 2.0)


def test_counter_adds_per_labels() -> None:
    """Each label set has its own count; they are sorted."""
    counter = CounterVec()
    counter.add(("b",))
    counter.add(("a",), 2)
    counter.add(("b",))
    assert [(("a",), 2), (("b",), 2)] == counter.series()


def test_counter_sets() -> None:
    """A gauge's value is replaced."""
    gauge = CounterVec()
    gauge.set(("a",), 3)
    gauge.set(("a",), 1)
    assert [(("a",), 1)] == gauge.series()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0.1, [1, 1, 1, 1], id="below-all"),
        pytest.param(0.5, [1, 1, 1, 1], id="a-bound-belongs-to-its-bucket"),
        pytest.param(0.6, [0, 1, 1, 1], id="between"),
        pytest.param(2.0, [0, 0, 1, 1], id="last-bound"),
        pytest.param(9.0, [0, 0, 0, 1], id="above-all"),
    ],
)
def test_histogram_buckets(value: float, expected: list[int]) -> None:
    """A value counts for every bound that it is not above."""
    histogram = HistogramVec(BOUNDS)
    histogram.observe(value)
    ((_, distribution),) = histogram.series()
    assert expected == distribution.cumulative()
    assert value == distribution.total


@given(st.lists(st.floats(0, 4, allow_nan=False)))
def test_histogram_as_counted_one_by_one(values: list[float]) -> None:
    """Bisecting gives what comparing each value with each bound gives."""
    distribution = HistogramVec(BOUNDS).of(())
    for value in values:
        distribution.observe(value)
    slow = [sum(value <= bound for value in values) for bound in BOUNDS]
    assert [*slow, len(values)] == distribution.cumulative()


def test_label_sets_are_bounded() -> None:
    """Label sets beyond the bound are counted together, and nothing is lost."""
    counter, histogram = CounterVec(), HistogramVec(BOUNDS)
    for number in range(SERIES_MAX + 3):
        counter.add((str(number),))
        histogram.observe(1, (str(number),))
    assert 3.0 == dict(counter.series())[UNEXPECTED,]
    assert 3 == dict(histogram.series())[UNEXPECTED,].cumulative()[-1]
    assert (3, 3) == (counter.folded, histogram.folded)


def test_reset() -> None:
    """Nothing is left after a reset."""
    counter, histogram = CounterVec(), HistogramVec(BOUNDS)
    counter.add(("a",))
    histogram.observe(1, ("a",))
    counter.reset()
    histogram.reset()
    assert ([], []) == (counter.series(), histogram.series())
