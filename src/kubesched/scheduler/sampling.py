"""Sampling: when a search may stop, and where the next one starts.

Upstream: pkg/scheduler/schedule_one.go, numFeasibleNodesToFind (v1.36)
Differs:  percentageOfNodesToScore 0 looks at all nodes, because columns make that cheap; upstream
          adapts the percentage to the size of the cluster. A percentage that is set is obeyed
          exactly.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

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

        `order` has the rows of the candidates in upstream's order; `passed` says for each of them
        whether it is feasible.
        """
        rolled = np.roll(np.arange(len(order)), -(self.next_start % max(1, len(order))))
        found = np.cumsum(passed[rolled])
        stop = int(np.searchsorted(found, limit)) + 1
        return order[rolled[:stop]]

    def advance(self, processed: int, nodes: int) -> None:
        """Move the start past the nodes just evaluated."""
        self.next_start = (self.next_start + processed) % nodes
