"""The rows of a node table that changed since the last time, from its log or its row versions.

Reads:    nodes.changes, nodes.row_versions
"""

from __future__ import annotations

from array import array
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.node_columns import NodeColumns

Number = TypeVar("Number", np.int64, np.bool_)


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


class RowVersions:
    """A reader that compares the versions of all rows if the log does not say which changed."""

    __slots__ = ("_log", "_versions")

    def __init__(self) -> None:
        self._log = ChangedRows()
        self._versions = np.zeros(0, np.int64)

    def changed(self, table: NodeColumns) -> set[int]:
        """Return the rows whose pods may differ from those at the last call.

        Rows may have moved since. Rows that the table no longer has are not listed.
        """
        logged = self._log.read(table)
        if logged is not None:
            for row in logged:
                self._versions[row] = table.row_versions[row]
            return set(logged)
        before, self._versions = self._versions, np.array(table.row_versions, np.int64)
        return set(np.flatnonzero(fitted(before, table) != self._versions).tolist())


def fitted(kept: NDArray[Number], table: NodeColumns) -> NDArray[Number]:
    """Return the numbers that are kept per row, in the last axis, cut or extended to the table.

    New rows get 0, which is no row's version.
    """
    added = len(table) - kept.shape[-1]
    if added > 0:
        return np.concatenate((kept, np.zeros((*kept.shape[:-1], added), kept.dtype)), axis=-1)
    return kept[..., : len(table)]
