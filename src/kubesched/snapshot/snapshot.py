"""Snapshot is the cluster as one cycle sees it: node table, other objects, nominated pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from kubesched.snapshot.node_table import NodeColumns
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo


class NominatedPods(Protocol):
    """Pods that have been promised a node and are not on it yet."""

    @property
    def version(self) -> int:
        """A number that moves with every promise that is made or taken back."""
        ...

    def __bool__(self) -> bool:
        """Whether there is any."""
        ...

    def on_node(self, name: str) -> Sequence[PodInfo]:
        """Return the pods nominated to a node."""
        ...

    def node_names(self) -> Sequence[str]:
        """Return the nodes that have nominated pods, each once, in a fixed order."""
        ...

    def node_of(self, uid: str) -> str:
        """Return the node a pod is nominated to, "" if it is not."""
        ...


class NoNominatedPods:
    """Nobody is nominated."""

    version = 0

    def __bool__(self) -> bool:
        return False

    def on_node(self, name: str) -> Sequence[PodInfo]:
        """Return no pods."""
        return ()

    def node_names(self) -> Sequence[str]:
        """Return no nodes."""
        return ()

    def node_of(self, uid: str) -> str:
        """Return no node."""
        return ""


NOBODY_NOMINATED: Final = NoNominatedPods()


class Snapshot(msgspec.Struct, frozen=True):
    """Read-only for the length of a cycle.

    Attributes:
        nodes: One row per node, with the pods on it.
        objects: Services, claims, volumes, namespaces and so on.
        nominated: Pods promised to nodes.
    """

    nodes: NodeColumns
    objects: Objects
    nominated: NominatedPods = NOBODY_NOMINATED
