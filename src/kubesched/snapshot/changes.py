"""What changed since somebody last looked: logs of changes and their readers, versions of rows.

Reads:    nodes.changes, nodes.row_versions
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kubesched.snapshot.node_columns import NodeColumns

T = TypeVar("T")
Number = TypeVar("Number", np.int64, np.bool_)


class ChangeLog(Generic[T]):
    """The latest of `version` changes; `ChangeReader` reads it piece by piece.

    Attributes:
        latest: The last changes, oldest first.
        version: Increases with every change.
        kept_min: The number of changes that are kept at least; at most twice as many are.
    """

    __slots__ = ("kept_min", "latest", "version")

    def __init__(self, latest: MutableSequence[T] | None = None) -> None:
        """Set up; changes are kept in `latest`, an empty sequence, by default a list."""
        self.version = 0
        self.kept_min = 1024
        self.latest: MutableSequence[T] = [] if latest is None else latest

    def add(self, change: T) -> None:
        """Append a change."""
        self.latest.append(change)
        self.version += 1
        if len(self.latest) > 2 * self.kept_min:
            del self.latest[: self.kept_min]

    def forget(self) -> None:
        """Drop all changes, because anything may have changed."""
        del self.latest[:]
        self.version += 1

    def since(self, version: int) -> Sequence[T] | None:
        """Return the changes since a version, oldest first; None if some were dropped."""
        start = len(self.latest) - (self.version - version)
        return self.latest[start:] if 0 <= start <= len(self.latest) else None


class ChangeReader(Generic[T]):
    """A reader of one log at a time."""

    __slots__ = ("_log", "_version")

    def __init__(self) -> None:
        self._log: ChangeLog[T] | None = None
        self._version = 0

    def read(self, log: ChangeLog[T]) -> Sequence[T] | None:
        """Return the changes since the last call, oldest first.

        None if anything may have changed: the first time, with another log, and after changes were
        dropped.
        """
        # As `log.since(self._version)`, whose call would be a hundredth of a decision.
        start = len(log.latest) - (log.version - self._version)
        is_known = log is self._log and start >= 0
        self._log, self._version = log, log.version
        return log.latest[start:] if is_known else None

    def forget(self) -> None:
        """Return None the next time."""
        self._log = None


class RowVersions:
    """A reader that compares the versions of all rows if the log does not say which changed."""

    __slots__ = ("_log", "_versions")

    def __init__(self) -> None:
        self._log: ChangeReader[int] = ChangeReader()
        self._versions = np.zeros(0, np.int64)

    def changed(self, table: NodeColumns) -> set[int]:
        """Return the rows whose pods may differ from those at the last call.

        Rows may have moved since. Rows that the table no longer has are not listed.
        """
        logged = self._log.read(table.changes)
        if logged is not None:
            for row in logged:
                self._versions[row] = table.row_versions[row]
            return set(logged)
        before, self._versions = self._versions, np.array(table.row_versions, np.int64)
        return set(np.flatnonzero(fitted(before, table) != self._versions).tolist())


def fitted(kept: NDArray[Number], table: NodeColumns) -> NDArray[Number]:
    """Return the numbers that are kept per row, in the last axis, cut or extended to the table.

    New rows get 0, which is not a row's version.
    """
    added = len(table) - kept.shape[-1]
    if added > 0:
        return np.concatenate((kept, np.zeros((*kept.shape[:-1], added), kept.dtype)), axis=-1)
    return kept[..., : len(table)]
