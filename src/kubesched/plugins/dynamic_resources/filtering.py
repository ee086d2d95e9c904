"""NodeFilter: whether a node can satisfy the claims of a pod.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, Filter (v1.36)
Reads:    node.metadata, node.status.allocatable; the pod's claims
Rejects:  UnschedulableAndUnresolvable.
Differs:  a pod that shares its group's pending allocation fits only where that allocation can be
          used, and results stay in order of the claims; upstream does neither.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node, Pod
from kubesched.api.quantity import value
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.framework.dra import matches_node_selector
from kubesched.framework.status import SUCCESS, NodeToStatus, Status, failure, unresolvable
from kubesched.plugins.dynamic_resources.allocator import Allocator, NodeRejected, SearchExhausted
from kubesched.plugins.dynamic_resources.claims import BindingFailedError, is_ready_for_binding
from kubesched.plugins.dynamic_resources.describing import describe_allocation, describe_devices
from kubesched.plugins.dynamic_resources.extended_resources import NodeClaim, claim_on_node
from kubesched.plugins.dynamic_resources.remembered_searches import (
    NOT_SEARCHED,
    SOLVED,
    UNSOLVED,
    NodeResults,
)
from kubesched.plugins.dynamic_resources.requests import AllocationError
from kubesched.plugins.dynamic_resources.state import (
    NO_CLAIM,
    DynamicResourcesState,
    NodeAllocation,
)
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.snapshot import Snapshot

_NOT_AVAILABLE: Final = unresolvable("resourceclaim not available on the node")
_NOT_ALLOCATABLE: Final = unresolvable("cannot allocate all claims")
_LEFTOVER: Final = unresolvable("cannot schedule extended resource claim")
_CANNOT_FIT: Final = unresolvable("cannot fit resource")

IsTimedOut = Callable[[ResourceClaim], bool]


class NodeFilter:
    """Filters nodes for one pod, and stores the allocations found in the pod's state."""

    def __init__(
        self, state: DynamicResourcesState, pod: Pod, is_timed_out: IsTimedOut | None
    ) -> None:
        """Create a filter for a pod.

        `is_timed_out` says whether the time for a claim's devices to become ready has passed; None
        if devices are always ready.
        """
        self._state = state
        self._pod = pod
        self._is_timed_out = is_timed_out
        # The other claims can be used wherever they can be allocated.
        self._bound = [
            at
            for at, claim in enumerate(state.claims)
            if claim.status.allocation is not None or state.available_on[at] is not None
        ]
        to_allocate = [at for at in state.to_allocate() if state.shared[at] is None]
        self._to_allocate = [state.claims[at] for at in to_allocate]
        self._shares = any(state.shared)
        self._allocates_special = bool(to_allocate) and state.is_special(to_allocate[-1])

    def filter_all(self, nodes: NodeTable, snapshot: Snapshot) -> NodeToStatus:
        """Return the status of each row of `nodes`, a selection of the table or the table itself.

        If only the search for devices decides, nodes with a kept result are not searched again.
        """
        kept = self._kept_results()
        if kept is None:
            return NodeToStatus.of([self.filter(node) for node in nodes.nodes])
        rows = snapshot.rows_of(nodes)
        index = np.array(kept.outcomes(snapshot.nodes)[rows])
        if self._state.has_special_claim:
            index[self._needs_another_claim(nodes)] = NOT_SEARCHED
        missing = np.flatnonzero(index == NOT_SEARCHED)
        asked = np.arange(len(snapshot.nodes))[rows][missing].tolist()
        found = NodeToStatus.of([self.filter(snapshot.nodes.nodes[row]) for row in asked])
        index[missing] = np.where(found.index, found.index + UNSOLVED, SOLVED)
        return NodeToStatus(index, [SUCCESS, _NOT_ALLOCATABLE, *found.statuses[1:]])

    def filter(self, node: Node) -> Status:
        """Return success if the node satisfies all claims."""
        special = NO_CLAIM
        if self._state.special_claim is not None:
            answer = self._extended_resources(self._state.special_claim, node)
            if isinstance(answer, Status):
                return answer
            special = answer
        return self._claims(node, special)

    def describe(self, node: Node) -> str:
        """Return what the node lacks, by claim and request."""
        state, special = self._state, self._state.special_claim
        answer = NO_CLAIM if special is None else self._extended_resources(special, node)
        if isinstance(answer, Status):
            lacking = [name for name in sorted(state.scalars) if not self._is_offered(name, node)]
            return f"neither the node nor a DeviceClass offers {', '.join(lacking)}"
        if state.allocator is not None:
            claims = self._claims_to_allocate(answer)
            if state.allocator.allocate(node, claims) is None:
                return describe_devices(state.allocator, node, claims)
        return "; ".join(
            describe_allocation(state.claims[at], state.available_on[at], node)
            for at in self._bound
            if self._is_unavailable(at, node)
        )

    def _is_offered(self, name: str, node: Node) -> bool:
        return name in node.status.allocatable or self._state.classes.backs(name)

    def _kept_results(self) -> NodeResults | None:
        """Return the results kept for such claims; None if more than the search decides.

        Most nodes offer none of the extended resources that devices back, and all of the others:
        the results are for the special claim of these nodes.
        """
        state, special = self._state, self._state.special_claim
        if state.allocator is None or self._bound or self._shares:
            return None
        if special is not None:
            if special.spec.devices.requests:
                return None
            backed = tuple(filter(state.classes.backs, sorted(state.scalars)))
            state.kept_special = self._special_for(special, backed)
        claims = self._claims_to_allocate(state.kept_special)
        state.kept = state.allocator.kept_results(claims)
        return state.kept

    def _needs_another_claim(self, nodes: NodeTable) -> NDArray[np.bool_]:
        """Bool per row: whether the kept results are not for its special claim."""
        found = np.zeros(len(nodes), np.bool_)
        for name in self._state.scalars:
            offers = nodes.allocatable_of(name) != 0
            found |= offers if self._state.classes.backs(name) else ~offers
        return found

    def _extended_resources(self, special: ResourceClaim, node: Node) -> NodeClaim | Status:
        """Return the special claim as the node needs it, or the node's final status."""
        if special.spec.devices.requests:
            return _LEFTOVER
        resources = self._backed_by_devices(node)
        if resources is None:
            return _CANNOT_FIT
        if not resources and not self._state.has_user_claims:
            self._state.nodes[node.metadata.name] = NodeAllocation()
            return SUCCESS
        return self._special_for(special, resources)

    def _special_for(self, special: ResourceClaim, resources: tuple[str, ...]) -> NodeClaim:
        known = self._state.special_by_resources.get(resources)
        if known is None:
            known = claim_on_node(special, self._pod, resources, self._state.classes)
            self._state.special_by_resources[resources] = known
        return known

    def _backed_by_devices(self, node: Node) -> tuple[str, ...] | None:
        """Return the resources that devices must provide; None if nothing provides one."""
        backed: list[str] = []
        for name in sorted(self._state.scalars):
            offered = node.status.allocatable.get(name)
            if self._state.classes.backs(name) and (offered is None or value(offered) == 0):
                backed.append(name)
            elif offered is None:
                return None
        return tuple(backed)

    def _claims(self, node: Node, special: NodeClaim) -> Status:
        state = self._state
        unavailable = [at for at in self._bound if self._is_unavailable(at, node)]
        found: NodeAllocation | None = None
        if state.allocator is not None:
            results = self._allocate(state.allocator, node, special)
            if isinstance(results, Status):
                return results
            if self._shares:
                results = self._with_shared(results)
            found = NodeAllocation(results, special)
        if unavailable:
            # An allocation that is not written yet cannot be deallocated.
            written = [at for at in unavailable if state.shared[at] is None]
            state.unavailable.update(dict.fromkeys(written))
            return _NOT_AVAILABLE
        if found is not None:
            state.nodes[node.metadata.name] = found
        return SUCCESS

    def _is_unavailable(self, at: int, node: Node) -> bool:
        """Whether an allocated claim cannot be used on the node."""
        selector = self._state.available_on[at]
        if selector is not None and not matches_node_selector(selector, node):
            return True
        claim = self._state.claims[at]
        if claim.status.allocation is None or self._is_timed_out is None:
            return False
        try:
            return not is_ready_for_binding(claim) and self._is_timed_out(claim)
        except BindingFailedError:
            return True

    def _allocate(
        self, allocator: Allocator, node: Node, special: NodeClaim
    ) -> tuple[AllocationResult, ...] | Status:
        try:
            results = allocator.allocate(node, self._claims_to_allocate(special))
        except AllocationError as error:
            return failure(str(error))
        except NodeRejected as rejected:
            return unresolvable(str(rejected))
        except SearchExhausted:
            name = node.metadata.name
            return failure(f"node {name}: timed out trying to allocate devices")
        return _NOT_ALLOCATABLE if results is None else results

    def _claims_to_allocate(self, special: NodeClaim) -> list[ResourceClaim]:
        """Return the claims without an allocation; the special one with the node's requests."""
        if special.claim is None or not self._allocates_special:
            return self._to_allocate
        return [*self._to_allocate[:-1], special.claim]

    def _with_shared(self, results: tuple[AllocationResult, ...]) -> tuple[AllocationResult, ...]:
        """Return one result per claim without an allocation, including shared pending ones."""
        new, shared = iter(results), self._state.shared
        return tuple(shared[at] or next(new) for at in self._state.to_allocate())
