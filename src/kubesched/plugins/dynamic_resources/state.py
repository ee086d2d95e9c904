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
from kubesched.api.resource import FIRST_AVAILABLE_MAX, AllocationResult, ResourceClaim
from kubesched.framework.dra import DeviceClasses
from kubesched.plugins.dynamic_resources.allocator import Allocator
from kubesched.plugins.dynamic_resources.extended_resources import NodeClaim
from kubesched.plugins.dynamic_resources.remembered_searches import NodeResults
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
        special_uid: The special claim's uid at the start of the cycle.
        available_on: Per claim, the node selector of its allocation.
        allocations: Per claim, the reserved allocation.
        shared: Per claim, the pending allocation of the pod's group, which the pod reuses.
        scalars: The pod's extended resource requests.
        classes: The device classes, if the pod has a special claim.
        allocator: Allocates claims without an allocation; None if there are none.
        unavailable: Positions of allocated claims that a node could not use, in order.
        nodes: Node name -> allocations found there for this pod.
        kept: Allocations found for earlier pods with equal claims; None if they may not be reused.
        kept_special: The special claim that the kept allocations are for.
        snapshot: The snapshot of the cycle, set by PreFilter.
        special_by_resources: Resources that devices must provide -> the special claim, as a cache.
    """

    claims: list[ResourceClaim] = field(default_factory=list)
    has_special_claim: bool = False
    special_uid: str = ""
    available_on: list[NodeSelector | None] = field(default_factory=list)
    allocations: list[AllocationResult | None] = field(default_factory=list)
    shared: list[AllocationResult | None] = field(default_factory=list)
    scalars: dict[str, int] = field(default_factory=dict)
    classes: DeviceClasses = NO_CLASSES
    allocator: Allocator | None = None
    unavailable: dict[int, None] = field(default_factory=dict)
    nodes: dict[str, NodeAllocation] = field(default_factory=dict)
    kept: NodeResults | None = None
    kept_special: NodeClaim = NO_CLAIM
    snapshot: Snapshot | None = None
    special_by_resources: dict[tuple[str, ...], NodeClaim] = field(default_factory=dict)

    @classmethod
    def of(
        cls, claims: list[ResourceClaim], special: ResourceClaim | None
    ) -> "DynamicResourcesState":
        """Return the state at the start of the cycle."""
        every = claims if special is None else [*claims, special]
        return cls(
            claims=every,
            has_special_claim=special is not None,
            special_uid="" if special is None else special.metadata.uid,
            available_on=[None] * len(every),
            allocations=[None] * len(every),
            shared=[None] * len(every),
        )

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
        """Return the allocations that Filter found for a node, or None."""
        found = self.nodes.get(node_name)
        if found is None and self.kept is not None:
            results = self.kept.solution(node_name)
            if results is not None:
                # The kept results change with the next pod, and this pod may be reserved twice.
                found = self.nodes[node_name] = NodeAllocation(results, self.kept_special)
        return found

    def forget_others(self, node_name: str) -> None:
        """Keep only what was found for the chosen node: the pod may wait long for its binding."""
        found = self.allocation_on(node_name)
        self.nodes = {} if found is None else {node_name: found}
        self.kept = self.allocator = self.snapshot = None

    def has_alternatives(self) -> bool:
        """Whether a request has alternatives; otherwise all nodes score 0."""
        return any(
            request.exactly is None
            for claim in self.claims
            for request in claim.spec.devices.requests
        )

    def score(self, node_name: str) -> int:
        """Return a number that is higher the earlier the chosen alternatives are listed."""
        kept = self.kept
        if kept is None or node_name in self.nodes:
            found = self.nodes.get(node_name)
            return 0 if found is None else self._score(found.results)
        results = kept.solution(node_name)
        if results is None:
            return 0
        known = kept.scores.get(node_name)
        if known is None or known[0] is not results:
            known = kept.scores[node_name] = results, self._score(results)
        return known[1]

    def _score(self, new_results: tuple[AllocationResult, ...]) -> int:
        results = iter(new_results)
        return sum(
            _alternatives_score(claim, claim.status.allocation or next(results))
            for claim in self.claims
        )


def _alternatives_score(claim: ResourceClaim, allocation: AllocationResult) -> int:
    chosen = {result.request for result in allocation.devices.results}
    return sum(
        FIRST_AVAILABLE_MAX - at
        for request in claim.spec.devices.requests
        if request.exactly is None
        for at, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in chosen
    )
