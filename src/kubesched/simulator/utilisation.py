"""Utilisation: requested and allocatable resources per node, per zone and in total; fragmentation.

Fragmentation is the share of free resources that an average pod cannot use. The average pod has the
mean requests of all pods so far. On each node, its scarcest resource limits how many average pods
fit; free resources beyond those are fragmented. Resources that no pod requests are left out.

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
        requested: Resource -> int64 per row.
        pod_counts: int64 per row.
    """

    requested: Mapping[str, NDArray[np.int64]]
    pod_counts: NDArray[np.int64]

    @classmethod
    def of(cls, nodes: NodeTable) -> Usage:
        """Copy the usage of a node table."""
        names = (*nodes.resources, *nodes.rare)
        return cls(
            {name: nodes.requested_of(name).copy() for name in names}, nodes.pod_counts.copy()
        )


class Utilisation:
    """Compares the usage of the same nodes at two moments.

    The resources are cpu, memory and pods, then by name all others that a node has or a pod
    requests.
    """

    def __init__(self, nodes: NodeTable, before: Usage, placed: Mapping[str, int]) -> None:
        """Set up with the current table as the end state, and the usage at the beginning.

        `placed` is the number of pods that were placed and stayed, by node name.
        """
        self._nodes = nodes
        self._placed = placed
        self._amounts = {name: self._amounts_of(name, before) for name in resource_names(nodes)}

    def _amounts_of(self, name: str, before: Usage) -> NDArray[np.int64]:
        """Return allocatable, requested before and requested after: 3 x rows."""
        nodes = self._nodes
        if name == "pods":
            return np.stack((nodes.allowed_pods, before.pod_counts, nodes.pod_counts))
        # A resource that only pods request is known from the first placed pod on.
        earlier = before.requested.get(name)
        if earlier is None:
            earlier = np.zeros(len(nodes), np.int64)
        return np.stack((nodes.allocatable_of(name), earlier, nodes.requested_of(name)))

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
    for name in sorted((*nodes.resources, *nodes.rare)):
        if name not in FIRST_RESOURCES and (
            nodes.allocatable_of(name).any() or nodes.requested_of(name).any()
        ):
            yield name


def region_and_zone(key: str) -> tuple[str, str]:
    """Return region and zone of a key in `NodeTable.zones`; "" for those that a node lacks."""
    region, _, zone = key.partition(_ZONE_SEPARATOR)
    return region, zone


# Fragmentation.

# Rounding in the division must not lose a pod that fits exactly.
_ROUNDING: Final = 1e-9


class AveragePod:
    """The mean requests of pods."""

    def __init__(self) -> None:
        self._count = 0
        self._sums: dict[str, int] = {}

    def add(self, amounts: Mapping[str, int]) -> None:
        """Count a pod's requests."""
        self._count += 1
        for resource, amount in amounts.items():
            self._sums[resource] = self._sums.get(resource, 0) + amount

    def amounts(self) -> dict[str, float]:
        """Return resource -> mean request, for resources that any pod requests."""
        return {name: total / self._count for name, total in self._sums.items() if total}


def fragmentation(nodes: NodeTable, pod: Mapping[str, float]) -> dict[str, float]:
    """Return resource -> the share (0 to 1) of free amounts that pods like this one cannot use.

    `pod` has the requests of a pod. `pods` is a limit only, and unknown resources are left out.
    """
    every = nodes.resources.keys() | nodes.rare.keys()
    known = [name for name in pod if name in every and name != "pods"]
    if not known or not len(nodes):
        return {}
    offered, used = nodes.amounts_of(known)
    wanted = np.array([pod[name] for name in known])
    free = np.maximum(offered - used, 0).astype(np.float64)
    slots = np.maximum(nodes.allowed_pods - nodes.pod_counts, 0).astype(np.float64)
    fitting = np.minimum(np.floor((free / wanted[:, None]).min(axis=0) + _ROUNDING), slots)
    used = fitting * wanted[:, None]
    totals = free.sum(axis=1)
    left = totals - used.sum(axis=1)
    return {
        name: float(left[i] / totals[i]) if totals[i] > 0 else 0.0 for i, name in enumerate(known)
    }
