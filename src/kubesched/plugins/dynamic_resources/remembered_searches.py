"""RememberedSearches: keeps the results of device searches for pods with equal claims.

Pods of a template have equal claims, and an allocation changes the devices of few nodes. So a node
is searched again only if one of its devices, or its labels, changed. Devices that many nodes can
use change for all of them: there, one search serves all nodes on which the claims may get the same
devices, and leaves out the devices that earlier searches could not use.

Reads:      claim.spec.devices; the log of changed devices
Invariants: a kept result equals that of a new search (a property test compares them).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node
from kubesched.api.resource import (
    FIRST_AVAILABLE_MAX,
    AllocationResult,
    ResourceClaim,
    ResourceSlice,
)
from kubesched.framework.dra.claim_tracker import AllocatedState, DeviceID
from kubesched.framework.dra.pools import AllocationError, PoolIndex
from kubesched.plugins.dynamic_resources.allocator import Allocator, KnownDevices
from kubesched.plugins.dynamic_resources.extended_resources import NodeClaim
from kubesched.plugins.dynamic_resources.node_devices import UnusableDevices
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.node_columns import NodeColumns

Results = tuple[AllocationResult, ...] | None
"""One result per claim, or None if there is no solution on the node."""

SOLVED, UNSOLVED, NOT_SEARCHED = 0, 1, 2
_CLAIMS_MAX: Final = 256
_RESULTS_MAX: Final = 100_000
"""About 1 KiB each."""
_UNUSABLE_PER_RESULT: Final = 8
_GROUPS_MAX: Final = 64
"""A group may list thousands of devices. Nodes beyond these groups are searched one by one."""

_encode = msgspec.msgpack.Encoder().encode


class Found(NamedTuple):
    """The result of a search on a node with these labels, and its score by alternatives."""

    labels: Mapping[str, str]
    results: Results
    score: int


@dataclass(slots=True)
class _EqualNodes:
    """Nodes on which a search for the same claims finds the same.

    Attributes:
        found: What it finds; None if that is not known.
    """

    found: Found | None = None


class NodeResults:
    """The results for claims with equal specs, by node.

    Attributes:
        deciding: The devices of common pools that the claims may get.
        unusable: Devices that no search for these claims can use.
        need_devices: Whether nodes without devices have no result; None if that is not known.
    """

    def __init__(self) -> None:
        self.deciding: KnownDevices = {}
        self.unusable = UnusableDevices()
        self.need_devices: bool | None = None
        self._found: dict[str, Found] = {}
        # Node name -> its labels and its group, None if it has none.
        self._group_of_node: dict[str, tuple[Mapping[str, str], _EqualNodes | None]] = {}
        self._groups: dict[tuple[DeviceID, ...], _EqualNodes] = {}
        self._outcomes: NDArray[np.int32] = np.zeros(0, np.int32)
        self._table: NodeColumns | None = None
        self._epoch = -1

    def __len__(self) -> int:
        """Number of nodes with a result, plus what unusable devices take, in results."""
        return len(self._found) + len(self.unusable) // _UNUSABLE_PER_RESULT

    def get(self, node: Node) -> Found | None:
        """Return what a search on the node would find, if it is known."""
        found = self._found.get(node.metadata.name)
        return found if found is not None and found.labels == node.metadata.labels else None

    def latest(self, name: str) -> Found | None:
        """Return what is kept for a node of the latest table."""
        return self._found.get(name)

    def put(self, node: Node, results: Results, score: int) -> Found:
        """Keep the result of a search."""
        name = node.metadata.name
        found = self._found[name] = Found(node.metadata.labels, results, score)
        self._set_outcome(name, UNSOLVED if results is None else SOLVED)
        return found

    def group_of(
        self, node: Node, deciding_devices: Callable[[], tuple[DeviceID, ...] | None]
    ) -> _EqualNodes | None:
        """Return the node's group, None if it has none.

        `deciding_devices` returns what the claims may get on the node, None if that is not sure.
        """
        name, labels = node.metadata.name, node.metadata.labels
        known = self._group_of_node.get(name)
        if known is None or known[0] != labels:
            devices = deciding_devices()
            group = None if devices is None else self._groups.get(devices)
            if devices is not None and group is None and len(self._groups) < _GROUPS_MAX:
                group = self._groups[devices] = _EqualNodes()
            known = self._group_of_node[name] = labels, group
        return known[1]

    def forget_all(self) -> None:
        """Drop all results."""
        self._found.clear()
        for group in self._groups.values():
            group.found = None
        self.unusable.clear()
        self._outcomes.fill(NOT_SEARCHED)

    def forget(self, name: str) -> None:
        """Drop the result for a node."""
        if self._found.pop(name, None) is not None:
            self._set_outcome(name, NOT_SEARCHED)
        _, group = self._group_of_node.get(name, (None, None))
        if group is not None:
            group.found = None

    def forget_devices(self, name: str) -> None:
        """Drop all that is known about a node, because its devices changed."""
        self.forget(name)
        self._group_of_node.pop(name, None)

    def outcomes(self, table: NodeColumns) -> NDArray[np.int32]:
        """Return SOLVED, UNSOLVED or NOT_SEARCHED per row; valid until the next change."""
        if table is not self._table or table.labels_epoch != self._epoch:
            self._table, self._epoch = table, table.labels_epoch
            known, self._found = self._found, {}
            outcomes = [NOT_SEARCHED] * len(table)
            for row, (name, node) in enumerate(zip(table.names, table.nodes, strict=True)):
                found = known.get(name)
                if found is not None and found.labels == node.metadata.labels:
                    self._found[name] = found
                    outcomes[row] = UNSOLVED if found.results is None else SOLVED
            self._outcomes = np.array(outcomes, np.int32)
        return self._outcomes

    def _set_outcome(self, name: str, outcome: int) -> None:
        if self._table is not None and self._table.labels_epoch == self._epoch:
            row = self._table.row_of.get(name)
            if row is not None:
                self._outcomes[row] = outcome


@dataclass(frozen=True, slots=True)
class ClaimSearch:
    """The search for devices on the nodes that need the same special claim.

    Attributes:
        special: The special claim as these nodes need it.
        claims: The claims to allocate.
        results: What was found so far, also for earlier pods with equal claims.
    """

    special: NodeClaim
    claims: Sequence[ResourceClaim]
    results: NodeResults

    def outcomes(self, table: NodeColumns, allocator: Allocator) -> NDArray[np.int32]:
        """Return SOLVED, UNSOLVED or NOT_SEARCHED per row; valid until the next change.

        Of the nodes without devices, only one is searched.
        """
        kept, without = self.results, allocator.index.without_devices(table)
        if not without.any():
            return kept.outcomes(table)
        if kept.need_devices is None:
            kept.need_devices = self._fails_on(table.nodes[int(without.argmax())], allocator)
        found = kept.outcomes(table)
        return np.where(without, UNSOLVED, found) if kept.need_devices else found

    def _fails_on(self, node: Node, allocator: Allocator) -> bool:
        """Whether there is no result for a node, and no error either."""
        try:
            return allocator.allocate(node, self.claims) is None
        except AllocationError:
            return False

    def on(self, node: Node, allocator: Allocator) -> Results:
        """Return what is found on a node; it is searched unless the result is known.

        Raises:
            AllocationError, NodeRejected, SearchExhausted: See `Allocator.allocate`.
        """
        kept = self.results
        found = kept.get(node)
        if found is not None:
            return found.results
        if not allocator.index.has_shared:
            return self._put(node, allocator.allocate(node, self.claims)).results
        group = kept.group_of(
            node, lambda: allocator.deciding_devices(node, self.claims, kept.deciding)
        )
        if group is not None and group.found is not None:
            return kept.put(node, group.found.results, group.found.score).results
        found = self._put(node, allocator.allocate(node, self.claims, kept.unusable))
        if group is not None:
            group.found = found
        return found.results

    def _put(self, node: Node, results: Results) -> Found:
        score = sum(map(alternatives_score, self.claims, results or ()))
        return self.results.put(node, results, score)


def alternatives_score(claim: ResourceClaim, allocation: AllocationResult) -> int:
    """Return a number that is higher the earlier the allocated alternatives are listed."""
    listed = [each for each in claim.spec.devices.requests if each.exactly is None]
    if not listed:
        return 0
    chosen = {result.request for result in allocation.devices.results}
    return sum(
        FIRST_AVAILABLE_MAX - at
        for request in listed
        for at, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in chosen
    )


class RememberedSearches:
    """Results by claims; the least recently used claims are dropped.

    Besides nodes and claims, searches read the allocated devices, the slices and the classes. The
    results must be dropped when classes change, or `update` returns False.

    Attributes:
        index: The slices.
    """

    def __init__(self, allocated: AllocatedState, index: PoolIndex) -> None:
        self.index = index
        self._allocated = allocated
        self._by_claims: OrderedDict[bytes, NodeResults] = OrderedDict()
        self._changed: ChangeReader[DeviceID] = ChangeReader()

    def update(self, changed: Mapping[str, ResourceSlice | None], nodes: int) -> bool:
        """Replace slices, as `PoolIndex.update`; drop what is known about the nodes concerned.

        Returns False if all results must be dropped.
        """
        concerned = self.index.update(changed, nodes)
        for results in self._by_claims.values():
            for name in concerned or ():
                results.forget_devices(name)
        return concerned is not None

    def of(self, claims: Sequence[ResourceClaim]) -> NodeResults:
        """Return the results for claims with equal specs; the caller adds to them."""
        if self.index.shares_counters:
            # What is left in the pools depends on the node that is tried first.
            return NodeResults()
        self._forget_changed()
        # A search reads nothing else of claims; their names appear only in errors.
        key = _encode([claim.spec.devices for claim in claims])
        found = self._by_claims.get(key)
        if found is None:
            self._make_room()
            found = self._by_claims[key] = NodeResults()
        else:
            self._by_claims.move_to_end(key)
        return found

    def _make_room(self) -> None:
        """Drop the least recently used claims if there are too many, or too many results."""
        kept, results = self._by_claims, sum(map(len, self._by_claims.values()))
        while kept and (len(kept) >= _CLAIMS_MAX or results > _RESULTS_MAX):
            results -= len(kept.popitem(last=False)[1])

    def _forget_changed(self) -> None:
        """Drop the results for nodes that can use a device that changed."""
        changed = self._changed.read(self._allocated.changes)
        if changed is None:
            for results in self._by_claims.values():
                results.forget_all()
            return
        for pool in dict.fromkeys(device[:2] for device in changed):
            for results in self._by_claims.values():
                results.unusable.forget(pool)
            for name in self.index.readers(pool):
                for results in self._by_claims.values():
                    results.forget(name)
