"""DynamicResourcesState: the claims of one pod during its cycle, and where they can be allocated.

If a pod requests extended resources that are backed by devices, the scheduler creates a claim for
them, the special claim, in addition to the claims of the pod's spec.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, stateData, Filter
          (v1.36)
Reads:    node.metadata, node.status.allocatable; the pod's claims
Rejects:  UnschedulableAndUnresolvable.
Invariants: the special claim, if any, is the last; claims are allocated in order.
Differs:  a pod that shares its group's pending allocation fits only where that allocation can be
          used, and results stay in order of the claims; upstream does neither.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.framework.dra.devices import check_node_selector, matches_node_selector
from kubesched.framework.dra.pools import AllocationError
from kubesched.framework.status import SUCCESS, NodeToStatus, Status, failure, unresolvable
from kubesched.plugins.dynamic_resources.allocator import Allocator, NodeRejected, SearchExhausted
from kubesched.plugins.dynamic_resources.claims import BindingFailedError, is_ready_for_binding
from kubesched.plugins.dynamic_resources.describing import (
    describe_allocation,
    describe_devices,
    describe_unready,
)
from kubesched.plugins.dynamic_resources.extended_resources import (
    NO_CLAIM,
    ExtendedResources,
    NodeClaim,
)
from kubesched.plugins.dynamic_resources.remembered_searches import (
    NOT_SEARCHED,
    SOLVED,
    UNSOLVED,
    ClaimSearch,
    Found,
    RememberedSearches,
    alternatives_score,
)
from kubesched.snapshot.node_selection import match_node_selector
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.snapshot import Snapshot

_NOT_AVAILABLE: Final = unresolvable("resourceclaim not available on the node")
_NOT_ALLOCATABLE: Final = unresolvable("cannot allocate all claims")

IsTimedOut = Callable[[ResourceClaim], bool]


@dataclass(slots=True, eq=False)
class ClaimInformation:
    """One of the pod's claims.

    Attributes:
        claim: The claim as last read or written.
        is_special: Whether it is the special claim.
        uid: The claim's uid at the start of the cycle; the special claim gets another one.
        shared: The pending allocation of the pod's group, which the pod reuses.
        reserved: The allocation that is reserved for the pod.
    """

    claim: ResourceClaim
    is_special: bool = False
    uid: str = field(init=False)
    shared: AllocationResult | None = None
    reserved: AllocationResult | None = None

    def __post_init__(self) -> None:
        self.uid = self.claim.metadata.uid

    @property
    def allocation(self) -> AllocationResult | None:
        """The claim's allocation, written or shared; None if devices must be found."""
        return self.claim.status.allocation or self.shared

    def needed_with(self, special: NodeClaim) -> ResourceClaim:
        """Return the claim to allocate on nodes that need this special claim."""
        return special.claim if self.is_special and special.claim is not None else self.claim

    def is_usable_on(self, node: Node, is_timed_out: IsTimedOut | None) -> bool:
        """Whether the allocation can be used on the node, and its devices may become ready."""
        selector = None if self.allocation is None else self.allocation.node_selector
        if selector is not None and not matches_node_selector(selector, node):
            return False
        return self._may_become_ready(is_timed_out)

    def usable_rows(self, nodes: NodeTable, is_timed_out: IsTimedOut | None) -> NDArray[np.bool_]:
        """Return `is_usable_on` of every node, as bool per row."""
        if not self._may_become_ready(is_timed_out):
            return np.zeros(len(nodes), np.bool_)
        selector = None if self.allocation is None else self.allocation.node_selector
        if selector is None:
            return np.ones(len(nodes), np.bool_)
        check_node_selector(selector)
        return match_node_selector(selector, nodes)

    def _may_become_ready(self, is_timed_out: IsTimedOut | None) -> bool:
        if self.claim.status.allocation is None or is_timed_out is None:
            return True
        try:
            return is_ready_for_binding(self.claim) or not is_timed_out(self.claim)
        except BindingFailedError:
            return False


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """The allocations found for one node.

    Attributes:
        results: The allocation of each claim without one.
        special: The special claim as this node needs it.
    """

    results: tuple[AllocationResult, ...] = ()
    special: NodeClaim = NO_CLAIM


@dataclass(slots=True, eq=False)
class DynamicResourcesState:
    """The state of one pod. Mutable: Filter, Reserve and PreBind add their results.

    Attributes:
        claims: The pod's claims, the special one last.
        extended: The extended resources that the special claim is for; None if there is none.
        snapshot: The snapshot of the cycle; None if the pod has no claims.
        is_timed_out: Returns whether the time for a claim's devices to become ready has passed;
            None if devices are always ready.
        allocator: Allocates claims without an allocation; None if there are none.
        remembered: The results of searches for earlier pods, set with `allocator`.
        searches: Resources that devices must provide -> the search on the nodes that lack them.
        search_on: Name of a node that Filter asked about -> its search; None if it needs none.
        common_search: The search of the other nodes, whose results were known.
        unavailable: Allocated claims that a node could not use, in order.
        chosen: Node name -> allocations that are or were reserved there.
    """

    claims: Sequence[ClaimInformation] = ()
    extended: ExtendedResources | None = None
    snapshot: Snapshot | None = None
    is_timed_out: IsTimedOut | None = None
    allocator: Allocator | None = None
    remembered: RememberedSearches | None = None
    searches: dict[tuple[str, ...], ClaimSearch] = field(default_factory=dict)
    search_on: dict[str, ClaimSearch | None] = field(default_factory=dict)
    common_search: ClaimSearch | None = None
    unavailable: dict[ClaimInformation, None] = field(default_factory=dict)
    chosen: dict[str, NodeAllocation] = field(default_factory=dict)

    @property
    def special_claim(self) -> ResourceClaim | None:
        """The claim for extended resources."""
        return None if self.extended is None else self.claims[-1].claim

    def to_allocate(self) -> list[ClaimInformation]:
        """Return the claims without a written allocation."""
        return [one for one in self.claims if one.claim.status.allocation is None]

    # Filter.

    def filter_all(self, nodes: NodeTable) -> NodeToStatus:
        """Return the status of each row of `nodes`, a selection of the table or the table itself.

        If only the search for devices decides, nodes with a kept result are not searched again.
        """
        if self.allocator is None and self.extended is None:
            return self._filter_allocated(nodes)
        common = self.common_search = self._common_search()
        if common is None or self.allocator is None:
            return NodeToStatus.of([self.filter(node) for node in nodes.nodes])
        assert self.snapshot is not None, "pre_filter sets it"
        table, rows = self.snapshot.nodes, self.snapshot.rows_of(nodes)
        index = np.array(common.outcomes(table, self.allocator)[rows])
        if self.extended is not None:
            index[self.extended.is_unusual(nodes)] = NOT_SEARCHED
        missing = np.flatnonzero(index == NOT_SEARCHED)
        asked = np.arange(len(table))[rows][missing].tolist()
        found = NodeToStatus.of([self.filter(table.nodes[row]) for row in asked])
        index[missing] = np.where(found.index, found.index + UNSOLVED, SOLVED)
        return NodeToStatus(index, [SUCCESS, _NOT_ALLOCATABLE, *found.statuses[1:]])

    def _filter_allocated(self, nodes: NodeTable) -> NodeToStatus:
        """Return the status of each row if all claims are allocated."""
        usable = [one.usable_rows(nodes, self.is_timed_out) for one in self.claims]
        unusable = [(int(rows.argmin()), at) for at, rows in enumerate(usable) if not rows.all()]
        for _, at in sorted(unusable):
            self._note_unavailable([self.claims[at]])
        passed = np.logical_and.reduce(usable) if usable else np.ones(len(nodes), np.bool_)
        return NodeToStatus.rejecting(~passed, _NOT_AVAILABLE)

    def _note_unavailable(self, claims: Sequence[ClaimInformation]) -> None:
        # An allocation that is not written yet cannot be deallocated.
        self.unavailable |= dict.fromkeys(one for one in claims if one.shared is None)

    def filter(self, node: Node) -> Status:
        """Return success if the node satisfies all claims; keep the allocations found."""
        name, resources = node.metadata.name, self._resources_of_devices(node)
        if isinstance(resources, Status):
            return resources
        if self.extended is not None and not resources and len(self.claims) == 1:
            self.search_on[name] = None
            return SUCCESS
        unusable = self._unusable_on(node)
        if self.allocator is not None:
            search = self.search_on[name] = self._search_for(resources)
            status = _search(search, node, self.allocator)
            if not status.is_success:
                return status
            self.chosen.pop(name, None)
        if unusable:
            self._note_unavailable(unusable)
            return _NOT_AVAILABLE
        return SUCCESS

    def describe(self, node: Node) -> str:
        """Return what the node lacks, by claim and request."""
        resources = self._resources_of_devices(node)
        if isinstance(resources, Status):
            lacking = [] if self.extended is None else self.extended.not_offered_on(node)
            return f"neither the node nor a DeviceClass offers {', '.join(lacking)}"
        if self.allocator is not None:
            search = self._search_for(resources)
            if search.on(node, self.allocator) is None:
                return describe_devices(self.allocator, node, search.claims)
        return "; ".join(
            describe_allocation(one.claim, one.allocation, node) for one in self._unusable_on(node)
        )

    def describe_wait(self, node_name: str) -> Iterator[str]:
        """Yield the devices on the chosen node that are not ready."""
        found = self.allocation_on(node_name)
        allocations = iter(() if found is None else found.results)
        for one in self.claims:
            allocation = one.claim.status.allocation or one.reserved or next(allocations, None)
            if allocation is not None:
                yield from describe_unready(one.claim, allocation)

    def _resources_of_devices(self, node: Node) -> tuple[str, ...] | Status:
        """Return the resources that devices must provide, or the node's final status."""
        return () if self.extended is None else self.extended.of_devices(node)

    def _unusable_on(self, node: Node) -> list[ClaimInformation]:
        return [one for one in self.claims if not one.is_usable_on(node, self.is_timed_out)]

    def _common_search(self) -> ClaimSearch | None:
        """Return the search that decides on most nodes; None if more than a search decides."""
        if self.allocator is None or any(one.allocation is not None for one in self.claims):
            return None
        resources = () if self.extended is None else self.extended.usually_of_devices()
        return None if resources is None else self._search_for(resources)

    def _search_for(self, resources: tuple[str, ...]) -> ClaimSearch:
        """Return the search on the nodes where devices must provide these resources."""
        known = self.searches.get(resources)
        if known is None:
            special = NO_CLAIM if self.extended is None else self.extended.claim_for(resources)
            missing = [one for one in self.claims if one.allocation is None]
            claims = [one.needed_with(special) for one in missing]
            assert self.remembered is not None, "pre_filter sets it with the allocator"
            known = ClaimSearch(special, claims, self.remembered.of(claims))
            self.searches[resources] = known
        return known

    # Score and Reserve.

    def has_alternatives(self) -> bool:
        """Whether a request has alternatives; otherwise all nodes score 0."""
        return any(
            request.exactly is None
            for one in self.claims
            for request in one.claim.spec.devices.requests
        )

    def score(self, node_name: str) -> int:
        """Return a number that is higher the earlier the chosen alternatives are listed."""
        _, found = self._found(node_name)
        if found is None or found.results is None:
            return 0
        allocated = [(one.claim, one.allocation) for one in self.claims if one.allocation]
        return found.score + sum(alternatives_score(*one) for one in allocated)

    def allocation_on(self, node_name: str) -> NodeAllocation | None:
        """Return the allocations that Filter found for a node; None if there are none."""
        known = self.chosen.get(node_name)
        if known is not None:
            return known
        search, found = self._found(node_name)
        if search is None or found is None or found.results is None:
            return None
        new = iter(found.results)
        results = tuple(one.shared or next(new) for one in self.to_allocate())
        # The kept results change with the next pod, and this pod may be reserved twice.
        chosen = self.chosen[node_name] = NodeAllocation(results, search.special)
        return chosen

    def end_search(self, node_name: str) -> NodeClaim:
        """Return the special claim as the chosen node needs it; drop the results of Filter.

        The pod may wait long for its binding.
        """
        found = self.allocation_on(node_name)
        self.searches, self.search_on, self.chosen = {}, {}, {}
        self.common_search = self.remembered = self.allocator = self.snapshot = None
        return NO_CLAIM if found is None else found.special

    def _found(self, node_name: str) -> tuple[ClaimSearch | None, Found | None]:
        search = self.search_on.get(node_name, self.common_search)
        return search, None if search is None else search.results.latest(node_name)


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
