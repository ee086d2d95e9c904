"""Sampling: which rows a search may look at, when it may stop, and where the next one starts.

Upstream: pkg/scheduler/schedule_one.go, numFeasibleNodesToFind;
          pkg/scheduler/backend/cache/snapshot.go, AssumePlacement; pkg/scheduler/framework,
          SetSkipAllPostFilterPlugins (v1.36)
Invariants: outside a pod group's cycle nothing is restricted.
Differs:  percentageOfNodesToScore 0 looks at all nodes, because columns make that cheap; upstream
          adapts the percentage to the size of the cluster. A percentage that is set is obeyed
          exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable

NODES_MIN: Final = 100
"""Smaller clusters are searched as a whole, and larger ones for at least this number."""


def feasible_nodes_to_find(nodes: int, percentage: int) -> int:
    """Return the number of feasible nodes after which a search may stop."""
    if nodes < NODES_MIN or percentage in (0, 100):
        return nodes
    return max(NODES_MIN, nodes * percentage // 100)


class NodeSampler:
    """Keeps where the next search starts, so that searches rotate over all nodes."""

    __slots__ = ("next_start",)

    def __init__(self) -> None:
        self.next_start = 0

    def parts(
        self, nodes: NodeColumns, rows: NDArray[np.intp] | None, limit: int
    ) -> Iterator[NDArray[np.intp]]:
        """Yield all of `rows` (None for all nodes) in upstream's order, in parts that grow.

        The first part is enough to find `limit` feasible rows, if most are feasible.
        """
        order = nodes.snapshot_order
        if rows is not None:
            is_candidate = np.zeros(len(nodes), np.bool_)
            is_candidate[rows] = True
            order = order[is_candidate[order]]
        start = self.next_start % max(1, len(order))
        begin, size = 0, limit + limit // 4
        while begin < len(order):
            end = min(begin + size, len(order))
            yield order.take(np.arange(start + begin, start + end), mode="wrap")
            begin, size = end, 2 * size

    def advance(self, processed: int, nodes: int) -> None:
        """Move the start past the nodes just evaluated."""
        self.next_start = (self.next_start + processed) % nodes


class Restriction:
    """Limits the cycle of a pod group to some nodes, or disables PostFilter plugins.

    Attributes:
        rows: The rows that may be searched, ascending; None for all. PreFilter plugins and scoring
            still see every node.
        skips_post_filters: Whether PostFilter plugins do not run.
    """

    __slots__ = ("rows", "skips_post_filters")

    def __init__(self) -> None:
        self.rows: NDArray[np.intp] | None = None
        self.skips_post_filters = False

    @contextmanager
    def to(self, rows: NDArray[np.intp] | None) -> Iterator[None]:
        """Search these rows only; None for all."""
        self.rows = rows
        try:
            yield
        finally:
            self.rows = None

    @contextmanager
    def without_post_filters(self) -> Iterator[None]:
        """Run no PostFilter plugins."""
        self.skips_post_filters = True
        try:
            yield
        finally:
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
