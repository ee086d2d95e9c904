"""AllocationAttempt: the devices that a search has taken so far, and the constraints on them.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          {allocator_incubating,constraint}.go (v1.36)
Reads:    device.attributes
Invariants: returning all devices in reverse order restores the initial state, apart from the
            leftovers that upstream has, too.
Differs:  nothing. As upstream, a device that is rejected late leaves behind what was counted for it
          until then, and returned shares leave their counters behind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from kubesched.api.quantity import Quantity, nano_value
from kubesched.api.resource import Device, DeviceAttribute, DeviceConstraint, ResourceClaim
from kubesched.framework.dra import AllocatedState
from kubesched.plugins.dynamic_resources.consumption import ConsumedCounters, consumed_capacity
from kubesched.plugins.dynamic_resources.node_devices import (
    CandidateDevice,
    Capacities,
    Features,
    NodeDevices,
    Wanted,
)
from kubesched.plugins.dynamic_resources.pools import DeviceID
from kubesched.plugins.dynamic_resources.requests import AllocationError, ParsedRequest
from kubesched.plugins.dynamic_resources.results import Chosen

# Constraints on the devices of several requests of a claim.


class Constraint(Protocol):
    """A constraint, with the devices chosen so far."""

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Add the device if the constraint allows it; return whether it does."""

    def remove(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> None:
        """Undo one successful `add`."""


def constraint_of(spec: DeviceConstraint) -> Constraint | None:
    """Return the constraint, or None if its kind is unknown."""
    if spec.match_attribute is not None:
        return MatchAttribute(spec.match_attribute, spec.requests)
    if spec.distinct_attribute is not None:
        return DistinctAttribute(spec.distinct_attribute, spec.requests)
    return None


class _AttributeConstraint(ABC):
    """Applies to the requests it names, or to all if it names none."""

    def __init__(self, attribute_name: str, requests: Iterable[str]) -> None:
        self._attribute_name = attribute_name
        self._requests = frozenset(requests)
        self._devices = 0

    def _applies(self, request: str, subrequest: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self._requests

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Add the device if its attribute is allowed; return whether it is."""
        if not self._applies(request, subrequest):
            return True
        attribute = lookup_attribute(device, device_id, self._attribute_name)
        if attribute is None or not self._allows(request, attribute):
            return False
        self._devices += 1
        return True

    @abstractmethod
    def _allows(self, request: str, attribute: DeviceAttribute) -> bool:
        """Whether the attribute is allowed for the request; record it if so."""


class MatchAttribute(_AttributeConstraint):
    """Requires that all devices have the attribute, with equal values."""

    _attribute: DeviceAttribute | None = None

    def _allows(self, request: str, attribute: DeviceAttribute) -> bool:
        """Whether the device is the first or has the first one's value."""
        if self._devices == 0:
            self._attribute = attribute
            return True
        return self._attribute is not None and _is_same(attribute, self._attribute)

    def remove(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> None:
        """Remove a device; without devices, any value is allowed."""
        if self._applies(request, subrequest):
            self._devices -= 1


class DistinctAttribute(_AttributeConstraint):
    """Requires that all devices have the attribute, with different values.

    As upstream, only the last device of each request is compared.
    """

    def __init__(self, attribute_name: str, requests: Iterable[str]) -> None:
        super().__init__(attribute_name, requests)
        self._attributes: dict[str, DeviceAttribute] = {}

    def _allows(self, request: str, attribute: DeviceAttribute) -> bool:
        """Whether no recorded value is equal."""
        known = self._attributes.values()
        if self._devices and not all(_is_different(attribute, other) for other in known):
            return False
        self._attributes[request] = attribute
        return True

    def remove(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> None:
        """Remove the request's value."""
        if self._applies(request, subrequest):
            self._attributes.pop(request, None)
            self._devices -= 1


def lookup_attribute(device: Device, device_id: DeviceID, name: str) -> DeviceAttribute | None:
    """Return an attribute by its qualified name; the driver's own may lack the domain."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    if not slash or domain != device_id[0]:
        return None
    return device.attributes.get(identifier)


def _scalar(attribute: DeviceAttribute) -> tuple[str, object] | None:
    """Return the kind and value of an attribute, or None if the kind is not comparable."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return None


def _is_same(attribute: DeviceAttribute, other: DeviceAttribute) -> bool:
    scalar = _scalar(attribute)
    return scalar is not None and scalar == _scalar(other)


def _is_different(attribute: DeviceAttribute, other: DeviceAttribute) -> bool:
    scalar = _scalar(attribute)
    return scalar is not None and scalar != _scalar(other)


# Attempts.

GiveBack = Callable[[], None]


class AllocationAttempt:
    """The taken devices per claim, in order, with their constraints, counters and capacities."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        devices: NodeDevices,
        allocated: AllocatedState,
        counters: ConsumedCounters,
        features: Features,
    ) -> None:
        """Start without devices. Raises AllocationError for a constraint of an unknown kind."""
        self._claims = claims
        self._devices = devices
        self._allocated = allocated
        self._counters = counters
        self._features = features
        self._constraints = [_constraints(claim) for claim in claims]
        self._users: dict[DeviceID, set[int]] = {}
        self._capacity: Capacities = {}
        self.chosen: list[list[Chosen]] = [[] for _ in claims]

    def is_free(self, claim: int, request: ParsedRequest, device: DeviceID) -> bool:
        """Whether no claim has the device; with admin access, whether this claim does not."""
        users = self._users.get(device, ())
        if request.admin_access:
            return claim not in users
        return not users and device not in self._allocated.devices

    def has_capacity(self, request: ParsedRequest, candidate: CandidateDevice) -> bool:
        """Whether the device has enough capacity left."""
        return self._devices.has_capacity(
            request, candidate, self._allocated.capacity, self._capacity
        )

    def take(
        self, claim: int, wanted: Wanted, candidate: CandidateDevice, *, must: bool
    ) -> GiveBack | None:
        """Take a selectable device; return a function that returns it, or None if it is unusable.

        Raises AllocationError if a device that `must` be taken violates a constraint.
        """
        request, device = wanted.request, candidate.device
        is_shared = self._features.consumable_capacity and bool(device.allow_multiple_allocations)
        if not (is_shared and request.admin_access) and not self.is_free(
            claim, request, candidate.id
        ):
            return None
        if not self._take_counters(candidate, is_shared=is_shared) or not self._add_to_constraints(
            claim, request, candidate, must=must
        ):
            return None
        users = self._users.setdefault(candidate.id, set())
        if not is_shared:
            users.add(claim)
        if not self.has_capacity(request, candidate):
            return None
        consumed = consumed_capacity(request.capacity, device) if is_shared else {}
        if is_shared:
            self._consume(candidate.id, consumed)
        chosen = Chosen(request, candidate.id, device, candidate.slice, consumed, is_shared)
        self.chosen[claim].append(chosen)
        return lambda: self._give_back(claim, chosen, candidate)

    def _give_back(self, claim: int, chosen: Chosen, candidate: CandidateDevice) -> None:
        names = (chosen.request.base_name, chosen.request.subrequest_name)
        for constraint in self._constraints[claim]:
            constraint.remove(*names, candidate.device, candidate.id)
        self._users[candidate.id].discard(claim)
        if chosen.is_shared:
            self._release(candidate.id, chosen.consumed_capacity)
        elif self._features.partitionable_devices and candidate.device.consumes_counters:
            self._counters.give_back(candidate.pool, candidate.device)
        self.chosen[claim].pop()

    def _take_counters(self, candidate: CandidateDevice, *, is_shared: bool) -> bool:
        if not candidate.device.consumes_counters:
            return True
        if not self._features.partitionable_devices:
            return False
        in_use = candidate.id in self._allocated.capacity or candidate.id in self._capacity
        # The first share of a device uses its counters on behalf of all shares.
        if is_shared and in_use:
            return True
        return self._counters.take(candidate.pool, candidate.device)

    def _add_to_constraints(
        self, claim: int, request: ParsedRequest, candidate: CandidateDevice, *, must: bool
    ) -> bool:
        """Add the device to the claim's constraints; return False if they or taints forbid it."""
        if self._features.device_taints and not request.tolerates(candidate.device.taints):
            return False
        names = (request.base_name, request.subrequest_name)
        constraints = self._constraints[claim]
        for at, constraint in enumerate(constraints):
            if constraint.add(*names, candidate.device, candidate.id):
                continue
            if must:
                raise AllocationError(
                    f"claim {self._claims[claim].metadata.key}, request {request.name}: cannot add"
                    f" device {'/'.join(candidate.id)} because a claim constraint would not be"
                    " satisfied"
                )
            for earlier in constraints[:at]:
                earlier.remove(*names, candidate.device, candidate.id)
            return False
        return True

    def _consume(self, device: DeviceID, consumed: dict[str, Quantity]) -> None:
        amounts = self._capacity.setdefault(device, {})
        for name, quantity in consumed.items():
            amounts[name] = amounts.get(name, 0) + nano_value(quantity)

    def _release(self, device: DeviceID, consumed: dict[str, Quantity]) -> None:
        if not consumed or device not in self._capacity:
            return
        amounts = self._capacity[device]
        for name, quantity in consumed.items():
            amounts[name] -= nano_value(quantity)
        if not any(amounts.values()):
            del self._capacity[device]


def _constraints(claim: ResourceClaim) -> list[Constraint]:
    constraints: list[Constraint] = []
    for at, spec in enumerate(claim.spec.devices.constraints):
        constraint = constraint_of(spec)
        if constraint is None:
            raise AllocationError(
                f"claim {claim.metadata.key}, constraint #{at}: empty constraint"
                " (unsupported constraint type?)"
            )
        constraints.append(constraint)
    return constraints
