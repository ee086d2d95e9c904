"""Fragmentation: the share of free resources that an average pod cannot use.

The average pod has the mean requests of all pods so far. On each node, its scarcest resource limits
how many average pods fit; free resources beyond those are fragmented. Resources that no pod
requests are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from kubesched.snapshot.node_table import NodeTable

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

    Args:
        nodes: The table.
        pod: The requests of a pod. `pods` is a limit only, and unknown resources are left out.
    """
    known = [name for name in pod if name in nodes.resources and name != "pods"]
    if not known or not len(nodes):
        return {}
    at = [nodes.resources[name] for name in known]
    wanted = np.array([pod[name] for name in known])
    free = np.maximum(nodes.allocatable[at] - nodes.requested[at], 0).astype(np.float64)
    slots = np.maximum(nodes.allowed_pods - nodes.pod_counts, 0).astype(np.float64)
    fitting = np.minimum(np.floor((free / wanted[:, None]).min(axis=0) + _ROUNDING), slots)
    used = fitting * wanted[:, None]
    totals = free.sum(axis=1)
    left = totals - used.sum(axis=1)
    return {
        name: float(left[i] / totals[i]) if totals[i] > 0 else 0.0 for i, name in enumerate(known)
    }
