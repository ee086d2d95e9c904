"""Confidence intervals against numbers that were computed by hand and printed tables."""

from __future__ import annotations

import pytest

from kubesched.sweep.results import SweepMean, mean_of, t_quantile


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (30, 2.042)],
)
def test_quantiles_are_those_of_printed_tables(freedom: int, expected: float) -> None:
    """The column of 95 %, two-sided, of any textbook."""
    assert expected == round(t_quantile(freedom), 3)


def test_many_values_are_as_of_a_normal_distribution() -> None:
    """1.96 is its quantile."""
    assert pytest.approx(1.95996, abs=1e-3) == t_quantile(5_000)


def test_the_interval_of_four_values() -> None:
    """2, 4, 4 and 6: mean 4, variance 8/3, half width 3.182446 * sqrt(8/3) / 2 = 2.598457."""
    found = mean_of([2, 4, 4, 6])
    assert (4, 4.0) == (found.n, found.mean)
    assert pytest.approx(1.6329932) == found.stdev
    assert pytest.approx(2.5984567) == found.half_width


def test_one_value_has_no_interval() -> None:
    """And none has no mean."""
    assert SweepMean(1, 5.0, None, None) == mean_of([5])
    assert SweepMean(0, None, None, None) == mean_of([])
