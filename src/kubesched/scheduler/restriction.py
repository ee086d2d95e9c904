"""Restriction limits a pod group's cycle to some nodes, or disables PostFilter plugins.

Upstream: pkg/scheduler/backend/cache/snapshot.go, AssumePlacement; pkg/scheduler/framework,
          SetSkipAllPostFilterPlugins (v1.36)
Invariants: outside such a cycle nothing is restricted.
Differs:  nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.node_table import NodeTable


class Restriction:
    """The current restriction of one profile's cycles.

    Attributes:
        rows: The rows that may be searched, ascending; None for all. PreFilter plugins and scoring
            still see every node.
        skips_post_filters: Whether PostFilter plugins do not run.
    """

    __slots__ = ("rows", "skips_post_filters")

    def __init__(self) -> None:
        self.rows: NDArray[np.intp] | None = None
        self.skips_post_filters = False

    def count(self, nodes: NodeTable) -> int:
        """Return the number of nodes that may be searched."""
        return len(nodes) if self.rows is None else len(self.rows)

    def allows(self, row: int) -> bool:
        """Whether a row may be searched."""
        return self.rows is None or bool((self.rows == row).any())

    def narrow(self, rows: NDArray[np.intp] | None) -> NDArray[np.intp] | None:
        """Return those of some ascending rows that may be searched; None stands for all rows."""
        if self.rows is None or rows is None:
            return rows if self.rows is None else self.rows
        return np.intersect1d(rows, self.rows, assume_unique=True)
