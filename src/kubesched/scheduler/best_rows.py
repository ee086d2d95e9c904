"""BestRows keeps the rows with the largest total, so that one is drawn without looking at all.

Binding a pod changes the total of one row. To look for the largest anew reads the whole column.

Upstream: nothing like it; pkg/scheduler/schedule_one.go, selectHost (v1.36) looks at all nodes
Invariants: a draw equals the one `scoring.select_host` makes with the same dice (a property test
            compares them).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from random import Random

import numpy as np
from numpy.typing import NDArray

from kubesched.scheduler.scoring import select_host


class BestRows:
    """The rows of one column of totals that have the largest.

    They are listed when the same column is asked for the second time: a column that is made anew
    for each pod is never asked for again.
    """

    def __init__(self) -> None:
        self._totals: NDArray[np.int64] | None = None
        self._rows: array[int] | None = None
        self._largest = 0

    def select(self, totals: NDArray[np.int64], random: Random) -> int:
        """Return one of the rows, as `select_host` does: from one seed, the same."""
        if totals is not self._totals:
            self._totals, self._rows = totals, None
            return select_host(totals, random)
        if not self._rows:
            self._largest = totals.max().item()
            rows = np.flatnonzero(totals == self._largest)
            self._rows = array("i", rows.astype(np.int32).tobytes())
        rows_tied = len(self._rows)
        return self._rows[0 if rows_tied == 1 else int(random.random() * rows_tied)]

    def changed(self, totals: NDArray[np.int64], row: int) -> None:
        """Take in that the total of one row may have changed."""
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
