"""BackingDevices: which extended resources devices back, and how many there are per node.

Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
          calculateDRAExtendedResourceAllocatableRequest (v1.36)
Reads:    DeviceClasses, ResourceSlices, ResourceClaims
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kubesched import cel
from kubesched.api.core import Node
from kubesched.api.resource import Device, DeviceClass, ResourceSlice
from kubesched.cel.values import CelError
from kubesched.framework.dra import (
    AllocatedState,
    NodeSelectorError,
    device_classes_of,
    is_dra_extended_resource_name,
    is_for_node,
)
from kubesched.framework.handle import Handle
from kubesched.plugins.node_resources.scoring import Demands, DeviceCount, Devices
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.snapshot import Snapshot


class BackingDevices:
    """The devices that back extended resources; one object per plugin.

    As upstream, the counts ignore pool generations and missing slices, a slice without a node
    selection counts for all nodes, and a device that matched a selector once is taken to match it
    always.

    Attributes:
        enabled: Whether devices can back resources at all: the feature gate DRAExtendedResource.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.enabled = handle.feature_gates.enabled("DRAExtendedResource")
        self._matching: set[tuple[str, str, str, str]] = set()

    def back(self, resource: str, objects: Objects) -> bool:
        """Whether a device class backs the resource."""
        return (
            self.enabled
            and objects.any(DeviceClass)
            and is_dra_extended_resource_name(resource)
            and device_classes_of(objects).backs(resource)
        )

    def back_any(self, requests: Iterable[tuple[str, int]]) -> bool:
        """Whether a device class backs one of the requested resources."""
        objects = self._handle.objects
        may_back = self.enabled and objects.any(DeviceClass)
        return may_back and any(amount and self.back(name, objects) for name, amount in requests)

    def count(self, demands: Demands, snapshot: Snapshot, feasible: NDArray[np.bool_]) -> Demands:
        """Return the demands, with devices per node for those that a device class backs."""
        if not self.enabled or not snapshot.objects.any(DeviceClass):
            return demands
        classes = device_classes_of(snapshot.objects).by_resource
        devices = {
            at: self._count_per_node(resource, classes[resource], snapshot, feasible)
            for at, resource in enumerate(demands.scored.resources)
            if resource in classes
        }
        return Demands(demands.scored, demands.amounts, devices)

    def _count_per_node(
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
            count = self._count_on(nodes.nodes[row], device_class, slices, allocated)
            if count.allocatable:
                counts[nodes.names[row]] = count
        return counts

    def _count_on(
        self,
        node: Node,
        device_class: DeviceClass,
        slices: Iterable[ResourceSlice],
        allocated: AllocatedState,
    ) -> DeviceCount:
        """Count the devices of the class on a node; 0 if a selector cannot be evaluated."""
        total = taken = 0
        try:
            for item in slices:
                driver, pool = item.spec.driver, item.spec.pool.name
                for device in _devices_on(item, node):
                    if self._matches(device_class, driver, pool, device):
                        total += 1
                        taken += allocated.is_allocated((driver, pool, device.name))
        except (CelError, cel.DeviceSelectorError, NodeSelectorError):
            return DeviceCount(0, 0)
        return DeviceCount(total, taken)

    def _matches(self, device_class: DeviceClass, driver: str, pool: str, device: Device) -> bool:
        variables = None
        for selector in device_class.spec.selectors:
            if selector.cel is None:
                continue
            key = (selector.cel.expression, driver, pool, device.name)
            if key in self._matching:
                continue
            compiled = cel.compile_selector(selector.cel.expression)
            if variables is None:
                variables = cel.device_variables(driver, device, allow_multiple_allocations=False)
            if not compiled.matches(variables):
                return False
            self._matching.add(key)
        return True


def _devices_on(item: ResourceSlice, node: Node) -> Iterable[Device]:
    spec = item.spec
    if spec.per_device_node_selection:
        return (device for device in spec.devices if is_for_node(device, node))
    selects = spec.node_name or spec.all_nodes or spec.node_selector is not None
    return spec.devices if not selects or is_for_node(spec, node) else ()
