"""Allocator: searches one node for devices that satisfy all claims of a pod.

The search backtracks over claims, requests and devices in order: it takes the first suitable device
and returns it if the rest fails. The first complete solution wins.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go (v1.36)
Reads:    claims, ResourceSlices, DeviceClasses, allocated devices
Differs:  the search ends after a number of tries, where upstream uses the clock; share ids are
          generated when the node is chosen. If shared capacity and binding conditions are both
          turned off, upstream runs an older allocator, which tries pools and slices in random order
          and ignores what devices and requests say about these features.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter

from kubesched.api.core import Node
from kubesched.api.resource import ALL, ALLOCATION_RESULTS_MAX, AllocationResult, ResourceClaim
from kubesched.framework.dra.claim_tracker import AllocatedState
from kubesched.framework.dra.devices import DeviceClasses
from kubesched.framework.dra.pools import (
    AllocationError,
    CandidateDevice,
    Pool,
    PoolID,
    PoolIndex,
    candidates_of,
)
from kubesched.plugins.dynamic_resources.attempt import AllocationAttempt, GiveBack
from kubesched.plugins.dynamic_resources.consumption import AvailableCounters, ConsumedCounters
from kubesched.plugins.dynamic_resources.node_devices import (
    DeviceMatcher,
    Features,
    NodeDevices,
    UnusableDevices,
    Wanted,
)
from kubesched.plugins.dynamic_resources.requests import ParsedRequest, requests_of
from kubesched.plugins.dynamic_resources.results import allocation_result

DecidingDevices = tuple[tuple[str, str], ...]
"""The names of slices and devices: slices of several generations have devices of the same id."""

KnownDevices = dict[int, tuple[Pool, DecidingDevices | None]]
"""Id of a common pool -> the pool, and the devices that certain claims may get; None: not sure."""


class NodeRejected(Exception):  # noqa: N818 - a rejection, not a failure
    """The node cannot be used; the text is the reason to report."""


class SearchExhausted(Exception):  # noqa: N818 - the search gave up, nothing is wrong
    """The search exceeded its number of tries."""


class _TooManyResults(Exception):  # noqa: N818 - steers the search
    """A claim needs more devices than a result can hold, which ends the search."""


class Allocator:
    """Allocates the claims of one pod on nodes, during one cycle."""

    def __init__(
        self,
        allocated: AllocatedState,
        classes: DeviceClasses,
        index: PoolIndex,
        matcher: DeviceMatcher,
        features: Features,
        tries_max: int,
    ) -> None:
        """Create an allocator that tries up to `tries_max` devices on a node; 0 means no limit."""
        self.features = features
        self.tries_max = tries_max
        self._allocated = allocated
        self._available = AvailableCounters(allocated.is_allocated)
        self._classes = classes
        self.index = index
        self._matcher = matcher

    def devices(self, node: Node) -> NodeDevices:
        """Return the devices that the node can use. Raises AllocationError."""
        return NodeDevices(
            node, self.index, self._classes, self._matcher, self.features, self._allocated
        )

    def attempt(self, claims: Sequence[ResourceClaim]) -> AllocationAttempt:
        """Return an attempt without devices. Raises AllocationError."""
        counters = ConsumedCounters(self._available)
        return AllocationAttempt(claims, self._allocated, counters, self.features)

    def allocate(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        unusable: UnusableDevices | None = None,
    ) -> tuple[AllocationResult, ...] | None:
        """Return one result per claim, or None if there is no solution on the node.

        `unusable` are devices that earlier searches for equal claims could not use; they are left
        out, and more are added.

        Raises:
            AllocationError: A claim, class or device is invalid.
            NodeRejected: There is no solution, and pools of the node are invalid.
            SearchExhausted: The search exceeded its number of tries.
        """
        return _Search(self, node, claims, unusable).run()

    def deciding_devices(
        self, node: Node, claims: Sequence[ResourceClaim], known: KnownDevices
    ) -> DecidingDevices | None:
        """Return the devices that the claims may get on the node.

        On nodes with the same devices, a search finds the same. None if that is not sure: devices
        are the node's own or bind a pod to the node, pools are incomplete or invalid, or something
        else is invalid. `known` has the devices of common pools for equal claims; more are added.
        """
        try:
            return _Search(self, node, claims).deciding_devices(known)
        except AllocationError:
            return None


class _Search:
    """One search on one node."""

    def __init__(
        self,
        allocator: Allocator,
        node: Node,
        claims: Sequence[ResourceClaim],
        unusable: UnusableDevices | None = None,
    ) -> None:
        self._features = allocator.features
        self._tries_left = allocator.tries_max or None
        self._node = node
        self._claims = claims
        self._devices_of_node = allocator.devices(node)
        self._unusable = unusable
        self._wanted = [self._want(at, claim) for at, claim in enumerate(claims)]
        self._attempt = allocator.attempt(claims)
        self._selected: dict[tuple[int, int], int] = {}

    def run(self) -> tuple[AllocationResult, ...] | None:
        try:
            found = self._next_request(0, 0)
        except _TooManyResults:
            raise AllocationError("allocation max size exceeded") from None
        if found:
            return tuple(map(self._result, range(len(self._claims))))
        if any(pool.is_invalid for pool in self._devices_of_node.pools):
            raise NodeRejected("invalid resource pools were encountered")
        return None

    def deciding_devices(self, known: KnownDevices) -> DecidingDevices | None:
        pools, found = self._devices_of_node.pools, dict[PoolID, DecidingDevices]()
        if not all(pool.is_usable for pool in pools):
            return None
        # A device of the node's own ends this, so that the others are not looked at.
        for pool in sorted(pools, key=attrgetter("is_common")):
            if id(pool) not in known:
                devices = self._deciding_devices_of(pool)
                if pool.is_common:
                    known[id(pool)] = pool, devices
            else:
                _, devices = known[id(pool)]
            if devices is None:
                return None
            found[pool.id] = devices
        return tuple(chain.from_iterable(found[pool.id] for pool in pools))

    def _deciding_devices_of(self, pool: Pool) -> DecidingDevices | None:
        node = self._devices_of_node
        requests = [
            (claim, wanted)
            for claim, every in zip(self._claims, self._wanted, strict=True)
            for wanted in chain.from_iterable(every)
        ]
        found = [
            candidate
            for candidate in candidates_of(pool)
            if any(node.is_selectable(claim, wanted, candidate) for claim, wanted in requests)
        ]
        if any(one.slice.spec.node_name or one.device.binds_to_node for one in found):
            return None
        return tuple((one.slice.metadata.name, one.device.name) for one in found)

    def _want(self, at: int, claim: ResourceClaim) -> list[tuple[Wanted, ...]]:
        """Return, per request of claim number `at`, its alternatives. Raises AllocationError."""
        every: list[tuple[Wanted, ...]] = []
        for request, alternatives in enumerate(requests_of(claim)):
            self._check_features(claim, alternatives)
            want = self._devices_of_node.want
            every.append(tuple(want(claim, one) for one in alternatives))
            if self._unusable is not None:
                for number, wanted in enumerate(every[-1]):
                    wanted.unusable = self._unusable.of_request(at, request, number)
        least = sum(min(one.count for one in alternatives) for alternatives in every)
        if least > ALLOCATION_RESULTS_MAX:
            raise AllocationError(
                f"claim {claim.metadata.key}: number of requested devices {least} exceeds the"
                f" claim limit of {ALLOCATION_RESULTS_MAX}"
            )
        return every

    def _check_features(
        self, claim: ResourceClaim, alternatives: tuple[ParsedRequest, ...]
    ) -> None:
        if self._features.consumable_capacity:
            return
        for request in alternatives:
            if request.capacity is not None:
                kind = "subrequest" if request.parent_name else "request"
                raise AllocationError(
                    f"claim {claim.metadata.key}, {kind} {request.name}: has capacity requests, but"
                    " the DRAConsumableCapacity feature is disabled"
                )

    # The search. Every method returns whether the rest can be solved from here.

    def _next_request(self, claim: int, request: int) -> bool:
        if claim >= len(self._claims):
            return True
        if request >= len(self._wanted[claim]):
            try:
                return self._next_request(claim + 1, 0)
            except _TooManyResults:
                # A later claim may still succeed if an earlier one takes fewer devices.
                return False
        alternatives = self._wanted[claim][request]
        if alternatives[0].request.parent_name:
            return self._first_available(claim, request, alternatives)
        return self._devices(claim, request, alternatives[0], 0, 0)

    def _first_available(self, claim: int, request: int, alternatives: tuple[Wanted, ...]) -> bool:
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

    def _devices(self, claim: int, request: int, wanted: Wanted, taken: int, start: int) -> bool:
        """Take the devices of a request from number `taken` on, then continue with the rest.

        The devices of a request are taken in order, so that no set is tried twice.
        """
        takes_all = wanted.request.mode == ALL
        if takes_all and not wanted.all_devices:
            return False
        if taken >= wanted.count:
            return self._next_request(claim, request + 1)
        held = len(self._attempt.chosen[claim])
        if held + wanted.count - taken > ALLOCATION_RESULTS_MAX:
            raise _TooManyResults
        if takes_all:
            give_back = self._attempt.take(claim, wanted, wanted.all_devices[taken], must=True)
            return give_back is not None and self._go_on(
                give_back, claim, request, wanted, taken, 0
            )
        for next_start, candidate in self._takeable(claim, wanted, start):
            give_back = self._attempt.take(claim, wanted, candidate, must=False)
            if give_back is None:
                if self._unusable is not None and self._attempt.lacks_counters(candidate):
                    self._leave_out(wanted, candidate)
            elif self._go_on(give_back, claim, request, wanted, taken, next_start):
                return True
        return False

    def _takeable(
        self, claim: int, wanted: Wanted, start: int
    ) -> Iterator[tuple[int, CandidateDevice]]:
        """Yield the candidates from `start` on that may be taken, each with its number plus 1."""
        for number, candidate in enumerate(self._devices_of_node.candidates[start:], start + 1):
            if id(candidate) in wanted.unusable:
                continue
            if self._may_take(claim, wanted, candidate):
                yield number, candidate
            elif self._unusable is not None and not self._attempt.uses_pool(candidate.id[:2]):
                self._leave_out(wanted, candidate)

    def _leave_out(self, wanted: Wanted, candidate: CandidateDevice) -> None:
        """Let later searches leave a device out, if several nodes can use it."""
        if self._unusable is not None and candidate.pool.is_common:
            self._unusable.add(wanted.unusable, candidate)

    def _go_on(
        self, give_back: GiveBack, claim: int, request: int, wanted: Wanted, taken: int, start: int
    ) -> bool:
        solved = False
        try:
            solved = self._devices(claim, request, wanted, taken + 1, start)
        finally:
            if not solved:
                give_back()
        return solved

    def _may_take(self, claim: int, wanted: Wanted, candidate: CandidateDevice) -> bool:
        if self._tries_left is not None:
            self._tries_left -= 1
            if self._tries_left < 0:
                raise SearchExhausted
        return (
            self._attempt.is_free(claim, wanted.request, candidate.id)
            and self._devices_of_node.is_selectable(self._claims[claim], wanted, candidate)
            and self._attempt.has_capacity(wanted.request, candidate)
        )

    def _result(self, claim: int) -> AllocationResult:
        selected = [
            alternatives[self._selected.get((claim, request), 0)]
            for request, alternatives in enumerate(self._wanted[claim])
        ]
        return allocation_result(
            self._claims[claim],
            self._attempt.chosen[claim],
            [(wanted.request, wanted.device_class) for wanted in selected],
            self._node.metadata.name,
            binding_conditions=self._features.binding_conditions,
        )
