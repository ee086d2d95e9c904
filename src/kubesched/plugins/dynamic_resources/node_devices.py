"""The devices of one node, and which of them satisfy a request.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go, validateDeviceRequest and isSelectable (v1.36)
Reads:    pools; selectors of classes and requests
Differs:  nothing.
"""

from dataclasses import dataclass, field

from kubesched.api.core import Node
from kubesched.api.resource import ALL, EXACT_COUNT, DeviceClass, ResourceClaim
from kubesched.framework.dra import DeviceClasses, DeviceID
from kubesched.plugins.dynamic_resources.consumption import has_capacity
from kubesched.plugins.dynamic_resources.pools import (
    CandidateDevice,
    PoolError,
    PoolIndex,
    candidates_of,
    matches_node,
)
from kubesched.plugins.dynamic_resources.requests import AllocationError, ParsedRequest
from kubesched.plugins.dynamic_resources.selection import DeviceMatcher

Capacities = dict[DeviceID, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Features:
    """The feature gates of the allocator."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True


@dataclass(slots=True, eq=False)
class Wanted:
    """A request, or an alternative of one, prepared for the search.

    Attributes:
        request: The request.
        device_class: Its device class.
        count: How many devices it needs.
        all_devices: The devices, with mode All.
        selectable: Device -> whether the request may get it, as a cache.
    """

    request: ParsedRequest
    device_class: DeviceClass
    count: int
    all_devices: list[CandidateDevice] = field(default_factory=list)
    selectable: dict[DeviceID, bool] = field(default_factory=dict)


class NodeDevices:
    """The pools and devices that one node can use.

    Attributes:
        pools: The pools, in the order in which they are tried.
        candidates: The devices of complete and valid pools.
    """

    def __init__(
        self,
        node: Node,
        index: PoolIndex,
        classes: DeviceClasses,
        matcher: DeviceMatcher,
        features: Features,
    ) -> None:
        """Find the pools. Raises AllocationError."""
        self._node = node
        self._classes = classes
        self._matcher = matcher
        self._features = features
        try:
            self.pools, self.candidates = index.of(node)
        except PoolError as error:
            raise AllocationError(f"gather pool information: {error}") from error

    def want(self, claim: ResourceClaim, request: ParsedRequest, allocated: Capacities) -> Wanted:
        """Check a request and determine how many devices it needs. Raises AllocationError."""
        where = f"claim {claim.metadata.key}, request {request.name}"
        for at, selector in enumerate(request.selectors):
            if selector.cel is None:
                raise AllocationError(
                    f"{where}, selector #{at}: CEL expression empty (unsupported selector type?)"
                )
        if request.has_admin_access and not self._features.admin_access:
            raise AllocationError(
                f"{where}: admin access is requested, but the feature is disabled"
            )
        device_class = self._class_of(where, request.device_class_name)
        if request.mode == EXACT_COUNT:
            return Wanted(request, device_class, request.count)
        if request.mode != ALL:
            raise AllocationError(f"{where}: unsupported count mode {request.mode}")
        wanted = Wanted(request, device_class, 0)
        self._find_all(claim, wanted, where, allocated)
        return wanted

    def is_selectable(
        self, claim: ResourceClaim, wanted: Wanted, candidate: CandidateDevice
    ) -> bool:
        """Whether the request may get the device. Raises AllocationError."""
        known = wanted.selectable.get(candidate.id)
        if known is None:
            known = self._select(claim, wanted, candidate)
            wanted.selectable[candidate.id] = known
        return known

    def has_capacity(
        self,
        request: ParsedRequest,
        candidate: CandidateDevice,
        allocated: Capacities,
        allocating: Capacities,
    ) -> bool:
        """Whether the device has enough capacity left."""
        if not self._features.consumable_capacity:
            return True
        return has_capacity(
            request.capacity,
            candidate.device,
            allocated.get(candidate.id, {}),
            allocating.get(candidate.id, {}),
        )

    def _class_of(self, where: str, name: str) -> DeviceClass:
        if not name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._classes.get(name)
        if device_class is None:
            raise AllocationError(
                f"{where}: could not retrieve device class {name}:"
                f' deviceclass.resource.k8s.io "{name}" not found'
            )
        return device_class

    def _find_all(
        self, claim: ResourceClaim, wanted: Wanted, where: str, allocated: Capacities
    ) -> None:
        for pool in self.pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.name} is currently"
                    f" {state}"
                )
            wanted.all_devices += [
                candidate
                for candidate in candidates_of(pool)
                if self.is_selectable(claim, wanted, candidate)
                and self.has_capacity(wanted.request, candidate, allocated, {})
            ]
        wanted.count = len(wanted.all_devices)

    def _select(self, claim: ResourceClaim, wanted: Wanted, candidate: CandidateDevice) -> bool:
        device, driver = candidate.device, candidate.id[0]
        if device.binding_conditions and not self._features.binding_conditions:
            return False
        of_class, matches = wanted.device_class, self._matcher.matches
        selected = matches(
            of_class.spec.selectors, driver, device, f"class {of_class.metadata.name}"
        ) and matches(wanted.request.selectors, driver, device, f"claim {claim.metadata.key}")
        if not selected or not candidate.slice.spec.per_device_node_selection:
            return selected
        try:
            return matches_node(device, self._node)
        except PoolError as error:
            raise AllocationError(str(error)) from error
