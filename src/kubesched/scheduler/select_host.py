"""Chooses a row with the largest total; ties are broken at random.

Upstream: pkg/scheduler/schedule_one.go, selectHost (v1.36)
Differs:  ties are broken with the run's seed; upstream takes the first that its parallel search
          happened to find.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from random import Random

import numpy as np
from numpy.typing import NDArray


def select_host(totals: NDArray[np.int64], random: Random) -> int:
    """Return the position of a largest total; ties are broken at random."""
    first = int(totals.argmax())
    tied = (totals == totals.item(first)).nonzero()[0]
    ties = len(tied)
    return first if ties == 1 else int(tied[int(random.random() * ties)])


class BestRows:
    """The rows with the largest totals in one column, kept up to date.

    Binding a pod changes one total, and finding the largest again would read the whole column. With
    the same random source the choice equals that of `select_host`. The rows are listed when a
    column is used for the second time, because many columns are used only once.

    Invariants: `_by_total` lists every row whose total is at least `_least`, or is empty.
    """

    def __init__(self) -> None:
        self._totals: NDArray[np.int64] | None = None
        self._by_total: dict[int, array[int]] = {}
        self._least = 0

    def select(self, totals: NDArray[np.int64], random: Random) -> int:
        """Return the row that `select_host` returns for the same random source."""
        if totals is not self._totals:
            self._totals = totals
            self._by_total.clear()
            return select_host(totals, random)
        if not self._by_total:
            self._least = totals.max().item()
            rows = np.flatnonzero(totals == self._least)
            self._by_total[self._least] = array("i", rows.astype(np.int32).tobytes())
        rows_tied = self._by_total[max(self._by_total)]
        ties = len(rows_tied)
        return rows_tied[0 if ties == 1 else int(random.random() * ties)]

    def forget(self) -> None:
        """Drop the rows after the totals of many rows may have changed."""
        self._totals = None

    def changed(self, totals: NDArray[np.int64], row: int, before: int, after: int) -> None:
        """Update the rows after the total of one row has changed."""
        if totals is not self._totals or not self._by_total:
            return
        if before >= self._least:
            rows = self._by_total[before]
            del rows[bisect_left(rows, row)]
            if not rows:
                del self._by_total[before]
        if after >= self._least:
            rows = self._by_total.setdefault(after, array("i"))
            rows.insert(bisect_left(rows, row), row)
