"""Pools: the resource slices with devices that a node can use.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          pools_incubating.go (v1.36)
Reads:    ResourceSlices; node.metadata
Invariants: pools are ordered by driver and name, those with binding conditions last; the slices of
            a pool by name. Devices are tried in this order.
Differs:  slices are indexed once for all nodes, and the pools of a node are cached.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node
from kubesched.api.resource import CounterSet, Device, ResourceSlice, ResourceSliceSpec
from kubesched.framework.dra.claim_tracker import DeviceID
from kubesched.framework.dra.devices import NodeSelectorError, is_for_node
from kubesched.plugins.dynamic_resources.requests import AllocationError
from kubesched.snapshot.node_columns import NodeColumns

# Fewer are not worth a new index.
_NODES_GONE_MAX: Final = 1000

PoolID = tuple[str, str]
"""Driver and pool name."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool from the point of view of one node.

    Attributes:
        id: Driver and name.
        is_incomplete: Whether slices are missing, so that nothing can be allocated.
        is_invalid: Whether slices contradict each other, so that nothing can be allocated.
        slices: The slices with devices for the node.
        slices_elsewhere: The slices with devices for other nodes, which may share counters.
        counter_sets: The pool's shared counters, by name.
    """

    id: PoolID
    is_incomplete: bool = False
    is_invalid: bool = False
    slices: tuple[ResourceSlice, ...] = ()
    slices_elsewhere: tuple[ResourceSlice, ...] = ()
    counter_sets: dict[str, CounterSet] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`driver/name`."""
        return "/".join(self.id)


class CandidateDevice(NamedTuple):
    """A device with its id, slice and pool."""

    id: DeviceID
    device: Device
    slice: ResourceSlice
    pool: Pool


class NodePools(NamedTuple):
    """The pools that one node can use, and the devices of those that are complete and valid.

    Both are in the order in which they are tried.
    """

    pools: tuple[Pool, ...]
    candidates: tuple[CandidateDevice, ...]


def candidates_of(pool: Pool) -> Iterator[CandidateDevice]:
    """Yield the devices of a pool for the node."""
    driver, name = pool.id
    for item in pool.slices:
        for device in item.spec.devices:
            yield CandidateDevice((driver, name, device.name), device, item, pool)


def matches_node(where: Device | ResourceSliceSpec, node: Node) -> bool:
    """Whether the node selection of a slice or device includes the node; raises AllocationError."""
    try:
        return is_for_node(where, node)
    except NodeSelectorError as error:
        raise AllocationError(f"failed to parse node selector: {error}") from error


class PoolIndex:
    """All slices, indexed by node.

    Attributes:
        shares_counters: Whether pools of several drivers have the same name and counters. They
            then share counters, whose initial values depend on the node that is tried first.
    """

    def __init__(self, slices: Iterable[ResourceSlice], *, partitionable: bool = True) -> None:
        self._partitionable = partitionable
        self._on_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        self._counters: dict[PoolID, list[ResourceSlice]] = {}
        self._by_pool: dict[PoolID, list[ResourceSlice]] = {}
        self._known: dict[str, tuple[Node, NodePools]] = {}
        self._readers: dict[PoolID, dict[str, None]] = {}
        # A table and its epoch of labels -> what `without_devices` returned last.
        self._without: dict[tuple[NodeColumns, int], NDArray[np.bool_]] = {}
        for item in slices:
            spec, pool_id = item.spec, _pool_of(item)
            self._by_pool.setdefault(pool_id, []).append(item)
            if spec.shared_counters:
                self._counters.setdefault(pool_id, []).append(item)
            elif spec.node_name:
                self._on_node.setdefault(spec.node_name, []).append(item)
            else:
                self._shared.append(item)
        with_counters = [
            name
            for (_, name), found in self._by_pool.items()
            if any(item.spec.shared_counters for item in found)
        ]
        self.shares_counters = len(set(with_counters)) != len(with_counters)
        if not partitionable:
            self._counters.clear()
        # Shared counters make an unusable pool one of every node.
        found = self._newest(self._counters)
        self._unusable = [pool.id for pool in found if pool.is_incomplete or pool.is_invalid]

    def of(self, node: Node) -> NodePools:
        """Return the pools with devices for the node; cached per Node object.

        Raises AllocationError.
        """
        name = node.metadata.name
        known = self._known.get(name)
        if known is None or known[0] is not node:
            pools = self._gather(node)
            usable = (pool for pool in pools if not pool.is_incomplete and not pool.is_invalid)
            candidates = tuple(chain.from_iterable(map(candidates_of, usable)))
            known = self._known[name] = (node, NodePools(pools, candidates))
            for pool in pools:
                # The devices of other pools cannot be allocated on the node.
                if pool.slices:
                    self._readers.setdefault(pool.id, {})[name] = None
        return known[1]

    def has_outgrown(self, nodes: int) -> bool:
        """Whether most of the nodes asked about are gone, given the number of nodes now."""
        return len(self._known) > 2 * nodes + _NODES_GONE_MAX

    @property
    def has_shared(self) -> bool:
        """Whether a slice may be for several nodes."""
        return bool(self._shared)

    def without_devices(self, table: NodeColumns) -> NDArray[np.bool_]:
        """Return, as bool per row, whether no slice is for the node."""
        if (table, table.labels_epoch) not in self._without:
            names = [not self._shared and name not in self._on_node for name in table.names]
            self._without = {(table, table.labels_epoch): np.array(names, np.bool_)}
        return self._without[table, table.labels_epoch]

    def readers(self, pool: PoolID) -> Iterable[str]:
        """Return the names of the nodes asked about so far that can use devices of the pool."""
        return self._readers.get(pool, ())

    def _gather(self, node: Node) -> tuple[Pool, ...]:
        gathered: dict[PoolID, list[ResourceSlice]] = {pool_id: [] for pool_id in self._unusable}
        for item in (*self._on_node.get(node.metadata.name, ()), *self._shared):
            if self._is_relevant(item, node):
                gathered.setdefault(_pool_of(item), []).append(item)
        for pool_id in gathered:
            gathered[pool_id] += self._counters.get(pool_id, ())
        return tuple(sorted(self._newest(gathered), key=_has_binding_conditions))

    def _newest(self, gathered: Mapping[PoolID, Sequence[ResourceSlice]]) -> Iterator[Pool]:
        """Yield the pools of slices, of which those of the highest generation count."""
        for pool_id in sorted(gathered):
            newest = max(item.spec.pool.generation for item in gathered[pool_id])
            current = [each for each in gathered[pool_id] if each.spec.pool.generation == newest]
            pool = self._pool(pool_id, current)
            if pool is not None:
                yield pool

    def _is_relevant(self, item: ResourceSlice, node: Node) -> bool:
        spec = item.spec
        if not self._partitionable and spec.per_device_node_selection is not None:
            return False
        try:
            if spec.node_name or spec.all_nodes or spec.node_selector is not None:
                return matches_node(spec, node)
        except AllocationError as error:
            raise AllocationError(
                f"failed to perform node selection for slice {item.metadata.name}: {error}"
            ) from error
        return bool(spec.per_device_node_selection) and any(
            matches_node(device, node) for device in spec.devices
        )

    def _pool(self, pool_id: PoolID, found: list[ResourceSlice]) -> Pool | None:
        """Return the pool, or None if its newest generation has nothing for the node."""
        first = found[0].spec.pool
        if len(found) == first.resource_slice_count:
            return self._build(pool_id, found, ())
        siblings = self._by_pool[pool_id]
        if any(item.spec.pool.generation > first.generation for item in siblings):
            return None
        current = [item for item in siblings if item.spec.pool.generation == first.generation]
        if len(current) != first.resource_slice_count:
            return Pool(pool_id, is_incomplete=True)
        names = {item.metadata.name for item in found}
        elsewhere = [item for item in current if item.metadata.name not in names]
        return self._build(pool_id, found, elsewhere)

    def _build(
        self, pool_id: PoolID, found: list[ResourceSlice], elsewhere: Sequence[ResourceSlice]
    ) -> Pool:
        ordered = sorted(found, key=lambda item: item.metadata.name)
        if not self._partitionable:
            devices = tuple(ordered)
            return Pool(pool_id, is_invalid=_has_duplicates(devices), slices=devices)
        devices = tuple(item for item in ordered if not item.spec.shared_counters)
        sets = [counters for item in ordered for counters in item.spec.shared_counters]
        counter_sets = {counters.name: counters for counters in sets}
        invalid = (
            _has_duplicates(devices)
            or len(counter_sets) != len(sets)
            or not _consumes_known(counter_sets, ordered)
            or not _consumes_known(counter_sets, elsewhere)
        )
        if invalid:
            return Pool(pool_id, is_invalid=True)
        return Pool(
            pool_id,
            slices=devices,
            slices_elsewhere=tuple(elsewhere),
            counter_sets=counter_sets,
        )


def _pool_of(item: ResourceSlice) -> PoolID:
    return item.spec.driver, item.spec.pool.name


def _devices(slices: Iterable[ResourceSlice]) -> Iterable[Device]:
    return (device for item in slices for device in item.spec.devices)


def _has_duplicates(slices: Sequence[ResourceSlice]) -> bool:
    names = [device.name for device in _devices(slices)]
    return len(set(names)) != len(names)


def _consumes_known(counter_sets: dict[str, CounterSet], slices: Iterable[ResourceSlice]) -> bool:
    """Whether all counters that devices consume exist."""
    return all(
        consumption.counter_set in counter_sets
        and consumption.counters.keys() <= counter_sets[consumption.counter_set].counters.keys()
        for device in _devices(slices)
        for consumption in device.consumes_counters
    )


def _has_binding_conditions(pool: Pool) -> bool:
    return any(device.binding_conditions for device in _devices(pool.slices))
