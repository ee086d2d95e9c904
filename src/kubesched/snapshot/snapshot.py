"""Snapshot is the cluster during one cycle: node table, other objects, nominated pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable, SelectedRows
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo


class NominatedPods(Protocol):
    """Pods that are nominated to a node and not on it yet."""

    @property
    def version(self) -> int:
        """A number that increases with every change."""
        ...

    def changed_since(self, version: int) -> Sequence[str] | None:
        """Return the nodes whose nominations changed since a version; None if not known."""
        ...

    def __bool__(self) -> bool:
        """Whether any pod is nominated."""
        ...

    @property
    def by_node(self) -> Mapping[str, tuple[PodInfo, ...]]:
        """The nominated pods per node name, in a fixed order.

        While nothing changes at a node, it keeps the same tuple.
        """
        ...

    def on_node(self, name: str) -> tuple[PodInfo, ...]:
        """Return the pods nominated to a node."""
        ...

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to, "" if none."""
        ...


class NoNominatedPods:
    """An empty `NominatedPods`."""

    version = 0
    by_node: Final[Mapping[str, tuple[PodInfo, ...]]] = {}

    def changed_since(self, version: int) -> Sequence[str] | None:
        """Return ()."""
        return ()

    def __bool__(self) -> bool:
        return False

    def on_node(self, name: str) -> tuple[PodInfo, ...]:
        """Return ()."""
        return ()

    def node_of(self, uid: str) -> str:
        """Return ""."""
        return ""


NO_NOMINATED_PODS: Final = NoNominatedPods()


class Snapshot(msgspec.Struct, frozen=True):
    """The cluster, unchanged during one cycle.

    Attributes:
        nodes: One row per node, with the pods on it.
        objects: Services, claims, volumes, namespaces and so on.
        nominated: The nominated pods.
    """

    nodes: NodeColumns
    objects: Objects
    nominated: NominatedPods = NO_NOMINATED_PODS

    def rows_of(self, nodes: NodeTable) -> NDArray[np.intp] | slice:
        """Return the rows of the table that `nodes`, a selection of it or itself, consists of."""
        if nodes is self.nodes:
            return slice(None)
        if isinstance(nodes, SelectedRows) and nodes.origin and nodes.origin[0] is self.nodes:
            return nodes.origin[1]
        row_of = self.nodes.row_of
        return np.array([row_of[name] for name in nodes.names], np.intp)
