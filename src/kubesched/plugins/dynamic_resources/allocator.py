"""The search for devices that satisfy all claims of a pod on one node.

One claim after the other, one request after the other, one device after the other: the first that
will do is taken, and given back if what follows fails. The first full solution wins.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go (v1.36)
Reads:    claims, ResourceSlices, DeviceClasses, what is allocated
Differs:  the search ends after a number of tries, where upstream looks at the clock; the ids of
          shares are given out when the node is chosen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kubesched.api.core import Node
from kubesched.api.quantity import Quantity
from kubesched.api.resource import (
    ALL,
    ALLOCATION_RESULTS_MAX,
    EXACT_COUNT,
    AllocationResult,
    Device,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from kubesched.api.cel.quantities import nano_value
from kubesched.framework.dra import AllocatedState, DeviceClasses
from kubesched.plugins.dynamic_resources.capacity import consumed_capacity, has_capacity
from kubesched.plugins.dynamic_resources.constraints import Constraint, constraint_of
from kubesched.plugins.dynamic_resources.counters import AvailableCounters, ConsumedCounters
from kubesched.plugins.dynamic_resources.pools import (
    DeviceID,
    Pool,
    PoolError,
    PoolIndex,
    matches_node,
)
from kubesched.plugins.dynamic_resources.requests import (
    AllocationError,
    Request,
    key_of,
    requests_of,
)
from kubesched.plugins.dynamic_resources.results import Chosen, allocation_result
from kubesched.plugins.dynamic_resources.selection import DeviceMatcher

__all__ = ["AllocationError", "Allocator", "Features", "NodeRejected", "SearchExhausted"]

_NOTHING: Final[dict[str, int]] = {}


class NodeRejected(Exception):  # noqa: N818 - a rejection, not a failure
    """The node cannot be used, for a reason worth telling."""


class SearchExhausted(Exception):  # noqa: N818 - the search gave up, nothing is wrong
    """The search took too many tries."""


class _TooManyResults(Exception):  # noqa: N818 - steers the search
    """More devices than a claim's result can hold; what follows cannot change that."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the allocator may do; each as its feature gate."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True


class Candidate(NamedTuple):
    """A device with everything that says where it is."""

    id: DeviceID
    device: Device
    slice: ResourceSlice
    pool: Pool


@dataclass(slots=True, eq=False)
class _Wanted:
    """One request, or one alternative, with what is known before the search."""

    request: Request
    device_class: DeviceClass
    count: int
    all_devices: list[Candidate] = field(default_factory=list)
    selectable: dict[DeviceID, bool] = field(default_factory=dict)


class Allocator:
    """Allocates claims on nodes; for one pod, in one cycle."""

    def __init__(
        self,
        allocated: AllocatedState,
        classes: DeviceClasses,
        index: PoolIndex,
        matcher: DeviceMatcher,
        features: Features = Features(),  # noqa: B008 - frozen
        tries_max: int = 0,
    ) -> None:
        """Prepare.

        Args:
            allocated: What is taken.
            classes: The device classes.
            index: The slices.
            matcher: Answers of selectors.
            features: What may be used.
            tries_max: After how many tries of a device the search on a node gives up; 0: never.
        """
        self.allocated = allocated
        self.classes = classes
        self.index = index
        self.matcher = matcher
        self.features = features
        self.tries_max = tries_max
        self.available = AvailableCounters(allocated.is_allocated)

    def allocate(
        self, node: Node, claims: Sequence[ResourceClaim]
    ) -> tuple[AllocationResult, ...] | None:
        """One result per claim, None if there is no solution on the node.

        Raises:
            AllocationError: Something is wrong with a claim, a class or a device.
            NodeRejected: There is no solution, and pools of the node are invalid.
            SearchExhausted: The search gave up.
        """
        return _Search(self, node, claims).run()


class _Search:
    """One search on one node."""

    def __init__(self, allocator: Allocator, node: Node, claims: Sequence[ResourceClaim]) -> None:
        self._allocator = allocator
        self._features = allocator.features
        self._allocated = allocator.allocated
        self._node = node
        self._claims = claims
        self._pools: tuple[Pool, ...] = ()
        self._candidates: list[Candidate] = []
        self._wanted: list[list[tuple[_Wanted, ...]]] = []
        self._constraints: list[list[Constraint]] = []
        self._counters = ConsumedCounters(allocator.available)
        self._allocating: dict[DeviceID, set[int]] = {}
        self._allocating_capacity: dict[DeviceID, dict[str, int]] = {}
        self._chosen: list[list[Chosen]] = [[] for _ in claims]
        self._selected: dict[tuple[int, int], int] = {}
        self._tries = 0

    def run(self) -> tuple[AllocationResult, ...] | None:
        try:
            self._pools = self._allocator.index.pools(self._node)
        except PoolError as error:
            raise AllocationError(f"gather pool information: {error}") from error
        self._candidates = [
            candidate
            for pool in self._pools
            if not pool.is_incomplete and not pool.is_invalid
            for candidate in _candidates(pool)
        ]
        for index, claim in enumerate(self._claims):
            self._prepare(index, claim)
        try:
            found = self._next_request(0, 0)
        except _TooManyResults:
            raise AllocationError("allocation max size exceeded") from None
        if found:
            return tuple(map(self._result, range(len(self._claims))))
        if any(pool.is_invalid for pool in self._pools):
            raise NodeRejected("invalid resource pools were encountered")
        return None

    # Before the search.

    def _prepare(self, index: int, claim: ResourceClaim) -> None:
        """Check the claim and find out what it wants."""
        self._wanted.append([])
        least_total = 0
        for alternatives in requests_of(claim):
            self._check_features(claim, alternatives)
            wanted = tuple(self._want(claim, request) for request in alternatives)
            self._wanted[index].append(wanted)
            least_total += min(one.count for one in wanted)
        if least_total > ALLOCATION_RESULTS_MAX:
            raise AllocationError(
                f"claim {key_of(claim)}: number of requested devices {least_total} exceeds the"
                f" claim limit of {ALLOCATION_RESULTS_MAX}"
            )
        self._constraints.append(_constraints(claim))

    def _check_features(self, claim: ResourceClaim, alternatives: tuple[Request, ...]) -> None:
        first = alternatives[0]
        if first.parent_name and not self._features.prioritized_list:
            raise AllocationError(
                f"claim {key_of(claim)}, request {first.parent_name}: has subrequests, but the"
                " DRAPrioritizedList feature is disabled"
            )
        if self._features.consumable_capacity:
            return
        for request in alternatives:
            if request.capacity is not None:
                kind = "subrequest" if request.parent_name else "request"
                raise AllocationError(
                    f"claim {key_of(claim)}, {kind} {request.name}: has capacity requests, but the"
                    " DRAConsumableCapacity feature is disabled"
                )

    def _want(self, claim: ResourceClaim, request: Request) -> _Wanted:
        where = f"claim {key_of(claim)}, request {request.name}"
        for at, selector in enumerate(request.selectors):
            if selector.cel is None:
                raise AllocationError(
                    f"{where}, selector #{at}: CEL expression empty (unsupported selector type?)"
                )
        if request.has_admin_access and not self._features.admin_access:
            raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
        device_class = self._class_of(where, request.device_class_name)
        if request.mode == EXACT_COUNT:
            return _Wanted(request, device_class, request.count)
        if request.mode != ALL:
            raise AllocationError(f"{where}: unsupported count mode {request.mode}")
        wanted = _Wanted(request, device_class, 0)
        self._find_all(claim, wanted, where)
        return wanted

    def _class_of(self, where: str, name: str) -> DeviceClass:
        if not name:
            raise AllocationError(
                f"{where}: missing device class name (unsupported request type?)"
            )
        device_class = self._allocator.classes.get(name)
        if device_class is None:
            raise AllocationError(
                f"{where}: could not retrieve device class {name}:"
                f' deviceclass.resource.k8s.io "{name}" not found'
            )
        return device_class

    def _find_all(self, claim: ResourceClaim, wanted: _Wanted, where: str) -> None:
        for pool in self._pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.name} is currently"
                    f" {state}"
                )
            wanted.all_devices += [
                candidate
                for candidate in _candidates(pool)
                if self._is_selectable(claim, wanted, candidate)
                and self._has_capacity(wanted.request, candidate)
            ]
        wanted.count = len(wanted.all_devices)

    # The search. Every method is whether the rest can be solved from here.

    def _next_request(self, claim: int, request: int) -> bool:
        if claim >= len(self._claims):
            return True
        if request >= len(self._wanted[claim]):
            try:
                return self._next_request(claim + 1, 0)
            except _TooManyResults:
                # With fewer devices for an earlier claim a later one may still succeed.
                return False
        alternatives = self._wanted[claim][request]
        if alternatives[0].request.parent_name:
            return self._first_available(claim, request, alternatives)
        return self._devices(claim, request, alternatives[0], 0, 0)

    def _first_available(
        self, claim: int, request: int, alternatives: tuple[_Wanted, ...]
    ) -> bool:
        too_many = 0
        for at, wanted in enumerate(alternatives):
            try:
                solved = self._devices(claim, request, wanted, 0, 0)
            except _TooManyResults:
                too_many += 1
                continue
            if solved:
                self._selected[claim, request] = at
                return True
        if too_many == len(alternatives):
            raise _TooManyResults
        return False

    def _devices(self, claim: int, request: int, wanted: _Wanted, taken: int, start: int) -> bool:
        """Take the devices of a request from the `taken`-th on, then go on.

        Devices of one request are taken in order, so that no set of them is tried twice.
        """
        takes_all = wanted.request.mode == ALL
        if takes_all and not wanted.all_devices:
            return False
        if taken >= wanted.count:
            return self._next_request(claim, request + 1)
        if len(self._chosen[claim]) + wanted.count - taken > ALLOCATION_RESULTS_MAX:
            raise _TooManyResults
        if takes_all:
            undo = self._take(claim, wanted, wanted.all_devices[taken], must=True)
            return undo is not None and self._go_on(undo, claim, request, wanted, taken, 0)
        for at in range(start, len(self._candidates)):
            candidate = self._candidates[at]
            if not self._may_take(claim, wanted, candidate):
                continue
            undo = self._take(claim, wanted, candidate, must=False)
            if undo is not None and self._go_on(undo, claim, request, wanted, taken, at + 1):
                return True
        return False

    def _go_on(
        self,
        undo: Callable[[], None],
        claim: int,
        request: int,
        wanted: _Wanted,
        taken: int,
        start: int,
    ) -> bool:
        try:
            solved = self._devices(claim, request, wanted, taken + 1, start)
        except BaseException:
            undo()
            raise
        if not solved:
            undo()
        return solved

    def _may_take(self, claim: int, wanted: _Wanted, candidate: Candidate) -> bool:
        self._tries += 1
        if 0 < self._allocator.tries_max < self._tries:
            raise SearchExhausted
        if wanted.request.admin_access:
            if claim in self._allocating.get(candidate.id, ()):
                return False
        elif self._is_in_use(candidate.id):
            return False
        return self._is_selectable(self._claims[claim], wanted, candidate) and self._has_capacity(
            wanted.request, candidate
        )

    def _is_in_use(self, device: DeviceID) -> bool:
        return device in self._allocated.devices or bool(self._allocating.get(device))

    def _has_capacity(self, request: Request, candidate: Candidate) -> bool:
        if not self._features.consumable_capacity:
            return True
        return has_capacity(
            request.capacity,
            candidate.device,
            self._allocated.capacity.get(candidate.id, _NOTHING),
            self._allocating_capacity.get(candidate.id, _NOTHING),
        )

    def _is_selectable(
        self, claim: ResourceClaim, wanted: _Wanted, candidate: Candidate
    ) -> bool:
        known = wanted.selectable.get(candidate.id)
        if known is None:
            known = self._select(claim, wanted, candidate)
            wanted.selectable[candidate.id] = known
        return known

    def _select(self, claim: ResourceClaim, wanted: _Wanted, candidate: Candidate) -> bool:
        device, driver = candidate.device, candidate.id[0]
        if device.binding_conditions and not self._features.binding_conditions:
            return False
        matches = self._allocator.matcher.matches
        of_class = wanted.device_class
        if not matches(of_class.spec.selectors, driver, device, f"class {of_class.metadata.name}"):
            return False
        if not matches(wanted.request.selectors, driver, device, f"claim {key_of(claim)}"):
            return False
        if not candidate.slice.spec.per_device_node_selection:
            return True
        try:
            return matches_node(
                self._node, device.node_name, device.all_nodes, device.node_selector
            )
        except PoolError as error:
            raise AllocationError(str(error)) from error

    # Taking a device.

    def _take(
        self, claim: int, wanted: _Wanted, candidate: Candidate, *, must: bool
    ) -> Callable[[], None] | None:
        """Take a selectable device; how to give it back, None if it cannot be taken.

        As upstream, a device that is refused late leaves behind what was booked for it until then.
        """
        request, device = wanted.request, candidate.device
        is_shared = self._features.consumable_capacity and bool(device.allow_multiple_allocations)
        if request.admin_access:
            if not is_shared and claim in self._allocating.get(candidate.id, ()):
                return None
        elif self._is_in_use(candidate.id):
            return None
        if not self._take_counters(candidate, is_shared=is_shared):
            return None
        if self._features.device_taints and not request.tolerates(device.taints):
            return None
        if not self._add_to_constraints(claim, request, candidate, must=must):
            return None
        users = self._allocating.setdefault(candidate.id, set())
        if not is_shared:
            users.add(claim)
        if not self._has_capacity(request, candidate):
            return None
        consumed = consumed_capacity(request.capacity, device) if is_shared else {}
        if is_shared:
            self._consume(candidate.id, consumed)
        self._chosen[claim].append(
            Chosen(request, candidate.id, device, candidate.slice, consumed, is_shared)
        )
        return lambda: self._give_back(claim, request, candidate, consumed, is_shared=is_shared)

    def _give_back(
        self,
        claim: int,
        request: Request,
        candidate: Candidate,
        consumed: dict[str, Quantity],
        *,
        is_shared: bool,
    ) -> None:
        names = (request.base_name, request.subrequest_name)
        for constraint in self._constraints[claim]:
            constraint.remove(*names, candidate.device, candidate.id)
        self._allocating[candidate.id].discard(claim)
        if is_shared:
            self._release(candidate.id, consumed)
        elif self._features.partitionable_devices and candidate.device.consumes_counters:
            self._counters.give_back(candidate.pool, candidate.device)
        self._chosen[claim].pop()

    def _take_counters(self, candidate: Candidate, *, is_shared: bool) -> bool:
        if not candidate.device.consumes_counters:
            return True
        if not self._features.partitionable_devices:
            return False
        in_use = (
            candidate.id in self._allocated.capacity or candidate.id in self._allocating_capacity
        )
        # The first share of a device takes its counters for all of them.
        if is_shared and in_use:
            return True
        return self._counters.take(candidate.pool, candidate.device)

    def _add_to_constraints(
        self, claim: int, request: Request, candidate: Candidate, *, must: bool
    ) -> bool:
        names = (request.base_name, request.subrequest_name)
        constraints = self._constraints[claim]
        for at, constraint in enumerate(constraints):
            if constraint.add(*names, candidate.device, candidate.id):
                continue
            if must:
                raise AllocationError(
                    f"claim {key_of(self._claims[claim])}, request {request.name}: cannot add"
                    f" device {'/'.join(candidate.id)} because a claim constraint would not be"
                    " satisfied"
                )
            for earlier in constraints[:at]:
                earlier.remove(*names, candidate.device, candidate.id)
            return False
        return True

    def _consume(self, device: DeviceID, consumed: dict[str, Quantity]) -> None:
        amounts = self._allocating_capacity.setdefault(device, {})
        for name, quantity in consumed.items():
            amounts[name] = amounts.get(name, 0) + nano_value(quantity)

    def _release(self, device: DeviceID, consumed: dict[str, Quantity]) -> None:
        if not consumed or device not in self._allocating_capacity:
            return
        amounts = self._allocating_capacity[device]
        for name, quantity in consumed.items():
            amounts[name] -= nano_value(quantity)
        if not any(amounts.values()):
            del self._allocating_capacity[device]

    # After the search.

    def _result(self, claim: int) -> AllocationResult:
        selected = [
            alternatives[self._selected.get((claim, request), 0)]
            for request, alternatives in enumerate(self._wanted[claim])
        ]
        return allocation_result(
            self._claims[claim],
            self._chosen[claim],
            [(wanted.request, wanted.device_class) for wanted in selected],
            self._node.metadata.name,
            binding_conditions=self._features.binding_conditions,
        )


def _candidates(pool: Pool) -> list[Candidate]:
    driver, name = pool.id
    return [
        Candidate((driver, name, device.name), device, item, pool)
        for item in pool.slices
        for device in item.spec.devices
    ]


def _constraints(claim: ResourceClaim) -> list[Constraint]:
    constraints: list[Constraint] = []
    for at, spec in enumerate(claim.spec.devices.constraints):
        constraint = constraint_of(spec)
        if constraint is None:
            raise AllocationError(
                f"claim {key_of(claim)}, constraint #{at}: empty constraint"
                " (unsupported constraint type?)"
            )
        constraints.append(constraint)
    return constraints
