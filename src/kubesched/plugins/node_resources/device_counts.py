"""BackingDevices: which extended resources devices back, and how many there are per node.

Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
          calculateDRAExtendedResourceAllocatableRequest (v1.36)
Reads:    DeviceClasses, ResourceSlices, ResourceClaims
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kubesched import cel
from kubesched.api.core import Node
from kubesched.api.resource import Device, DeviceClass, ResourceSlice
from kubesched.cel.values import CelError
from kubesched.framework.dra.claim_tracker import AllocatedState, DeviceID
from kubesched.framework.dra.devices import (
    NodeSelectorError,
    device_classes_of,
    is_dra_extended_resource_name,
    is_for_node,
)
from kubesched.framework.handle import Handle
from kubesched.plugins.node_resources.scoring import Demands, DeviceCount, Devices
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.snapshot import Snapshot


class _CountedDevices:
    """The devices of one class, counted per node; `find` returns those on a node."""

    def __init__(
        self, find: Callable[[Node], Sequence[DeviceID]], allocated: AllocatedState
    ) -> None:
        self._find = find
        self._allocated = allocated
        self._changed: ChangeReader[DeviceID] = ChangeReader()
        self._devices: dict[str, Sequence[DeviceID]] = {}
        self._nodes: dict[DeviceID, list[str]] = {}
        self._counts: dict[str, DeviceCount] = {}

    def update(self, allocated: AllocatedState) -> None:
        """Forget the counts of nodes that can use devices that were allocated or released."""
        self._allocated = allocated
        changed = self._changed.read(allocated.changes)
        if changed is None:
            self._counts.clear()
            return
        for device in changed:
            for name in self._nodes.get(device, ()):
                self._counts.pop(name, None)

    def on(self, node: Node) -> DeviceCount:
        """Return the count on a node."""
        name = node.metadata.name
        count = self._counts.get(name)
        if count is None:
            devices = self._devices.get(name)
            if devices is None:
                devices = self._devices[name] = self._find(node)
                for device in devices:
                    self._nodes.setdefault(device, []).append(name)
            taken = sum(map(self._allocated.is_allocated, devices))
            count = self._counts[name] = DeviceCount(len(devices), taken)
        return count


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
        self._counted_for: tuple[object, ...] = ()
        # By the node that they name; "" for the others.
        self._slices: dict[str, list[ResourceSlice]] = {}
        # Resource -> what is counted so far.
        self._counted: dict[str, _CountedDevices] = {}

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
        if classes.keys().isdisjoint(demands.scored.resources):
            return demands
        self._update(snapshot)
        devices = {
            at: self._count_per_node(resource, classes[resource], snapshot, feasible)
            for at, resource in enumerate(demands.scored.resources)
            if resource in classes
        }
        return Demands(demands.scored, demands.amounts, devices)

    def _update(self, snapshot: Snapshot) -> None:
        """Forget counts that nodes, slices or classes changed, and what was allocated since."""
        table, objects = snapshot.nodes, snapshot.objects
        read = objects.version(ResourceSlice), objects.version(DeviceClass)
        allocated = self._handle.services.claim_tracker.allocated_state(objects)
        counted_for = (table, table.epoch, objects, read)
        if counted_for != self._counted_for:
            self._counted_for = counted_for
            self._counted.clear()
            self._slices = {}
            for item in objects.list(ResourceSlice):
                self._slices.setdefault(item.spec.node_name or "", []).append(item)
        for counted in self._counted.values():
            counted.update(allocated)

    def _count_per_node(
        self,
        resource: str,
        device_class: DeviceClass,
        snapshot: Snapshot,
        feasible: NDArray[np.bool_],
    ) -> Devices:
        """Count on feasible nodes whose allocatable amounts lack the resource."""
        nodes, counted = snapshot.nodes, self._counted.get(resource)
        if counted is None:
            allocated = self._handle.services.claim_tracker.allocated_state(snapshot.objects)
            find = partial(self._devices_of, device_class)
            counted = self._counted[resource] = _CountedDevices(find, allocated)
        counts: dict[str, DeviceCount] = {}
        for row in np.flatnonzero(feasible & (nodes.allocatable_of(resource) == 0)).tolist():
            count = counted.on(nodes.nodes[row])
            if count.allocatable:
                counts[nodes.names[row]] = count
        return counts

    def _devices_of(self, device_class: DeviceClass, node: Node) -> Sequence[DeviceID]:
        """Return the devices of the class on a node; none if a selector cannot be evaluated."""
        slices = (*self._slices.get(node.metadata.name, ()), *self._slices.get("", ()))
        try:
            return [
                (item.spec.driver, item.spec.pool.name, device.name)
                for item in slices
                for device in _devices_on(item, node)
                if self._matches(device_class, item.spec.driver, item.spec.pool.name, device)
            ]
        except (CelError, cel.DeviceSelectorError, NodeSelectorError):
            return ()

    def _matches(self, device_class: DeviceClass, driver: str, pool: str, device: Device) -> bool:
        variables = None
        for selector in device_class.spec.selectors:
            if selector.cel is None:
                continue
            key = (selector.cel.expression, driver, pool, device.name)
            if key in self._matching:
                continue
            matches = cel.compile_selector(selector.cel.expression)
            if variables is None:
                variables = cel.device_variables(driver, device, allow_multiple_allocations=False)
            if not matches(variables):
                return False
            self._matching.add(key)
        return True


def _devices_on(item: ResourceSlice, node: Node) -> Iterable[Device]:
    spec = item.spec
    if spec.per_device_node_selection:
        return (device for device in spec.devices if is_for_node(device, node))
    selects = spec.node_name or spec.all_nodes or spec.node_selector is not None
    return spec.devices if not selects or is_for_node(spec, node) else ()
