"""PodSum is a sum over pods on nodes; PodCounts is its value per row, DomainSums per domain.

Most sums involve few pods, so PodCounts lists the rows that are not 0. It changes to an array when
the list becomes too long.

Reads:      pod.metadata.namespace, labels; pod.spec.affinity
Invariants: the list and the array give equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.affinity_terms import OwnedTerm
from kubesched.snapshot.coded import Coded, CodedColumn

if TYPE_CHECKING:
    from kubesched.snapshot.label_groups import LabelGroup, LabelGroups

_LISTED_MIN: Final = 32
_LISTED_SHARE: Final = 256
"""Up to one row in 256 is listed; beyond that an array is smaller and faster."""
_LOOP_MAX: Final = 32
_ENTRY_CELLS: Final = 16
"""How many numbers take as much memory as an entry."""

_NO_SUMS: Final = np.zeros(0, np.int64)

Marker = tuple[str, str] | OwnedTerm
"""A key to find pods by: a label with its value, or an affinity term that the pod owns."""


class PodSum:
    """Per row, the sum of the weights of the pods there.

    It is compared by identity, which makes it a cheap key for the counts that are kept.

    Attributes:
        weigh: Returns the weight of one pod of a group.
        namespaces: Only pods of these namespaces count; None means all.
        markers: Only pods with one of these count; None if unknown.
    """

    __slots__ = ("markers", "namespaces", "weigh")

    def __init__(
        self,
        weigh: Callable[[LabelGroup], int],
        namespaces: frozenset[str] | None = None,
        markers: Iterable[Marker] | None = None,
    ) -> None:
        self.weigh = weigh
        self.namespaces = namespaces
        self.markers = None if markers is None else tuple(dict.fromkeys(markers))

    def over(self, groups: LabelGroups) -> PodCounts:
        """Return the sum per row of the whole table; it is updated as the table changes."""
        return groups.count(self)


class PodCounts:
    """One integer per row of the whole table; `rows` is as long as the table.

    Attributes:
        entries: How often it is listed, in groups whose pods count and where new groups find it.
    """

    __slots__ = ("_array", "_by_code", "_listed", "_rows", "entries")

    def __init__(self, rows: Sized) -> None:
        self.entries = 0
        self._rows = rows
        self._listed: dict[int, int] = {}
        # Beyond the rows of the table, which may be more, it is zero.
        self._array: NDArray[np.int64] | None = None
        # What `by_code` returned for the array, with the column and its version at that time.
        self._by_code: dict[CodedColumn[str | None], tuple[int, NDArray[np.int64]]] = {}

    @property
    def cells(self) -> int:
        """Roughly how many numbers this and its entries hold in memory."""
        cells = self.entries * _ENTRY_CELLS
        if self._array is None:
            return cells + _LISTED_MIN
        return cells + len(self._array) + sum([len(sums) for _, sums in self._by_code.values()])

    def column(self) -> NDArray[np.int64]:
        """Return the numbers as a read-only int64 array, one per row."""
        column = self._to_array() if self._array is None else self._array_of_table(self._array)
        column.flags.writeable = False
        return column

    def by_code(
        self, label: Coded[str | None], rows: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return int64 per code of a label: the sum over its rows, or over those in `rows`."""
        codes, size = label.codes, len(label.values)
        if self._array is None:
            return self._listed_by_code(codes, size, rows)
        column = self._array_of_table(self._array)
        if rows is not None:
            at = rows.nonzero()[0]
            return _sum_by_code(codes.take(at), column.take(at), size)
        if not isinstance(label, CodedColumn):
            return _sum_by_code(codes, column, size)
        version, sums = self._by_code.get(label, (-1, _NO_SUMS))
        if version != label.version:
            sums = _sum_by_code(codes, column, size)
            self._by_code[label] = label.version, sums
        return sums.copy()

    def _listed_by_code(
        self, codes: NDArray[np.int32], size: int, rows: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        sums = np.zeros(size, np.int64)
        if len(self._listed) <= _LOOP_MAX:
            for row, number in self._listed.items():
                if rows is None or rows.item(row):
                    sums[codes.item(row)] += number
            return sums
        at, numbers = self._entries()
        if rows is not None:
            counted = rows[at]
            at, numbers = at[counted], numbers[counted]
        np.add.at(sums, codes[at], numbers)
        return sums

    def _entries(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        size = len(self._listed)
        return (
            np.fromiter(self._listed.keys(), np.intp, size),
            np.fromiter(self._listed.values(), np.int64, size),
        )

    def _to_array(self) -> NDArray[np.int64]:
        array = np.zeros(len(self._rows), np.int64)
        if self._listed:
            at, numbers = self._entries()
            array[at] = numbers
        return array

    def _array_of_table(self, array: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = len(self._rows)
        if len(array) < rows:
            self._array = array = np.concatenate([array, np.zeros(rows, np.int64)])
        return array[:rows]

    # Changes; called only by the groups that own the counts.

    def add(self, row: int, number: int) -> None:
        """Add `number` to a row."""
        array = self._array
        if array is not None:
            if row >= len(array):
                array = self._array_of_table(array)
            array[row] += number
            for label, (version, sums) in self._by_code.items():
                if version == label.version:
                    sums[label.codes.item(row)] += number
            return
        total = self._listed.get(row, 0) + number
        if total:
            self._listed[row] = total
            if len(self._listed) > max(_LISTED_MIN, len(self._rows) // _LISTED_SHARE):
                self._array, self._listed = self._to_array(), {}
        else:
            self._listed.pop(row, None)

    def move(self, source: int, target: int) -> None:
        """Move a row's number to a row that has none; doing it twice changes nothing more."""
        if self._array is not None:
            number = self._array.item(source) if source < len(self._array) else 0
            if number:
                self._array[target], self._array[source] = number, 0
        elif source in self._listed:
            self._listed[target] = self._listed.pop(source)


def _sum_by_code(
    codes: NDArray[np.int32], numbers: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    if size == 1:
        # bincount is slow when all rows are in one bin.
        return np.array([numbers.sum()], np.int64)
    # Sums of integers below 2**53 are exact in float64.
    return np.bincount(codes, numbers, size).astype(np.int64)


@dataclass(slots=True, eq=False)
class DomainSums:
    """One integer per domain of a topology key; a what-if changes a clone.

    A domain is one value of the node label. Nodes without the label belong to no domain.

    Attributes:
        counts: int64 per code of the label; 0 for rows that lack it.
    """

    counts: NDArray[np.int64]

    @classmethod
    def of(
        cls, label: Coded[str | None], pods: PodCounts, rows: NDArray[np.bool_] | None = None
    ) -> DomainSums:
        """Return the sums of `pods` over the domains of a label of the whole table.

        `rows` says per row whether its pods count; None counts all.
        """
        counts = pods.by_code(label, rows)
        absent = label.positions.get(None)
        if absent is not None:
            counts[absent] = 0
        return cls(counts)

    @classmethod
    def zero(cls, label: Coded[str | None]) -> DomainSums:
        """Return 0 for every domain."""
        return cls(np.zeros(len(label.values), np.int64))

    def clone(self) -> DomainSums:
        """Return a copy that can be changed independently."""
        return DomainSums(self.counts.copy())

    @property
    def has_any(self) -> bool:
        """Whether any domain has a sum other than 0."""
        return bool(self.counts.any())

    def move(self, label: Coded[str | None], amount: int) -> None:
        """Add to the domain of a row; `label` is the column of a one-row table."""
        if label[0] is not None:
            self.counts[label.codes.item(0)] += amount

    def at(self, label: Coded[str | None]) -> NDArray[np.int64]:
        """Return, as int64 per row, the sum of its domain; 0 for rows without one."""
        return self.counts.take(label.codes)

    def above(self, label: Coded[str | None], limit: int) -> NDArray[np.bool_]:
        """Return, as bool per row, whether the sum of its domain is larger than `limit`."""
        return (self.counts > limit).take(label.codes)
