from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.app.metrics.family import Distribution

BOUNDS = (0.5, 1.0, 2.0)


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
    distribution = Distribution(BOUNDS)
    distribution.observe(value)
    assert expected == distribution.cumulative()
    assert value == distribution.total


@given(st.lists(st.floats(0, 4, allow_nan=False)))
def test_histogram_as_counted_one_by_one(values: list[float]) -> None:
    """Bisecting gives what comparing each value with each bound gives."""
    distribution = Distribution(BOUNDS)
    for value in values:
        distribution.observe(value)
    slow = [sum(value <= bound for value in values) for bound in BOUNDS]
    assert [*slow, len(values)] == distribution.cumulative()
