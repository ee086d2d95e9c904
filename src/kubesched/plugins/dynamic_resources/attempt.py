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

from collections.abc import Callable, Sequence

from kubesched.api.quantity import Quantity, nano_value
from kubesched.api.resource import DeviceAttribute, DeviceConstraint, ResourceClaim
from kubesched.framework.dra.claim_tracker import AllocatedState, DeviceID
from kubesched.framework.dra.pools import AllocationError, CandidateDevice, PoolID
from kubesched.plugins.dynamic_resources.consumption import (
    ConsumedCounters,
    consumed_capacity,
    has_capacity,
)
from kubesched.plugins.dynamic_resources.node_devices import Features, Wanted
from kubesched.plugins.dynamic_resources.requests import ParsedRequest
from kubesched.plugins.dynamic_resources.results import Chosen

# Constraints on the devices of several requests of a claim.


class _Constraint:
    """A constraint on the requests it names, or on all if it names none, and its devices so far.

    All devices must have the attribute, `matchAttribute` with equal values and `distinctAttribute`
    with different ones. As upstream, only the last device of each request must be different.
    """

    def __init__(self, spec: DeviceConstraint) -> None:
        self._is_match = spec.match_attribute is not None
        self._name = spec.match_attribute or spec.distinct_attribute or ""
        self._requests = frozenset(spec.requests)
        self._devices = 0
        self._values: dict[str, tuple[str, object] | None] = {}

    def add(self, request: ParsedRequest, candidate: CandidateDevice) -> bool:
        """Add the device if the constraint allows it; return whether it does."""
        if not self._applies(request):
            return True
        attribute = _attribute(candidate, self._name)
        if attribute is None:
            return False
        value = _scalar(attribute)
        others = self._values.values() if self._devices else ()
        if not all(value is not None and (value == it) is self._is_match for it in others):
            return False
        self._values["" if self._is_match else request.base_name] = value
        self._devices += 1
        return True

    def remove(self, request: ParsedRequest) -> None:
        """Undo one successful `add`."""
        if self._applies(request):
            self._devices -= 1
            if not self._is_match:
                self._values.pop(request.base_name, None)

    def _applies(self, request: ParsedRequest) -> bool:
        return not self._requests or not self._requests.isdisjoint(
            (request.base_name, request.full_name)
        )


def _attribute(candidate: CandidateDevice, name: str) -> DeviceAttribute | None:
    """Return an attribute by its qualified name; the driver's own may lack the domain."""
    attributes = candidate.device.attributes
    domain, _, identifier = name.partition("/")
    is_own = bool(identifier) and domain == candidate.id[0]
    return attributes.get(name) or (attributes.get(identifier) if is_own else None)


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


# Attempts.

GiveBack = Callable[[], None]


class AllocationAttempt:
    """The taken devices per claim, in order, with their constraints, counters and capacities."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        allocated: AllocatedState,
        counters: ConsumedCounters,
        features: Features,
    ) -> None:
        """Start without devices. Raises AllocationError for a constraint of an unknown kind."""
        self._claims = claims
        self._allocated = allocated
        self._counters = counters
        self._features = features
        self._constraints = [_constraints(claim) for claim in claims]
        self._users: dict[DeviceID, set[int]] = {}
        self._capacity: dict[DeviceID, dict[str, int]] = {}
        self.chosen: list[list[Chosen]] = [[] for _ in claims]

    def lacks_counters(self, candidate: CandidateDevice) -> bool:
        """Whether the device cannot be taken, whatever else is, because it needs more counters."""
        device = candidate.device
        return (
            self._features.partitionable_devices
            and not device.allow_multiple_allocations
            and not self._counters.suffice(candidate.pool, device)
        )

    def uses_pool(self, pool: PoolID) -> bool:
        """Whether a device of the pool is taken."""
        return any(one.candidate.id[:2] == pool for chosen in self.chosen for one in chosen)

    def is_free(self, claim: int, request: ParsedRequest, device: DeviceID) -> bool:
        """Whether no claim has the device; with admin access, whether this claim does not."""
        users = self._users.get(device, ())
        if request.admin_access:
            return claim not in users
        return not users and device not in self._allocated.devices

    def has_capacity(self, request: ParsedRequest, candidate: CandidateDevice) -> bool:
        """Whether the device has enough capacity left."""
        if not self._features.consumable_capacity:
            return True
        allocated = self._allocated.capacity.get(candidate.id, {})
        allocating = self._capacity.get(candidate.id, {})
        return has_capacity(request.capacity, candidate.device, allocated, allocating)

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
        chosen = Chosen(request, candidate, consumed, is_shared)
        self.chosen[claim].append(chosen)
        return lambda: self._give_back(claim, chosen)

    def _give_back(self, claim: int, chosen: Chosen) -> None:
        candidate = chosen.candidate
        for constraint in self._constraints[claim]:
            constraint.remove(chosen.request)
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
        constraints = self._constraints[claim]
        for at, constraint in enumerate(constraints):
            if constraint.add(request, candidate):
                continue
            if must:
                raise AllocationError(
                    f"claim {self._claims[claim].metadata.key}, request {request.name}: cannot add"
                    f" device {'/'.join(candidate.id)} because a claim constraint would not be"
                    " satisfied"
                )
            for earlier in constraints[:at]:
                earlier.remove(request)
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


def _constraints(claim: ResourceClaim) -> list[_Constraint]:
    constraints = claim.spec.devices.constraints
    for at, spec in enumerate(constraints):
        if spec.match_attribute is None and spec.distinct_attribute is None:
            raise AllocationError(
                f"claim {claim.metadata.key}, constraint #{at}: empty constraint"
                " (unsupported constraint type?)"
            )
    return [_Constraint(spec) for spec in constraints]
