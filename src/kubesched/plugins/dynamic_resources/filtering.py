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
from kubesched.api.resource import ResourceClaim
from kubesched.framework.dra import matches_node_selector
from kubesched.framework.status import SUCCESS, NodeToStatus, Status, failure, unresolvable
from kubesched.plugins.dynamic_resources.allocator import Allocator, NodeRejected, SearchExhausted
from kubesched.plugins.dynamic_resources.claims import BindingFailedError, is_ready_for_binding
from kubesched.plugins.dynamic_resources.describing import describe_allocation, describe_devices
from kubesched.plugins.dynamic_resources.extended_resources import claim_on_node
from kubesched.plugins.dynamic_resources.remembered_searches import (
    NOT_SEARCHED,
    SOLVED,
    UNSOLVED,
    ClaimSearch,
)
from kubesched.plugins.dynamic_resources.requests import AllocationError
from kubesched.plugins.dynamic_resources.state import NO_CLAIM, DynamicResourcesState
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
        common = self._state.common_search = self._common_search()
        if common is None:
            return NodeToStatus.of([self.filter(node) for node in nodes.nodes])
        rows = snapshot.rows_of(nodes)
        index = np.array(common.results.outcomes(snapshot.nodes)[rows])
        if self._state.has_special_claim:
            index[self._needs_another_claim(nodes)] = NOT_SEARCHED
        missing = np.flatnonzero(index == NOT_SEARCHED)
        asked = np.arange(len(snapshot.nodes))[rows][missing].tolist()
        found = NodeToStatus.of([self.filter(snapshot.nodes.nodes[row]) for row in asked])
        index[missing] = np.where(found.index, found.index + UNSOLVED, SOLVED)
        return NodeToStatus(index, [SUCCESS, _NOT_ALLOCATABLE, *found.statuses[1:]])

    def filter(self, node: Node) -> Status:
        """Return success if the node satisfies all claims."""
        state, name = self._state, node.metadata.name
        resources = self._resources_of_devices(node)
        if isinstance(resources, Status):
            return resources
        if state.has_special_claim and not resources and not state.has_user_claims:
            state.search_on[name] = None
            return SUCCESS
        unavailable = [at for at in self._bound if self._is_unavailable(at, node)]
        if state.allocator is not None:
            search = state.search_on[name] = self._search_for(resources)
            status = _search(search, node, state.allocator)
            if not status.is_success:
                return status
            state.chosen.pop(name, None)
        if unavailable:
            # An allocation that is not written yet cannot be deallocated.
            written = [at for at in unavailable if state.shared[at] is None]
            state.unavailable.update(dict.fromkeys(written))
            return _NOT_AVAILABLE
        return SUCCESS

    def describe(self, node: Node) -> str:
        """Return what the node lacks, by claim and request."""
        state, resources = self._state, self._resources_of_devices(node)
        if isinstance(resources, Status):
            lacking = [name for name in sorted(state.scalars) if not self._is_offered(name, node)]
            return f"neither the node nor a DeviceClass offers {', '.join(lacking)}"
        if state.allocator is not None:
            search = self._search_for(resources)
            if search.on(node, state.allocator) is None:
                return describe_devices(state.allocator, node, search.claims)
        return "; ".join(
            describe_allocation(state.claims[at], state.available_on[at], node)
            for at in self._bound
            if self._is_unavailable(at, node)
        )

    def _is_offered(self, name: str, node: Node) -> bool:
        return name in node.status.allocatable or self._state.classes.backs(name)

    def _common_search(self) -> ClaimSearch | None:
        """Return the search that decides on most nodes; None if more than a search decides.

        Most nodes offer none of the extended resources that devices back, and all of the others.
        """
        state, special = self._state, self._state.special_claim
        if state.allocator is None or self._bound or self._shares:
            return None
        if special is None:
            return self._search_for(())
        if special.spec.devices.requests:
            return None
        return self._search_for(tuple(filter(state.classes.backs, sorted(state.scalars))))

    def _needs_another_claim(self, nodes: NodeTable) -> NDArray[np.bool_]:
        """Bool per row: whether the common search is not for its special claim."""
        found = np.zeros(len(nodes), np.bool_)
        for name in self._state.scalars:
            offers = nodes.allocatable_of(name) != 0
            found |= offers if self._state.classes.backs(name) else ~offers
        return found

    def _resources_of_devices(self, node: Node) -> tuple[str, ...] | Status:
        """Return the resources that devices must provide, or the node's final status."""
        special = self._state.special_claim
        if special is None:
            return ()
        if special.spec.devices.requests:
            return _LEFTOVER
        backed: list[str] = []
        for name in sorted(self._state.scalars):
            offered = node.status.allocatable.get(name)
            if self._state.classes.backs(name) and (offered is None or value(offered) == 0):
                backed.append(name)
            elif offered is None:
                return _CANNOT_FIT
        return tuple(backed)

    def _search_for(self, resources: tuple[str, ...]) -> ClaimSearch:
        """Return the search on the nodes where devices must provide these resources."""
        state = self._state
        known = state.searches.get(resources)
        if known is None:
            special, claims = NO_CLAIM, self._to_allocate
            if state.special_claim is not None:
                special = claim_on_node(state.special_claim, self._pod, resources, state.classes)
            if special.claim is not None and self._allocates_special:
                claims = [*claims[:-1], special.claim]
            assert state.remembered is not None, "pre_filter sets it with the allocator"
            known = ClaimSearch(special, claims, state.remembered.of(claims))
            state.searches[resources] = known
        return known

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


def _search(search: ClaimSearch, node: Node, allocator: Allocator) -> Status:
    try:
        results = search.on(node, allocator)
    except AllocationError as error:
        return failure(str(error))
    except NodeRejected as rejected:
        return unresolvable(str(rejected))
    except SearchExhausted:
        name = node.metadata.name
        return failure(f"node {name}: timed out trying to allocate devices")
    return _NOT_ALLOCATABLE if results is None else SUCCESS
