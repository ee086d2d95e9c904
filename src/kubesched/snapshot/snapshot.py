"""Snapshot is the cluster during one cycle: node table, other objects, nominated pods."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable, SelectedRows
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.objects import Objects

NO_NOMINATED_PODS: Final = Nominator()


class Snapshot(msgspec.Struct, frozen=True):
    """The cluster, unchanged during one cycle.

    Attributes:
        nodes: One row per node, with the pods on it.
        objects: Services, claims, volumes, namespaces and so on.
        nominated: The nominated pods.
    """

    nodes: NodeColumns
    objects: Objects
    nominated: Nominator = NO_NOMINATED_PODS

    def rows_of(self, nodes: NodeTable) -> NDArray[np.intp] | slice:
        """Return the rows of the table that `nodes`, a selection of it or itself, consists of."""
        if nodes is self.nodes:
            return slice(None)
        if isinstance(nodes, SelectedRows) and nodes.origin and nodes.origin[0] is self.nodes:
            return nodes.origin[1]
        row_of = self.nodes.row_of
        return np.array([row_of[name] for name in nodes.names], np.intp)

    def has_pods_of(self, nodes: NodeTable) -> bool:
        """Whether `nodes` is the table, or a selection of it with the same pods."""
        if nodes is self.nodes:
            return True
        return (
            isinstance(nodes, SelectedRows)
            and nodes.origin is not None
            and nodes.origin[0] is self.nodes
        )
