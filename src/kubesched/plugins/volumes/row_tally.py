"""RowTally: a number per row of the node table, summed over the row's pods with volumes.

Reads:    nodes.pods, nodes.changes
Invariants: a returned number equals the sum over the row's pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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
        renewed: The rows that the latest `of` summed again; None if all.
    """

    def __init__(self, weigh: Callable[[PodInfo], int]) -> None:
        self._weigh = weigh
        self._changed = ChangedRows()
        self._sums = np.zeros(0, np.int64)
        self._versions = np.zeros(0, np.int64)
        self.renewed: Sequence[int] | None = None

    def of(self, table: NodeColumns) -> NDArray[np.int64]:
        """Return the sums as int64 per row; valid until the table changes."""
        changed = self._changed.read(table)
        self.renewed = None if changed is None else list(dict.fromkeys(changed))
        for row in self._differing(table) if self.renewed is None else self.renewed:
            self._sums[row] = self.sum_of(table.pods[row].values())
            self._versions[row] = table.row_versions[row]
        return self._sums

    def _differing(self, table: NodeColumns) -> list[int]:
        """Return the rows whose pods differ from those that were last counted."""
        self._sums = fitted(self._sums, table)
        self._versions = fitted(self._versions, table)
        is_other = self._versions != np.frombuffer(table.row_versions, np.int64)
        rows: list[int] = np.flatnonzero(is_other).tolist()
        return rows

    def sum_of(self, pods: Iterable[PodInfo]) -> int:
        """Return the sum over some pods."""
        total = 0
        for pod in pods:
            # Without a generator, which takes longer for the few pods of a row.
            if pod.pod.spec.volumes:
                total += self._weigh(pod)
        return total
