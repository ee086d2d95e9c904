"""DeviceCounter: counts, per node, the devices that back extended resources, for scoring.

Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go (v1.36)
Reads:    DeviceClasses, ResourceSlices, ResourceClaims
Differs:  nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kubesched.api.resource import DeviceClass, ResourceSlice
from kubesched.framework.dra import DeviceTotals, device_classes_of
from kubesched.framework.handle import Handle
from kubesched.plugins.node_resources.scoring import Demands, DeviceCount, Devices
from kubesched.snapshot.snapshot import Snapshot


class DeviceCounter:
    """Counts the devices that back scored resources; one object per plugin."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._totals = DeviceTotals()

    def with_devices(
        self, demands: Demands, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Demands:
        """Return the demands, with devices per node for those that a device class backs."""
        if not snapshot.objects.any(DeviceClass):
            return demands
        classes = device_classes_of(snapshot.objects).by_resource
        devices = {
            at: self._count(resource, classes[resource], snapshot, feasible)
            for at, resource in enumerate(demands.scored.resources)
            if resource in classes
        }
        return Demands(demands.scored, demands.amounts, devices)

    def _count(
        self,
        resource: str,
        device_class: DeviceClass,
        snapshot: Snapshot,
        feasible: NDArray[np.bool_],
    ) -> Devices:
        """Count on feasible nodes whose allocatable amounts lack the resource."""
        nodes = snapshot.nodes
        slices = tuple(snapshot.objects.list(ResourceSlice))
        allocated = self._handle.services.claim_tracker.allocated_state(snapshot.objects)
        counts: dict[str, DeviceCount] = {}
        for row in np.flatnonzero(feasible & (nodes.allocatable_of(resource) == 0)).tolist():
            there, taken = self._totals.count(nodes.nodes[row], device_class, slices, allocated)
            if there > 0:
                counts[nodes.names[row]] = DeviceCount(there, taken)
        return counts
