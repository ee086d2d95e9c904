"""Chooses a row with the largest total; ties are broken at random.

Upstream: pkg/scheduler/schedule_one.go, selectHost (v1.36)
Differs:  ties are broken with the run's seed; upstream takes the first that its parallel search
          happened to find.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

_SLICE_ROWS: Final = 512


def select_host(totals: NDArray[np.int64], random: Random) -> int:
    """Return the position of a largest total; ties are broken at random."""
    first = int(totals.argmax())
    best = totals == totals.item(first)
    ties = np.count_nonzero(best)
    return first if ties == 1 else _position_of(best, int(random.random() * ties))


def _position_of(mask: NDArray[np.bool_], number: int) -> int:
    """Return the position of the `number`-th true entry; much cheaper than listing them all."""
    start, stop = 0, len(mask)
    while stop - start > _SLICE_ROWS:
        middle = (start + stop) // 2
        before = int(np.count_nonzero(mask[start:middle]))
        if number < before:
            stop = middle
        else:
            start, number = middle, number - before
    return start + int(mask[start:stop].nonzero()[0][number])


class BestRows:
    """The rows with the largest total in one column, kept up to date.

    Binding a pod changes one total, and finding the largest again would read the whole column. With
    the same random source the choice equals that of `select_host`. The rows are listed when a
    column is used for the second time, because many columns are used only once.
    """

    def __init__(self) -> None:
        self._totals: NDArray[np.int64] | None = None
        self._rows: array[int] | None = None
        self._largest = 0

    def select(self, totals: NDArray[np.int64], random: Random) -> int:
        """Return the row that `select_host` returns for the same random source."""
        if totals is not self._totals:
            self._totals, self._rows = totals, None
            return select_host(totals, random)
        if not self._rows:
            self._largest = totals.max().item()
            rows = np.flatnonzero(totals == self._largest)
            self._rows = array("i", rows.astype(np.int32).tobytes())
        rows_tied = len(self._rows)
        return self._rows[0 if rows_tied == 1 else int(random.random() * rows_tied)]

    def forget(self) -> None:
        """Drop the rows after the totals of many rows may have changed."""
        self._totals = self._rows = None

    def changed(self, totals: NDArray[np.int64], row: int) -> None:
        """Update the rows after the total of one row may have changed."""
        rows = self._rows
        if not rows or totals is not self._totals:
            return
        total = totals.item(row)
        if total > self._largest:
            self._largest, self._rows = total, array("i", [row])
            return
        at = bisect_left(rows, row)
        is_listed = at < len(rows) and rows[at] == row
        if total == self._largest and not is_listed:
            rows.insert(at, row)
        elif total < self._largest and is_listed:
            del rows[at]
