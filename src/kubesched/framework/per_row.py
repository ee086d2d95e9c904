"""Base classes for plugins that answer for one node at a time.

They are the easiest way to write a plugin; one that must be fast uses the columns of `NodeTable`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node
from kubesched.framework.plugin import FilterPlugin, ScorePlugin
from kubesched.framework.plugin_answers import check_score, check_status
from kubesched.framework.status import NodeToStatus, Status
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

S = TypeVar("S")


class NodeRow:
    """One row of a node table."""

    __slots__ = ("row", "table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self.table = table
        self.row = row

    @property
    def name(self) -> str:
        """The node's name."""
        return self.table.names[self.row]

    @property
    def node(self) -> Node:
        """The Node object."""
        return self.table.nodes[self.row]

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels

    @property
    def pods(self) -> Sequence[PodInfo]:
        """The pods on the node, in order of arrival."""
        return list(self.table.pods[self.row].values())

    def allocatable(self, resource: str) -> int:
        """The allocatable amount: CPU in thousandths of a core, others in whole units."""
        return int(self.table.allocatable_of(resource)[self.row])

    def requested(self, resource: str) -> int:
        """The sum of the requests of the node's pods, in the units of `allocatable`."""
        return int(self.table.requested_of(resource)[self.row])


class PerRowFilter(FilterPlugin[S], Generic[S]):
    """A filter for one node at a time; it runs only for nodes that no plugin has rejected yet."""

    survivors_only: ClassVar[bool] = True

    @abstractmethod
    def filter_node(self, state: S, pod: PodInfo, node: NodeRow) -> Status:
        """Return the node's status."""

    def filter(self, state: S, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Call `filter_node` for each row."""
        return NodeToStatus.of(
            [self.filter_row(state, pod, nodes, row) for row in range(len(nodes))]
        )

    def filter_row(self, state: S, pod: PodInfo, nodes: NodeTable, row: int) -> Status:
        """Call `filter_node`."""
        status = self.filter_node(state, pod, NodeRow(nodes, row))
        check_status("filter_node", status)
        return status


class PerRowScore(ScorePlugin[S], Generic[S]):
    """A score for one node at a time; it runs only for feasible nodes."""

    survivors_only: ClassVar[bool] = True

    @abstractmethod
    def score_node(self, state: S, pod: PodInfo, node: NodeRow) -> int:
        """Return the node's score."""

    def score(self, state: S, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Call `score_node` for each row."""
        return np.array(
            [self.score_row(state, pod, nodes, row) for row in range(len(nodes))], np.int64
        )

    def score_row(self, state: S, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Call `score_node`."""
        score = self.score_node(state, pod, NodeRow(nodes, row))
        check_score("score_node", score)
        return int(score)
