"""DomainSums: numbers of pods per domain of a topology key.

A domain is one value of the node label. Nodes without the label belong to no domain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.coded import Coded
from kubesched.snapshot.pod_sums import PodCounts


@dataclass(slots=True, eq=False)
class DomainSums:
    """One integer per domain of a topology key; a what-if changes a clone.

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
