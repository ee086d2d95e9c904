"""The devices of one node, and which of them satisfy a request.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go, validateDeviceRequest, isSelectable and selectorsMatch (v1.36)
Reads:    pools; selectors of classes and requests; device.attributes, device.capacity
Differs:  the result of a selector is cached as long as the device does not change.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kubesched import cel
from kubesched.api.core import Node
from kubesched.api.resource import (
    ALL,
    EXACT_COUNT,
    Device,
    DeviceClass,
    DeviceSelector,
    ResourceClaim,
)
from kubesched.cel.values import CelError
from kubesched.framework.dra.claim_tracker import AllocatedState, DeviceID
from kubesched.framework.dra.devices import DeviceClasses
from kubesched.framework.dra.pools import (
    AllocationError,
    CandidateDevice,
    PoolID,
    PoolIndex,
    candidates_of,
    matches_node,
)
from kubesched.plugins.dynamic_resources.consumption import has_capacity
from kubesched.plugins.dynamic_resources.requests import ParsedRequest

_ANSWERS_MAX: Final = 1 << 20
"""About 200 bytes each."""


@dataclass(frozen=True, slots=True)
class Features:
    """The feature gates of the allocator."""

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
        unusable: The ids of candidates that the request cannot get, from earlier searches.
    """

    request: ParsedRequest
    device_class: DeviceClass
    count: int
    all_devices: list[CandidateDevice] = field(default_factory=list)
    selectable: dict[DeviceID, bool] = field(default_factory=dict)
    unusable: set[int] = field(default_factory=set)


class UnusableDevices:
    """Devices of common pools that equal claims cannot get until their pools change.

    They are told apart by the ids of candidates: nodes may see different slices of a pool, with
    different devices of the same name.
    """

    def __init__(self) -> None:
        self._by_request: dict[tuple[int, ...], set[int]] = {}
        self._by_pool: dict[PoolID, list[tuple[set[int], CandidateDevice]]] = {}

    def __len__(self) -> int:
        """Number of devices, each counted for every request that cannot get it."""
        return sum(map(len, self._by_request.values()))

    def of_request(self, *place: int) -> set[int]:
        """Return those for a request, given by the numbers of claim, request and alternative."""
        return self._by_request.setdefault(place, set())

    def add(self, devices: set[int], device: CandidateDevice) -> None:
        """Add a device to what `of_request` returned."""
        devices.add(id(device))
        # Keeping the candidate keeps the id unique.
        self._by_pool.setdefault(device.pool.id, []).append((devices, device))

    def forget(self, pool: PoolID) -> None:
        """Forget the devices of a pool in which a device was allocated or released."""
        for devices, device in self._by_pool.pop(pool, ()):
            devices.discard(id(device))

    def clear(self) -> None:
        """Forget all devices."""
        for pool in tuple(self._by_pool):
            self.forget(pool)


class DeviceMatcher:
    """Evaluates selectors, and caches results per driver and Device object.

    Drop it when most slices have changed. The driver is part of the key because decoded objects
    share equal parts, so that devices of two drivers may be one object. The key has the object's
    id; keeping the object keeps the id unique.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str, int], tuple[Device, bool | str]] = {}

    def matches(
        self, selectors: Iterable[DeviceSelector], driver: str, device: Device, owner: str
    ) -> bool:
        """Return whether all selectors match the device.

        The device is the same object as long as it does not change; `owner` is `class x` or `claim
        ns/x`, for errors. Raises AllocationError if a selector cannot be compiled or evaluated.
        """
        for at, selector in enumerate(selectors):
            where = f"{owner}: selector #{at}: "
            if selector.cel is None:
                raise AllocationError(f"{where}CEL expression empty (unsupported selector type?)")
            answer = self._answer(selector.cel.expression, driver, device, where)
            if isinstance(answer, str):
                raise AllocationError(f"{where}CEL runtime error: {answer}")
            if not answer:
                return False
        return True

    def _answer(self, expression: str, driver: str, device: Device, where: str) -> bool | str:
        """Return the result of a selector, or what its evaluation failed with."""
        key = expression, driver, id(device)
        known = self._answers.get(key)
        if known is not None:
            return known[1]
        try:
            matches = cel.compile_selector(expression)
        except cel.DeviceSelectorError as error:
            raise AllocationError(f"{where}CEL compile error: {error}") from error
        answer: bool | str
        try:
            answer = matches(cel.device_variables(driver, device))
        except CelError as error:
            answer = str(error)
        if len(self._answers) >= _ANSWERS_MAX:
            # Claims may each have an expression of their own.
            self._answers.clear()
        self._answers[key] = device, answer
        return answer


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
        allocated: AllocatedState,
    ) -> None:
        """Find the pools. Raises AllocationError."""
        self._node = node
        self._classes = classes
        self._matcher = matcher
        self._features = features
        self._allocated = allocated
        try:
            self.pools, self.candidates = index.of(node)
        except AllocationError as error:
            raise AllocationError(f"gather pool information: {error}") from error

    def want(self, claim: ResourceClaim, request: ParsedRequest) -> Wanted:
        """Check a request, whose class exists, and determine how many devices it needs.

        Raises AllocationError.
        """
        where = f"claim {claim.metadata.key}, request {request.name}"
        for at, selector in enumerate(request.selectors):
            if selector.cel is None:
                raise AllocationError(
                    f"{where}, selector #{at}: CEL expression empty (unsupported selector type?)"
                )
        device_class = self._classes.by_name[request.device_class_name]
        if request.mode == EXACT_COUNT:
            return Wanted(request, device_class, request.count)
        if request.mode != ALL:
            raise AllocationError(f"{where}: unsupported count mode {request.mode}")
        wanted = Wanted(request, device_class, 0)
        self._find_all(claim, wanted, where)
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

    def _find_all(self, claim: ResourceClaim, wanted: Wanted, where: str) -> None:
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
                and self._has_capacity(wanted.request, candidate)
            ]
        wanted.count = len(wanted.all_devices)

    def _has_capacity(self, request: ParsedRequest, candidate: CandidateDevice) -> bool:
        if not self._features.consumable_capacity:
            return True
        allocated = self._allocated.capacity.get(candidate.id, {})
        return has_capacity(request.capacity, candidate.device, allocated, {})

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
        return matches_node(device, self._node)
