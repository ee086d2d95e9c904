"""Utilisation: requested and allocatable resources per node, per zone and in total; fragmentation.

Fragmentation is the share of free resources that an average pod cannot use. The average pod has the
mean requests of all pods so far. On each node, its scarcest resource limits how many average pods
fit; free resources beyond those are fragmented. Resources that no pod requests are left out.

Reads:    the node table's allocatable, requested and pod counts
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.names import PODS
from kubesched.simulator.report import NodeUse, ResourceUse, ZoneUse, resource_use
from kubesched.snapshot.node_table import NodeTable

FIRST_RESOURCES: Final = ("cpu", "memory", PODS)
"""The resources that come first wherever resources are listed."""
_ZONE_SEPARATOR: Final = ":\x00:"


class Utilisation:
    """Compares the usage of nodes with that of the moment when this object was made.

    The resources are cpu, memory and pods, then by name all others that a node has or a pod
    requests. `placed` is the number of pods that were placed in between, by node name.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        names = (*nodes.resources, *nodes.rare, PODS)
        self._requested = {name: amounts_of(nodes, name)[1].copy() for name in names}

    def _amounts(self) -> dict[str, NDArray[np.int64]]:
        """Return resource -> allocatable, requested before and requested now: 3 x rows."""
        nodes = self._nodes
        nothing = np.zeros(len(nodes), np.int64)
        found = {}
        for name in resource_names(nodes):
            allocatable, requested = amounts_of(nodes, name)
            # A resource that only pods request is known from the first placed pod on.
            before = self._requested.get(name, nothing)
            found[name] = np.stack((allocatable, before, requested))
        return found

    def total(self) -> tuple[ResourceUse, ...]:
        """Return the use of all nodes together."""
        return _sums(self._amounts())

    def nodes(self, placed: Mapping[str, int]) -> tuple[NodeUse, ...]:
        """Return the use of each node, by name."""
        names = self._nodes.names
        columns = {name: amounts.T.tolist() for name, amounts in self._amounts().items()}
        return tuple(
            NodeUse(
                names[row],
                *region_and_zone(self._nodes.zones[row]),
                placed.get(names[row], 0),
                tuple(resource_use(name, *columns[name][row]) for name in columns),
            )
            for row in sorted(range(len(names)), key=names.__getitem__)
        )

    def zones(self, placed: Mapping[str, int]) -> tuple[ZoneUse, ...]:
        """Return the use of each zone, by region and zone."""
        amounts, names = self._amounts(), self._nodes.names
        zones: dict[tuple[str, str], list[int]] = {}
        for row in range(len(names)):
            zones.setdefault(region_and_zone(self._nodes.zones[row]), []).append(row)
        return tuple(
            ZoneUse(
                *key,
                len(rows),
                sum(placed.get(names[row], 0) for row in rows),
                _sums({name: each[:, rows] for name, each in amounts.items()}),
            )
            for key, rows in sorted(zones.items())
        )


def _sums(amounts: Mapping[str, NDArray[np.int64]]) -> tuple[ResourceUse, ...]:
    # Python's integers, because sums of absurd amounts may exceed int64.
    return tuple(
        resource_use(name, *(sum(line) for line in lines.tolist()))
        for name, lines in amounts.items()
    )


def resource_names(nodes: NodeTable) -> Iterator[str]:
    """Yield cpu, memory, pods, then by name the others that a node has or a pod requests."""
    yield from FIRST_RESOURCES
    for name in sorted((*nodes.resources, *nodes.rare)):
        if name not in FIRST_RESOURCES and (
            nodes.allocatable_of(name).any() or nodes.requested_of(name).any()
        ):
            yield name


def amounts_of(nodes: NodeTable, resource: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what each row can give of a resource, and what the pods on it request."""
    if resource == PODS:
        return nodes.allowed_pods, nodes.pod_counts
    return nodes.allocatable_of(resource), nodes.requested_of(resource)


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
        self._sums: Counter[str] = Counter()

    def add(self, amounts: Mapping[str, int]) -> None:
        """Count a pod's requests."""
        self._count += 1
        self._sums.update(amounts)

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
