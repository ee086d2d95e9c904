"""DynamicResourcesState: the plugin's data about one pod during its cycle.

If a pod requests extended resources that are backed by devices, the scheduler creates a claim for
them, the special claim, in addition to the claims of the pod's spec.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, stateData (v1.36)
Invariants: the special claim, if any, is the last; claims are allocated in order.
Differs:  nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kubesched.api.meta import NodeSelector
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.framework.dra import DeviceClasses
from kubesched.plugins.dynamic_resources.allocator import Allocator
from kubesched.plugins.dynamic_resources.extended_resources import NodeClaim
from kubesched.plugins.dynamic_resources.remembered_searches import (
    ClaimSearch,
    Found,
    RememberedSearches,
    alternatives_score,
)
from kubesched.snapshot.snapshot import Snapshot

NO_CLASSES: Final = DeviceClasses(())
NO_CLAIM: Final = NodeClaim()


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
        has_special_claim: Whether the last claim is special.
        snapshot: The snapshot of the cycle; None if the pod has no claims.
        scalars: The pod's extended resource requests.
        classes: The device classes.
        special_uid: The special claim's uid at the start of the cycle.
        available_on: Per claim, the node selector of its allocation.
        allocations: Per claim, the reserved allocation.
        shared: Per claim, the pending allocation of the pod's group, which the pod reuses.
        allocator: Allocates claims without an allocation; None if there are none.
        remembered: The results of searches for earlier pods, set with `allocator`.
        searches: Resources that devices must provide -> the search on the nodes that lack them.
        search_on: Name of a node that Filter asked about -> its search; None if it needs none.
        common_search: The search of the other nodes, whose results were known.
        unavailable: Positions of allocated claims that a node could not use, in order.
        chosen: Node name -> allocations that are or were reserved there.
    """

    claims: list[ResourceClaim] = field(default_factory=list)
    has_special_claim: bool = False
    snapshot: Snapshot | None = None
    scalars: dict[str, int] = field(default_factory=dict)
    classes: DeviceClasses = NO_CLASSES
    special_uid: str = field(init=False, default="")
    available_on: list[NodeSelector | None] = field(init=False)
    allocations: list[AllocationResult | None] = field(init=False)
    shared: list[AllocationResult | None] = field(init=False)
    allocator: Allocator | None = None
    remembered: RememberedSearches | None = None
    searches: dict[tuple[str, ...], ClaimSearch] = field(default_factory=dict)
    search_on: dict[str, ClaimSearch | None] = field(default_factory=dict)
    common_search: ClaimSearch | None = None
    unavailable: dict[int, None] = field(default_factory=dict)
    chosen: dict[str, NodeAllocation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.available_on = [None] * len(self.claims)
        self.allocations = [None] * len(self.claims)
        self.shared = [None] * len(self.claims)
        if self.has_special_claim:
            self.special_uid = self.claims[-1].metadata.uid

    @property
    def special_claim(self) -> ResourceClaim | None:
        """The claim for extended resources."""
        return self.claims[-1] if self.has_special_claim else None

    @property
    def has_user_claims(self) -> bool:
        """Whether the pod's spec names a claim."""
        return len(self.claims) > self.has_special_claim

    @property
    def user_claims(self) -> list[ResourceClaim]:
        """The claims of the pod's spec."""
        return self.claims[:-1] if self.has_special_claim else self.claims

    def is_special(self, index: int) -> bool:
        """Whether the claim at `index` is the special one."""
        return self.has_special_claim and index == len(self.claims) - 1

    def to_allocate(self) -> Iterator[int]:
        """Yield the positions of the claims without an allocation."""
        return (at for at, claim in enumerate(self.claims) if claim.status.allocation is None)

    def allocation_on(self, node_name: str) -> NodeAllocation | None:
        """Return the allocations that Filter found for a node; None if there are none."""
        known = self.chosen.get(node_name)
        if known is not None:
            return known
        search, found = self._found(node_name)
        if search is None or found is None or found.results is None:
            return None
        new = iter(found.results)
        results = tuple(self.shared[at] or next(new) for at in self.to_allocate())
        # The kept results change with the next pod, and this pod may be reserved twice.
        chosen = self.chosen[node_name] = NodeAllocation(results, search.special)
        return chosen

    def forget_others(self, node_name: str) -> None:
        """Keep only what was found for the chosen node: the pod may wait long for its binding."""
        found = self.allocation_on(node_name)
        self.chosen = {} if found is None else {node_name: found}
        self.searches, self.search_on = {}, {}
        self.common_search = self.remembered = self.allocator = self.snapshot = None

    def has_alternatives(self) -> bool:
        """Whether a request has alternatives; otherwise all nodes score 0."""
        return any(
            request.exactly is None
            for claim in self.claims
            for request in claim.spec.devices.requests
        )

    def score(self, node_name: str) -> int:
        """Return a number that is higher the earlier the chosen alternatives are listed."""
        _, found = self._found(node_name)
        if found is None or found.results is None:
            return 0
        total = found.score
        for claim, shared in zip(self.claims, self.shared, strict=True):
            allocation = claim.status.allocation or shared
            if allocation is not None:
                total += alternatives_score(claim, allocation)
        return total

    def _found(self, node_name: str) -> tuple[ClaimSearch | None, Found | None]:
        search = self.search_on.get(node_name, self.common_search)
        return search, None if search is None else search.results.latest(node_name)
