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

from kubesched.snapshot.node_table import NodeTable

_NODES_MIN: Final = 100


def feasible_nodes_to_find(nodes: int, percentage: int) -> int:
    """Return the number of feasible nodes after which a search may stop."""
    if nodes < _NODES_MIN or percentage in (0, 100):
        return nodes
    return max(_NODES_MIN, nodes * percentage // 100)


class NodeSampler:
    """Keeps where the next search starts, so that searches rotate over all nodes."""

    __slots__ = ("next_start",)

    def __init__(self) -> None:
        self.next_start = 0

    def tried(
        self, order: NDArray[np.intp], passed: NDArray[np.bool_], limit: int
    ) -> NDArray[np.intp]:
        """Return the rows a search for `limit` feasible nodes evaluates, in search order.

        As upstream's, it ends at the next feasible node; the rows before that count as evaluated.
        `order` has the rows of the candidates in upstream's order; `passed` says for each of them
        whether it is feasible.
        """
        rolled = np.roll(np.arange(len(order)), -(self.next_start % max(1, len(order))))
        found = np.cumsum(passed[rolled])
        stop = int(np.searchsorted(found, limit + 1))
        return order[rolled[:stop]]

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
