"""Utilisation: requested and allocatable resources per node, per zone and in total.

Reads:    the node table's allocatable, requested and pod counts
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.simulator.report import NodeUse, ResourceUse, ZoneUse, resource_use
from kubesched.snapshot.node_table import NodeTable

FIRST_RESOURCES: Final = ("cpu", "memory", "pods")
"""The resources that come first wherever resources are listed."""
_ZONE_SEPARATOR: Final = ":\x00:"


class Usage(msgspec.Struct, frozen=True):
    """The requests of all pods at one moment.

    Attributes:
        requested: int64, resources x rows, in the order of the table's resources.
        pod_counts: int64 per row.
    """

    requested: NDArray[np.int64]
    pod_counts: NDArray[np.int64]

    @classmethod
    def of(cls, nodes: NodeTable) -> Usage:
        """Copy the usage of a node table."""
        return cls(nodes.requested.copy(), nodes.pod_counts.copy())


class Utilisation:
    """Compares the usage of the same nodes at two moments.

    Attributes:
        resources: The reported resources: cpu, memory, pods, then by name all others that a node
            has or a pod requests.
    """

    def __init__(self, nodes: NodeTable, before: Usage, placed: Mapping[str, int]) -> None:
        """Set up with the current table as the end state.

        Args:
            nodes: The table.
            before: The usage at the beginning.
            placed: Node name -> number of pods that were placed and stayed.
        """
        self._nodes = nodes
        self._placed = placed
        self._amounts = {name: self._amounts_of(name, before) for name in resource_names(nodes)}

    def _amounts_of(self, name: str, before: Usage) -> NDArray[np.int64]:
        """Return allocatable, requested before and requested after: 3 x rows."""
        nodes = self._nodes
        if name == "pods":
            return np.stack((nodes.allowed_pods, before.pod_counts, nodes.pod_counts))
        at = nodes.resources.get(name)
        if at is None:
            return np.zeros((3, len(nodes)), np.int64)
        # A resource that only pods request gets its row with the first placed pod.
        known = at < len(before.requested)
        earlier = before.requested[at] if known else np.zeros(len(nodes), np.int64)
        return np.stack((nodes.allocatable[at], earlier, nodes.requested[at]))

    def total(self) -> tuple[ResourceUse, ...]:
        """Return the use of all nodes together."""
        return self._sums(np.arange(len(self._nodes)))

    def nodes(self) -> tuple[NodeUse, ...]:
        """Return the use of each node, by name."""
        names = self._nodes.names
        columns = {name: amounts.T.tolist() for name, amounts in self._amounts.items()}
        return tuple(
            NodeUse(
                names[row],
                *region_and_zone(self._nodes.zones[row]),
                self._placed.get(names[row], 0),
                tuple(resource_use(name, *columns[name][row]) for name in columns),
            )
            for row in sorted(range(len(names)), key=names.__getitem__)
        )

    def zones(self) -> tuple[ZoneUse, ...]:
        """Return the use of each zone, by region and zone."""
        rows: dict[tuple[str, str], list[int]] = {}
        for row in range(len(self._nodes)):
            rows.setdefault(region_and_zone(self._nodes.zones[row]), []).append(row)
        return tuple(self._zone(key, rows[key]) for key in sorted(rows))

    def _zone(self, key: tuple[str, str], rows: Sequence[int]) -> ZoneUse:
        placed = sum(self._placed.get(self._nodes.names[row], 0) for row in rows)
        return ZoneUse(*key, len(rows), placed, self._sums(np.array(rows, np.intp)))

    def _sums(self, rows: NDArray[np.intp]) -> tuple[ResourceUse, ...]:
        # Python's integers, because sums of absurd amounts may exceed int64.
        return tuple(
            resource_use(name, *(sum(line) for line in amounts[:, rows].tolist()))
            for name, amounts in self._amounts.items()
        )


def resource_names(nodes: NodeTable) -> Iterator[str]:
    """Yield cpu, memory, pods, then by name the others that a node has or a pod requests."""
    yield from FIRST_RESOURCES
    for name in sorted(nodes.resources):
        at = nodes.resources[name]
        if name not in FIRST_RESOURCES and (
            nodes.allocatable[at].any() or nodes.requested[at].any()
        ):
            yield name


def region_and_zone(key: str) -> tuple[str, str]:
    """Return region and zone of a key in `NodeTable.zones`; "" for those that a node lacks."""
    region, _, zone = key.partition(_ZONE_SEPARATOR)
    return region, zone
