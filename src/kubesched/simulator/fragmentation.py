"""Fragmentation: how much of what is free no pod can use, because something else is missing there.

The measure is an average pod, by what pods have asked for so far. On each node as many of them fit,
whole ones, as its scarcest resource allows; what is left then is fragmented. Resources that pods
never ask for are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from kubesched.snapshot.node_table import NodeTable

# A pod that fits exactly must not be lost to the division.
_ROUNDING: Final = 1e-9


class AveragePod:
    """What pods ask for on average."""

    def __init__(self) -> None:
        self._count = 0
        self._sums: dict[str, int] = {}

    def add(self, amounts: Mapping[str, int]) -> None:
        """Count a pod's requests."""
        self._count += 1
        for resource, amount in amounts.items():
            self._sums[resource] = self._sums.get(resource, 0) + amount

    def amounts(self) -> dict[str, float]:
        """Return the mean of each resource that anything was asked of."""
        return {name: total / self._count for name, total in self._sums.items() if total}


def fragmentation(nodes: NodeTable, pod: Mapping[str, float]) -> dict[str, float]:
    """Return per resource the share of what is free that pods like this one cannot use.

    Args:
        nodes: The table.
        pod: What a pod asks for; resources that no node knows are left out, and so is `pods`,
            which only limits.
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
