"""Pools: the resource slices with devices that a node can use.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          pools_incubating.go (v1.36)
Reads:    ResourceSlices; node.metadata
Invariants: pools are ordered by driver and name, those with binding conditions last; the slices of
            a pool by name. Devices are tried in this order.
Differs:  slices are indexed once for all nodes, and the pools of a node are cached. If slices of a
          pool disagree on their number, the first by name counts; upstream takes any.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.api import selectors
from kubesched.api.core import Node
from kubesched.api.resource import CounterSet, Device, ResourceSlice, ResourceSliceSpec
from kubesched.framework.dra.claim_tracker import DeviceID
from kubesched.framework.dra.devices import NodeSelectorError, is_for_node
from kubesched.snapshot.node_columns import NodeColumns

# Fewer nodes that are gone, or updates, are not worth a new index.
_OUTDATED_MAX: Final = 1000

K = TypeVar("K")

PoolID = tuple[str, str]
"""Driver and pool name."""


class AllocationError(Exception):
    """A claim, class or device is invalid; the pod's scheduling cycle ends with an error."""


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
        is_common: Whether no slice or device names nodes, so that all nodes with these slices have
            this very object.
        has_binding_conditions: Whether a device has binding conditions.
    """

    id: PoolID
    is_incomplete: bool = False
    is_invalid: bool = False
    slices: tuple[ResourceSlice, ...] = ()
    slices_elsewhere: tuple[ResourceSlice, ...] = ()
    counter_sets: dict[str, CounterSet] = field(default_factory=dict)
    is_common: bool = False
    has_binding_conditions: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether it is complete and valid."""
        return not self.is_incomplete and not self.is_invalid

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
        # The keys of inner dictionaries are names of slices.
        self._slices: dict[str, ResourceSlice] = {}
        self._on_node: dict[str, dict[str, ResourceSlice]] = {}
        self._counters: dict[PoolID, dict[str, ResourceSlice]] = {}
        self._by_pool: dict[PoolID, dict[str, ResourceSlice]] = {}
        # A label that all nodes of a slice have, None if that is not known -> the slices that do
        # not name their node, with their places among all slices.
        self._shared: dict[tuple[str, str] | None, list[tuple[int, ResourceSlice]]] = {}
        # The inner keys are the names of slices that nodes have of a pool; the values, the common
        # pool or None, with its devices.
        self._common: dict[
            PoolID, dict[tuple[str, ...], tuple[Pool | None, Sequence[CandidateDevice]]]
        ] = {}
        self._known: dict[str, tuple[Node, NodePools]] = {}
        self._readers: dict[PoolID, dict[str, None]] = {}
        self._updates = 0
        # A table and its epoch of labels -> what `without_devices` returned last.
        self._without: dict[tuple[NodeColumns, int], NDArray[np.bool_]] = {}
        for at, item in enumerate(slices):
            self._put(item)
            if not item.spec.node_name and not item.spec.shared_counters:
                for label in _labels_of_nodes(item.spec):
                    self._shared.setdefault(label, []).append((at, item))
        self._shared_keys = {label[0] for label in self._shared if label is not None}
        self.shares_counters = self._has_equal_names()
        # Shared counters make an unusable pool one of every node.
        self._unusable = self._find_unusable(self._counters)

    def update(
        self, changed: Mapping[str, ResourceSlice | None], nodes: int
    ) -> Collection[str] | None:
        """Replace slices, given by name, None if they are gone; return the nodes concerned.

        `nodes` is the number of nodes. Returns None if a new index is needed, because all nodes may
        be concerned, or most of what is kept may be outdated.
        """
        self._updates += len(changed)
        if max(self._updates - len(self._slices), len(self._known) - 2 * nodes) > _OUTDATED_MAX:
            return None
        if not changed:
            return ()
        before = [self._slices[name] for name in changed if name in self._slices]
        after = [item for item in changed.values() if item is not None]
        pools = {_pool_of(item) for item in (*before, *after)}
        concerned = self._nodes_of(pools)
        for item in before:
            self._remove(item)
        for item in after:
            self._put(item)
        for pool_id in pools:
            self._common.pop(pool_id, None)
        concerned |= self._nodes_of(pools)
        if "" in concerned or not pools.isdisjoint(self._unusable) or self._find_unusable(pools):
            return None
        counts = any(item.spec.shared_counters for item in (*before, *after))
        if counts and self._has_equal_names() != self.shares_counters:
            return None
        for name in concerned:
            self._known.pop(name, None)
        self._without.clear()
        return concerned

    def of(self, node: Node) -> NodePools:
        """Return the pools with devices for the node; cached per Node object.

        Raises AllocationError.
        """
        name = node.metadata.name
        known = self._known.get(name)
        if known is None or known[0] is not node:
            gathered = self._gather(node)
            pools = tuple(pool for pool, _ in gathered)
            candidates = tuple(chain.from_iterable(devices for _, devices in gathered))
            known = self._known[name] = (node, NodePools(pools, candidates))
            for pool in pools:
                # The devices of other pools cannot be allocated on the node.
                if pool.slices:
                    self._readers.setdefault(pool.id, {})[name] = None
        return known[1]

    def common_pools(self, node: Node) -> tuple[int, ...]:
        """Return what identifies the pools of a node, () if not all of them are common."""
        try:
            pools = self.of(node).pools
        except AllocationError:
            return ()
        return tuple(map(id, pools)) if all(pool.is_common for pool in pools) else ()

    @property
    def has_shared(self) -> bool:
        """Whether a slice may be for several nodes."""
        return bool(self._shared)

    def without_devices(self, table: NodeColumns) -> NDArray[np.bool_]:
        """Return, as bool per row, whether no slice is for the node."""
        if (table, table.labels_epoch) not in self._without:
            named = np.fromiter(map(self._on_node.__contains__, table.names), np.bool_)
            self._without = {(table, table.labels_epoch): ~(named | self.has_shared)}
        return self._without[table, table.labels_epoch]

    def readers(self, pool: PoolID) -> Mapping[str, None]:
        """Return the names of the nodes asked about so far that can use devices of the pool."""
        return self._readers.get(pool, {})

    def _gather(self, node: Node) -> list[tuple[Pool, Sequence[CandidateDevice]]]:
        """Return the pools of a node with their devices, in the order in which they are tried."""
        gathered: dict[PoolID, list[ResourceSlice]] = {pool_id: [] for pool_id in self._unusable}
        for item in self._for_node(node):
            if self._is_relevant(item, node):
                gathered.setdefault(_pool_of(item), []).append(item)
        for pool_id in gathered:
            if self._partitionable:
                gathered[pool_id] += self._counters.get(pool_id, {}).values()
        return sorted(self._newest(gathered), key=lambda found: found[0].has_binding_conditions)

    def _for_node(self, node: Node) -> Iterator[ResourceSlice]:
        """Yield the slices that may be for the node, those that name it first."""
        name, labels = node.metadata.name, node.metadata.labels
        yield from self._on_node.get(name, {}).values()
        places = ((key, labels[key]) for key in self._shared_keys & labels.keys())
        shared = chain.from_iterable(self._shared.get(place, ()) for place in (None, *places))
        yield from map(itemgetter(1), sorted(shared, key=itemgetter(0)))

    def _put(self, item: ResourceSlice) -> None:
        name, pool_id = item.metadata.name, _pool_of(item)
        self._slices[name] = self._by_pool.setdefault(pool_id, {})[name] = item
        if item.spec.shared_counters:
            self._counters.setdefault(pool_id, {})[name] = item
        elif item.spec.node_name:
            self._on_node.setdefault(item.spec.node_name, {})[name] = item

    def _remove(self, item: ResourceSlice) -> None:
        name, pool_id = item.metadata.name, _pool_of(item)
        del self._slices[name]
        _discard(self._by_pool, pool_id, name)
        _discard(self._counters, pool_id, name)
        _discard(self._on_node, item.spec.node_name or "", name)

    def _nodes_of(self, pools: Iterable[PoolID]) -> set[str]:
        """Return the nodes that slices of the pools name; "" if a slice may be for several."""
        return {
            item.spec.node_name or ""
            for pool_id in pools
            for item in self._by_pool.get(pool_id, {}).values()
            if not item.spec.shared_counters
        }

    def _find_unusable(self, pools: Iterable[PoolID]) -> list[PoolID]:
        """Return the pools of these that have shared counters and are incomplete or invalid."""
        if not self._partitionable:
            return []
        counters = self._counters
        found = {pool_id: [*counters[pool_id].values()] for pool_id in pools if pool_id in counters}
        return [pool.id for pool, _ in self._newest(found) if not pool.is_usable]

    def _has_equal_names(self) -> bool:
        """Whether pools with shared counters have the same name."""
        return len({name for _, name in self._counters}) != len(self._counters)

    def _newest(
        self, gathered: Mapping[PoolID, Sequence[ResourceSlice]]
    ) -> Iterator[tuple[Pool, Sequence[CandidateDevice]]]:
        """Yield pools and their devices; of their slices, those of the highest generation count."""
        for pool_id in sorted(gathered):
            newest = max(item.spec.pool.generation for item in gathered[pool_id])
            current = [each for each in gathered[pool_id] if each.spec.pool.generation == newest]
            current.sort(key=_name_of)
            if any(each.spec.node_name or each.spec.per_device_node_selection for each in current):
                pool, devices = _with_devices(self._pool(pool_id, current))
            else:
                known, key = self._common.setdefault(pool_id, {}), tuple(map(_name_of, current))
                if key not in known:
                    common = self._pool(pool_id, current)
                    if common is not None:
                        common = replace(common, is_common=True)
                    known[key] = _with_devices(common)
                pool, devices = known[key]
            if pool is not None:
                yield pool, devices

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
        siblings = self._by_pool[pool_id].values()
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
        if not self._partitionable:
            devices = tuple(found)
            waits = any(device.binding_conditions for device in _devices(devices))
            invalid = _has_duplicates(devices)
            return Pool(pool_id, is_invalid=invalid, slices=devices, has_binding_conditions=waits)
        devices = tuple(item for item in found if not item.spec.shared_counters)
        sets = [counters for item in found for counters in item.spec.shared_counters]
        counter_sets = {counters.name: counters for counters in sets}
        invalid = (
            _has_duplicates(devices)
            or len(counter_sets) != len(sets)
            or not _consumes_known(counter_sets, found)
            or not _consumes_known(counter_sets, elsewhere)
        )
        if invalid:
            return Pool(pool_id, is_invalid=True)
        return Pool(
            pool_id,
            slices=devices,
            slices_elsewhere=tuple(elsewhere),
            counter_sets=counter_sets,
            has_binding_conditions=any(device.binding_conditions for device in _devices(devices)),
        )


def _pool_of(item: ResourceSlice) -> PoolID:
    return item.spec.driver, item.spec.pool.name


def _with_devices(pool: Pool | None) -> tuple[Pool | None, Sequence[CandidateDevice]]:
    """Return a pool with the devices that can be allocated."""
    return pool, tuple(candidates_of(pool)) if pool is not None and pool.is_usable else ()


def _discard(slices: dict[K, dict[str, ResourceSlice]], key: K, name: str) -> None:
    """Remove a slice by name, and the key if that was its last."""
    if (found := slices.get(key, {})).pop(name, None) is not None and not found:
        del slices[key]


def _labels_of_nodes(spec: ResourceSliceSpec) -> Iterable[tuple[str, str] | None]:
    """Return labels of which each node of the slice has one; None if that is not known."""
    selector = None if spec.all_nodes else spec.node_selector
    # The API server accepts no other number of terms.
    if selector is None or len(selector.node_selector_terms) != 1:
        return (None,)
    term = selector.node_selector_terms[0]
    chosen = next((one for one in term.match_expressions if one.operator == "In"), None)
    if chosen is None or selectors.node_selector_errors(selector):
        return (None,)
    return dict.fromkeys((chosen.key, value) for value in chosen.values)


def _name_of(item: ResourceSlice) -> str:
    return item.metadata.name


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
