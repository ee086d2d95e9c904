"""One of the best rows is drawn, and BestRows draws the same, whatever totals change."""

from __future__ import annotations

from collections import Counter
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.scheduler.select_host import BestRows, select_host


@given(totals=st.lists(st.integers(-5, 5), min_size=1, max_size=20), seed=st.integers(0, 2**32))
def test_select_host_chooses_a_largest_total(totals: list[int], seed: int) -> None:
    """The same one for the same seed."""
    column = np.array(totals, np.int64)
    chosen = select_host(column, Random(seed))
    assert max(totals) == totals[chosen]
    assert chosen == select_host(column, Random(seed))


def test_ties_are_drawn_uniformly() -> None:
    """Over many draws each best node is chosen about as often, and no other node."""
    totals = np.array([3, 7, 7, 0, 7], np.int64)
    random = Random(1)
    drawn = Counter(select_host(totals, random) for _ in range(3000))
    assert {1, 2, 4} == set(drawn)
    assert all(abs(count - 1000) < 150 for count in drawn.values())


def test_a_single_best_node_needs_no_random_number() -> None:
    """Later decisions then do not depend on it."""
    random = Random(1)
    select_host(np.array([1, 2], np.int64), random)
    assert Random(1).getstate() == random.getstate()


# BestRows.

_TOTALS = st.lists(st.integers(-2, 3), min_size=1, max_size=8)
# (row, its new total) or a column that replaces all of it.
_STEPS = st.lists(st.tuples(st.integers(0, 7), st.integers(-2, 4)) | _TOTALS, max_size=30)


@pytest.mark.slow
@given(_TOTALS, _STEPS, st.booleans(), st.sampled_from([2, 65_536]))
def test_draws_equal_those_of_select_host(
    first: list[int],
    steps: list[tuple[int, int] | list[int]],
    draws_each_time: bool,
    block_rows: int,
) -> None:
    """Random sources are equal; single totals and whole columns change."""
    with patch("kubesched.scheduler.select_host._BLOCK_ROWS", block_rows):
        totals, best = np.array(first, np.int64), BestRows()
        random, same_random = Random(7), Random(7)
        for number, step in enumerate(steps):
            if isinstance(step, list):
                totals = np.array(step, np.int64)
            else:
                row, total = step
                row %= len(totals)
                before, totals[row] = int(totals[row]), total
                best.changed(totals, row, before, total)
            if draws_each_time or number % 3 == 0:
                assert best.select(totals, random) == select_host(totals, same_random)


def test_a_row_that_rises_and_falls_keeps_the_list() -> None:
    """The column is not read again."""
    totals, best = np.array([5, 5, 3], np.int64), BestRows()
    for _ in range(2):
        best.select(totals, Random(1))
    for before, after in ((5, 7), (7, 4)):
        totals[0] = after
        best.changed(totals, 0, before, after)
        expected = 0 if after == 7 else 1
        hidden = totals.copy()
        totals[:] = -1
        assert expected == best.select(totals, Random(1))
        totals[:] = hidden
