"""DeviceTotals: how many devices of a class a node has and how many are allocated, for scoring.

Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
          calculateDRAExtendedResourceAllocatableRequest (v1.36)
Reads:    ResourceSlices, DeviceClass.spec.selectors
Differs:  nothing. As upstream, pool generations and missing slices are ignored, a slice without a
          node selection counts for all nodes, and a device that matched a selector once is taken
          to match it always.
"""

from collections.abc import Iterable, Iterator

from kubesched import cel
from kubesched.api.core import Node
from kubesched.api.resource import Device, DeviceClass, ResourceSlice
from kubesched.cel.values import CelError
from kubesched.framework.dra.claim_tracker import AllocatedState
from kubesched.framework.dra.node_matching import NodeSelectorError, matches_node_selector


class DeviceTotals:
    """Counts devices; one object per scoring plugin, because it caches which devices match."""

    def __init__(self) -> None:
        self._matching: set[tuple[str, str, str, str]] = set()

    def count(
        self,
        node: Node,
        device_class: DeviceClass,
        slices: Iterable[ResourceSlice],
        allocated: AllocatedState,
    ) -> tuple[int, int]:
        """Return how many devices of the class the node has, and how many are allocated.

        Both are 0 if a selector cannot be evaluated. For a node whose allocatable amounts include
        the resource, this must not be called.
        """
        try:
            return self._count(node, device_class, slices, allocated)
        except (CelError, cel.DeviceSelectorError, NodeSelectorError):
            return 0, 0

    def _count(
        self,
        node: Node,
        device_class: DeviceClass,
        slices: Iterable[ResourceSlice],
        allocated: AllocatedState,
    ) -> tuple[int, int]:
        total = taken = 0
        for item in slices:
            driver, pool = item.spec.driver, item.spec.pool.name
            for device in _devices_on(item, node):
                if self._matches(device_class, driver, pool, device):
                    total += 1
                    taken += allocated.is_allocated((driver, pool, device.name))
        return total, taken

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


def _devices_on(item: ResourceSlice, node: Node) -> Iterator[Device]:
    spec = item.spec
    if spec.per_device_node_selection:
        yield from (device for device in spec.devices if _is_on(device, node))
        return
    if not spec.all_nodes and (spec.node_name or "") != node.metadata.name:
        if spec.node_name:
            return
        if spec.node_selector is not None and not matches_node_selector(spec.node_selector, node):
            return
    yield from spec.devices


def _is_on(device: Device, node: Node) -> bool:
    if device.all_nodes:
        return True
    if device.node_name:
        return device.node_name == node.metadata.name
    return device.node_selector is not None and matches_node_selector(device.node_selector, node)
