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

_BLOCK_ROWS: Final = 65_536


def select_host(totals: NDArray[np.int64], random: Random) -> int:
    """Return the position of a largest total; ties are broken at random."""
    first = int(totals.argmax())
    tied = (totals == totals.item(first)).nonzero()[0]
    ties = len(tied)
    return first if ties == 1 else int(tied[int(random.random() * ties)])


class _TiedRows:
    """The rows with one total, ascending.

    With a million nodes a quarter may be tied. They are listed in blocks of 65,536 rows of the
    column, so that few others move when one is added or removed.
    """

    def __init__(self, length: int) -> None:
        """Set up without rows for a column of that length."""
        self.count = 0
        self._blocks = [array("i") for _ in range(0, length, _BLOCK_ROWS)]

    def fill(self, is_tied: NDArray[np.bool_]) -> None:
        """List the rows where the mask is true."""
        for number, block in enumerate(self._blocks):
            start = number * _BLOCK_ROWS
            rows = np.flatnonzero(is_tied[start : start + _BLOCK_ROWS]) + start
            block.frombytes(rows.astype(np.int32).tobytes())
            self.count += len(rows)

    def add(self, row: int) -> None:
        block = self._blocks[row // _BLOCK_ROWS]
        block.insert(bisect_left(block, row), row)
        self.count += 1

    def remove(self, row: int) -> None:
        block = self._blocks[row // _BLOCK_ROWS]
        del block[bisect_left(block, row)]
        self.count -= 1

    def draw(self, random: Random) -> int:
        """Return one of the rows."""
        position = 0 if self.count == 1 else int(random.random() * self.count)
        for block in self._blocks:
            if position < len(block):
                return block[position]
            position -= len(block)
        raise AssertionError("count is not the number of rows")


class BestRows:
    """The rows with the largest totals in one column, kept up to date.

    Binding a pod changes one total, and finding the largest again would read the whole column. With
    the same random source the choice equals that of `select_host`. The rows are listed when a
    column is used for the second time, because many columns are used only once.

    Invariants: `_by_total` lists every row whose total is at least `_least`, or is empty.
    """

    def __init__(self) -> None:
        self._totals: NDArray[np.int64] | None = None
        self._by_total: dict[int, _TiedRows] = {}
        self._least = 0

    def select(self, totals: NDArray[np.int64], random: Random) -> int:
        """Return the row that `select_host` returns for the same random source."""
        if totals is not self._totals:
            self._totals = totals
            self._by_total.clear()
            return select_host(totals, random)
        if not self._by_total:
            self._least = totals.max().item()
            self._by_total[self._least] = rows = _TiedRows(len(totals))
            rows.fill(totals == self._least)
        return self._by_total[max(self._by_total)].draw(random)

    def forget(self) -> None:
        """Drop the rows after the totals of many rows may have changed."""
        self._totals = None

    def changed(self, totals: NDArray[np.int64], row: int, before: int, after: int) -> None:
        """Update the rows after the total of one row has changed."""
        if totals is not self._totals or not self._by_total:
            return
        if before >= self._least:
            rows = self._by_total[before]
            rows.remove(row)
            if not rows.count:
                del self._by_total[before]
        if after >= self._least:
            if after not in self._by_total:
                self._by_total[after] = _TiedRows(len(totals))
            self._by_total[after].add(row)
