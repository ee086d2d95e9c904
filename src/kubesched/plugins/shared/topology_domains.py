"""Sums of pods over the domains of a topology key, by the codes of the node label.

A domain is one value of the label. Nodes without the label belong to no domain.

Invariants: the sums of a cycle never change; what-if changes lie beside them and are few.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.coded import Coded
from kubesched.snapshot.pod_sums import PodCounts

_NO_CODE: Final = -1


def code_without_label(label: Coded[str | None]) -> int:
    """Return the code of rows that lack the label; -1 if no row does."""
    return label.positions.get(None, _NO_CODE)


class DomainSums:
    """One integer per domain of a topology key, which what-if questions may move.

    Attributes:
        counts: int64 per code of the label; 0 for rows that lack it.
        moved: What has been added since, by code.
    """

    __slots__ = ("_absent", "counts", "moved")

    def __init__(self, counts: NDArray[np.int64], absent: int) -> None:
        self.counts = counts
        self._absent = absent
        self.moved: dict[int, int] = {}

    @classmethod
    def of(cls, label: Coded[str | None], pods: PodCounts) -> DomainSums:
        """Sum what the rows of the whole table count over the domains of a label."""
        counts = pods.by_code(label)
        absent = code_without_label(label)
        if absent != _NO_CODE:
            counts[absent] = 0
        return cls(counts, absent)

    @classmethod
    def zero(cls, label: Coded[str | None]) -> DomainSums:
        """Nothing in any domain."""
        return cls(np.zeros(len(label.values), np.int64), code_without_label(label))

    def clone(self) -> DomainSums:
        """Copy; the copy may be moved without the original seeing it."""
        copy = DomainSums(self.counts, self._absent)
        copy.moved = self.moved.copy()
        return copy

    @property
    def has_any(self) -> bool:
        """Whether a domain has something other than zero."""
        if not self.moved:
            return bool(self.counts.any())
        counts = self.counts.copy()
        for code, amount in self.moved.items():
            counts[code] += amount
        return bool(counts.any())

    def move(self, label: Coded[str | None], amount: int) -> None:
        """Add to the domain of the one row that `label` is the column of."""
        code = int(label.codes[0])
        if code != self._absent:
            self.moved[code] = self.moved.get(code, 0) + amount

    def at(self, label: Coded[str | None]) -> NDArray[np.int64]:
        """Return, per row, the sum of its domain; 0 where the row has none."""
        sums = self.counts.take(label.codes)
        for code, amount in self.moved.items():
            sums[label.codes == code] += amount
        return sums

    def above(self, label: Coded[str | None], limit: int) -> NDArray[np.bool_]:
        """Return, per row, whether the sum of its domain is larger than `limit`."""
        if self.moved:
            return self.at(label) > limit
        return (self.counts > limit).take(label.codes)
