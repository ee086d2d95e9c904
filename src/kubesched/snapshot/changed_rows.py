"""ChangedRows reads the log of a node table: the rows that changed since the last time.

Reads:    nodes.changes
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.node_columns import NodeColumns


class ChangedRows:
    """A reader of one table's log at a time."""

    __slots__ = ("_epoch", "_position", "_table")

    def __init__(self) -> None:
        self._table: NodeColumns | None = None
        self._epoch = -1
        self._position = 0

    def read(self, table: NodeColumns) -> array[int] | None:
        """Return the rows that changed since the last call, oldest first, possibly more than once.

        None if any row may have changed: the first time, and after a node was added, changed or
        removed.
        """
        start = self._position - table.changes_dropped
        is_known = table is self._table and table.epoch == self._epoch and start >= 0
        self._table, self._epoch = table, table.epoch
        self._position = table.changes_dropped + len(table.changes)
        return table.changes[start:] if is_known else None

    def forget(self) -> None:
        """Return None the next time."""
        self._epoch = -1


def fitted(kept: NDArray[np.int64], table: NodeColumns) -> NDArray[np.int64]:
    """Return the numbers that are kept per row, in the last axis, for the table's rows of now.

    Those of new rows are 0, which is no row's version.
    """
    added = len(table) - kept.shape[-1]
    if added > 0:
        return np.concatenate((kept, np.zeros((*kept.shape[:-1], added), np.int64)), axis=-1)
    return kept[..., : len(table)]
