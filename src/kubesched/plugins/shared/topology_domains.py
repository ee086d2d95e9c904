"""DomainSums: numbers of pods per domain of a topology key.

A domain is one value of the node label. Nodes without the label belong to no domain.

Invariants: the sums of a cycle do not change; the few changes of a what-if are kept separately.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.coded import Coded
from kubesched.snapshot.pod_sums import PodCounts

_NO_CODE: Final = -1


def code_without_label(label: Coded[str | None]) -> int:
    """Return the code of rows that lack the label, or -1 if all rows have it."""
    return label.positions.get(None, _NO_CODE)


class DomainSums:
    """One integer per domain of a topology key, which a what-if may change.

    Attributes:
        counts: int64 per code of the label; 0 for rows that lack it.
        moved: Code -> what a what-if has added.
    """

    __slots__ = ("_absent", "counts", "moved")

    def __init__(self, counts: NDArray[np.int64], absent: int) -> None:
        self.counts = counts
        self._absent = absent
        self.moved: dict[int, int] = {}

    @classmethod
    def of(cls, label: Coded[str | None], pods: PodCounts) -> DomainSums:
        """Return the sums of `pods` over the domains of a label of the whole table."""
        counts = pods.by_code(label)
        absent = code_without_label(label)
        if absent != _NO_CODE:
            counts[absent] = 0
        return cls(counts, absent)

    @classmethod
    def zero(cls, label: Coded[str | None]) -> DomainSums:
        """Return 0 for every domain."""
        return cls(np.zeros(len(label.values), np.int64), code_without_label(label))

    def clone(self) -> DomainSums:
        """Return a copy that can be changed independently."""
        copy = DomainSums(self.counts, self._absent)
        copy.moved = self.moved.copy()
        return copy

    @property
    def has_any(self) -> bool:
        """Whether any domain has a sum other than 0."""
        if not self.moved:
            return bool(self.counts.any())
        counts = self.counts.copy()
        for code, amount in self.moved.items():
            counts[code] += amount
        return bool(counts.any())

    def move(self, label: Coded[str | None], amount: int) -> None:
        """Add to the domain of a row; `label` is the column of a one-row table."""
        code = int(label.codes[0])
        if code != self._absent:
            self.moved[code] = self.moved.get(code, 0) + amount

    def at(self, label: Coded[str | None]) -> NDArray[np.int64]:
        """Return, as int64 per row, the sum of its domain; 0 for rows without one."""
        sums = self.counts.take(label.codes)
        for code, amount in self.moved.items():
            sums[label.codes == code] += amount
        return sums

    def above(self, label: Coded[str | None], limit: int) -> NDArray[np.bool_]:
        """Return, as bool per row, whether the sum of its domain is larger than `limit`."""
        if self.moved:
            return self.at(label) > limit
        return (self.counts > limit).take(label.codes)
