"""RowTally: a number per row of the node table, summed over the row's pods with volumes.

Reads:    nodes.pods, nodes.changes
Invariants: a returned number equals the sum over the row's pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.changed_rows import ChangedRows, fitted
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo


class RowTally:
    """Keeps the sums of one table up to date.

    Args:
        weigh: Returns what a pod adds to its row; called only for pods with volumes.

    Attributes:
        most: The largest sum of a row.
    """

    def __init__(self, weigh: Callable[[PodInfo], int]) -> None:
        self.most = 0
        self._weigh = weigh
        self._changed = ChangedRows()
        self._sums = np.zeros(0, np.int64)
        self._versions = np.zeros(0, np.int64)

    def of(self, table: NodeColumns) -> NDArray[np.int64]:
        """Return the sums as int64 per row; valid until the table changes."""
        changed = self._changed.read(table)
        is_stale = changed is None
        for row in self._differing(table) if changed is None else dict.fromkeys(changed):
            before, now = self._sums.item(row), self._sum_of(table.pods[row].values())
            self._sums[row], self._versions[row] = now, table.row_versions[row]
            if now > self.most:
                self.most = now
            elif before == self.most and now < before:
                is_stale = True
        if is_stale:
            self.most = int(self._sums.max(initial=0))
        return self._sums

    def _differing(self, table: NodeColumns) -> list[int]:
        """Return the rows whose pods differ from those that were last counted."""
        self._sums = fitted(self._sums, table)
        self._versions = fitted(self._versions, table)
        is_other = self._versions != np.frombuffer(table.row_versions, np.int64)
        rows: list[int] = np.flatnonzero(is_other).tolist()
        return rows

    def _sum_of(self, pods: Iterable[PodInfo]) -> int:
        total = 0
        for pod in pods:
            # Without a generator, which takes longer for the few pods of a row.
            if pod.pod.spec.volumes:
                total += self._weigh(pod)
        return total
