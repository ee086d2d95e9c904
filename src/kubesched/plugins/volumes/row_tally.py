"""RowTally: a number per row of the node table, summed over the row's pods with volumes.

Reads:    nodes.pods, nodes.changes
Invariants: a returned number equals the sum over the row's pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.node_table import NodeColumns
from kubesched.snapshot.pod_info import PodInfo


class RowTally:
    """Keeps the sums of one table up to date.

    Args:
        weigh: Returns what a pod adds to its row; called only for pods with volumes.
    """

    def __init__(self, weigh: Callable[[PodInfo], int]) -> None:
        self._weigh = weigh
        self._table: NodeColumns | None = None
        self._epoch = -1
        self._position = 0
        self._sums = np.zeros(0, np.int64)

    def of(self, table: NodeColumns) -> NDArray[np.int64]:
        """Return the sums as int64 per row; valid until the table changes."""
        end = table.changes_dropped + len(table.changes)
        is_kept = (
            table is self._table
            and table.epoch == self._epoch
            and self._position >= table.changes_dropped
        )
        if not is_kept:
            self._table, self._epoch = table, table.epoch
            self._sums = np.array([self.sum_of(pods.values()) for pods in table.pods], np.int64)
        elif self._position < end:
            # Negative entries are changes of Node objects, not of pods.
            moved = table.changes[self._position - table.changes_dropped :]
            for row in dict.fromkeys(moved):
                if row >= 0:
                    self._sums[row] = self.sum_of(table.pods[row].values())
        self._position = end
        return self._sums

    def sum_of(self, pods: Iterable[PodInfo]) -> int:
        """Return the sum over some pods."""
        return sum(self._weigh(pod) for pod in pods if pod.pod.spec.volumes)
