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
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
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
from kubesched.framework.dra.pools import AllocationError, PoolID, PoolIndex
from kubesched.plugins.dynamic_resources.allocator import (
    Allocator,
    DecidingDevices,
    KnownDevices,
    NodeRejected,
    SearchExhausted,
)
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
        number: The number of the group.
        pools: The pools of these nodes.
        found: What it finds; None if that is not known.
    """

    number: int
    pools: set[PoolID] = field(default_factory=set)
    found: Found | None = None


_NO_GROUP: Final[tuple[Mapping[str, str], _EqualNodes | None]] = {}, None


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
        # Node name -> what is found there, for nodes without a group.
        self._found: dict[str, Found] = {}
        # Node name -> its labels and its group, None if it has none.
        self._group_of_node: dict[str, tuple[Mapping[str, str], _EqualNodes | None]] = {}
        self._groups: dict[DecidingDevices, _EqualNodes] = {}
        # What `common_pools` returns -> the group of nodes with these pools.
        self._group_of_pools: dict[tuple[int, ...], _EqualNodes] = {}
        # Per row, what is found for nodes without a group, and the number of the group or -1.
        self._outcomes: NDArray[np.int32] = np.zeros(0, np.int32)
        self._numbers: NDArray[np.int32] = np.zeros(0, np.int32)
        self._table: NodeColumns | None = None
        self._epoch = -1

    def __len__(self) -> int:
        """Number of results, plus what unusable devices take, in results."""
        groups, unusable = len(self._groups), len(self.unusable) // _UNUSABLE_PER_RESULT
        return len(self._found) + groups + unusable

    def get(self, node: Node) -> Found | None:
        """Return what a search on the node would find, if it is known."""
        name, labels = node.metadata.name, node.metadata.labels
        found = self._found.get(name)
        if found is not None:
            return found if found.labels == labels else None
        known, group = self._group_of_node.get(name, _NO_GROUP)
        return group.found if group is not None and known == labels else None

    def latest(self, name: str) -> Found | None:
        """Return what is kept for a node of the latest table."""
        _, group = self._group_of_node.get(name, _NO_GROUP)
        return self._found.get(name) if group is None else group.found

    def put(self, node: Node, found: Found) -> None:
        """Keep the result of a search on a node without a group."""
        self._found[node.metadata.name] = found
        self._set(self._outcomes, node.metadata.name, _outcome_of(found))

    def group_of(
        self,
        node: Node,
        index: PoolIndex,
        deciding_devices: Callable[[], DecidingDevices | None],
    ) -> _EqualNodes | None:
        """Return the node's group, None if it has none.

        `deciding_devices` returns what the claims may get on the node, None if that is not sure.
        """
        name, labels = node.metadata.name, node.metadata.labels
        known = self._group_of_node.get(name)
        if known is None or known[0] != labels:
            common = index.common_pools(node)
            group = self._group_of_pools.get(common) if common else None
            if group is None:
                devices = deciding_devices()
                group = None if devices is None else self._groups.get(devices)
                if devices is not None and group is None and len(self._groups) < _GROUPS_MAX:
                    group = self._groups[devices] = _EqualNodes(len(self._groups))
            known = self._group_of_node[name] = labels, group
            if group is not None:
                if common:
                    self._group_of_pools[common] = group
                group.pools.update(pool.id for pool in index.of(node).pools)
                self._found.pop(name, None)
                self._set(self._numbers, name, group.number)
        return known[1]

    def forget_all(self) -> None:
        """Drop all results."""
        self._found.clear()
        for group in self._groups.values():
            group.found = None
        self.unusable.clear()
        self._outcomes.fill(NOT_SEARCHED)

    def forget_pool(self, pool: PoolID, readers: Mapping[str, None]) -> None:
        """Drop the results for the nodes that can use devices of a pool, its readers."""
        self.unusable.forget(pool)
        for group in self._groups.values():
            if pool in group.pools:
                group.found = None
        few, many = sorted((readers, self._found), key=len)
        for name in [name for name in few if name in many]:
            self._forget(name)

    def forget_devices(self, name: str) -> None:
        """Drop all that is known about a node, because its devices changed."""
        self._forget(name)
        if self._group_of_node.pop(name, _NO_GROUP)[1] is not None:
            self._set(self._numbers, name, -1)

    def outcomes(self, table: NodeColumns) -> NDArray[np.int32]:
        """Return SOLVED, UNSOLVED or NOT_SEARCHED per row; valid until the next change."""
        if table is not self._table or table.labels_epoch != self._epoch:
            self._renew(table)
        if not self._groups:
            return self._outcomes
        # The last is for rows without a group.
        of_group = [_outcome_of(group.found) for group in self._groups.values()]
        found = np.array([*of_group, NOT_SEARCHED], np.int32)[self._numbers]
        return np.where(self._numbers < 0, self._outcomes, found)

    def unsearched(self) -> list[int]:
        """Return a row of the latest table for each group whose result is not known."""
        open_groups = (group.number for group in self._groups.values() if group.found is None)
        rows = (np.flatnonzero(self._numbers == number)[:1] for number in open_groups)
        return [row for found in rows for row in found.tolist()]

    def _renew(self, table: NodeColumns) -> None:
        """Set the columns for a table whose nodes have changed."""
        self._table, self._epoch = table, table.labels_epoch
        known, self._found = self._found, {}
        outcomes, numbers = [NOT_SEARCHED] * len(table), [-1] * len(table)
        for row, (name, node) in enumerate(zip(table.names, table.nodes, strict=True)):
            labels, group = self._group_of_node.get(name, _NO_GROUP)
            if group is not None:
                numbers[row] = group.number if labels == node.metadata.labels else -1
            elif (found := known.get(name)) is not None and found.labels == node.metadata.labels:
                self._found[name] = found
                outcomes[row] = _outcome_of(found)
        self._outcomes, self._numbers = np.array(outcomes, np.int32), np.array(numbers, np.int32)

    def _forget(self, name: str) -> None:
        if self._found.pop(name, None) is not None:
            self._set(self._outcomes, name, NOT_SEARCHED)

    def _set(self, column: NDArray[np.int32], name: str, number: int) -> None:
        if self._table is not None and self._table.labels_epoch == self._epoch:
            row = self._table.row_of.get(name)
            if row is not None:
                column[row] = number


def _outcome_of(found: Found | None) -> int:
    if found is None:
        return NOT_SEARCHED
    return UNSOLVED if found.results is None else SOLVED


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

        Of the nodes of a group, and of those without devices, only one is searched.
        """
        kept, without = self.results, allocator.index.without_devices(table)
        if not without.any():
            found = kept.outcomes(table)
            for row in kept.unsearched():
                # If it fails, the nodes are searched one by one.
                with suppress(AllocationError, NodeRejected, SearchExhausted):
                    self.on(table.nodes[row], allocator)
                    found = kept.outcomes(table)
            return found
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
            found = self._search(node, allocator, None)
            kept.put(node, found)
            return found.results
        find = partial(allocator.deciding_devices, node, self.claims, kept.deciding)
        group = kept.group_of(node, allocator.index, find)
        if group is not None and group.found is not None:
            return group.found.results
        found = self._search(node, allocator, kept.unusable)
        if group is None:
            kept.put(node, found)
        else:
            group.found = found
        return found.results

    def _search(self, node: Node, allocator: Allocator, unusable: UnusableDevices | None) -> Found:
        results = allocator.allocate(node, self.claims, unusable)
        score = sum(map(alternatives_score, self.claims, results or ()))
        return Found(node.metadata.labels, results, score)


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
                results.forget_pool(pool, self.index.readers(pool))
