"""StoragePools: the CSIStorageCapacities of each storage class, in columns.

Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go, hasEnoughCapacity (v1.36)
Reads:    CSIStorageCapacities; nodes.labels
Invariants: equals what a new instance would hold (tests/plugins/volumes/test_storage_pools.py).
Differs:  of several pools with room, the first by name is taken; upstream takes any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.meta import LabelSelector
from kubesched.api.quantity import Quantity, value
from kubesched.api.storage import CSIStorageCapacity
from kubesched.plugins.volumes.node_access import NodeAccess
from kubesched.snapshot.objects import Objects

NO_POOL: Final = -1
_UNKNOWN: Final = -(1 << 63)
"""Less than any size."""


class ClassPools:
    """The pools of one storage class.

    Attributes:
        pools: The pools, in order of their namespaces and names.
    """

    def __init__(self, pools: Sequence[CSIStorageCapacity]) -> None:
        self.pools = list(pools)
        # The largest volume of each pool, in bytes.
        self._room = np.array([_room_of(pool) for pool in pools], np.int64)
        self._pairs_for: NodeAccess | None = None
        self._pairs: tuple[NDArray[np.int32], NDArray[np.intp]] | None = None

    def replace(self, at: int, pool: CSIStorageCapacity) -> None:
        """Replace a pool by one in reach of the same nodes."""
        self.pools[at], self._room[at] = pool, _room_of(pool)

    def first_with_room(self, size: int, access: NodeAccess) -> NDArray[np.int32]:
        """Return the position of the first pool with room for `size` bytes per row, or NO_POOL."""
        found = np.full(len(access.nodes), NO_POOL, np.int32)
        at, rows = self._pairs_of(access)
        has_room = self._room[at] >= size
        # Of several values for a row, the last one is kept.
        found[rows[has_room][::-1]] = at[has_room][::-1]
        return found

    def _pairs_of(self, access: NodeAccess) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Return each pair of a pool and a row that reaches it, in order of the pools."""
        if self._pairs is None or self._pairs_for is not access:
            rows = [access.of_labels(pool.node_topology) for pool in self.pools]
            at = np.repeat(np.arange(len(rows), dtype=np.int32), [len(one) for one in rows])
            self._pairs = at, np.concatenate([*rows, np.empty(0, np.intp)])
            self._pairs_for = access
        return self._pairs


class StoragePools:
    """The pools of all storage classes, kept up to date."""

    def __init__(self) -> None:
        self._objects: Objects | None = None
        self._version = 0
        self._classes: dict[str, ClassPools] = {}
        # Namespace and name -> class, topology and position.
        self._places: dict[tuple[str, str], tuple[str, LabelSelector | None, int]] = {}

    def of(self, objects: Objects, storage_class: str) -> ClassPools:
        """Return the pools of a class."""
        is_known = objects is self._objects
        changed = objects.changed_since(CSIStorageCapacity, self._version) if is_known else None
        self._objects, self._version = objects, objects.version(CSIStorageCapacity)
        if changed is None or not all(self._is_replaced(objects, key) for key in set(changed)):
            self._begin(objects)
        return self._classes.get(storage_class) or ClassPools(())

    def _is_replaced(self, objects: Objects, key: tuple[str, str]) -> bool:
        """Take over a changed pool; return False if more than its room has changed."""
        pool = objects.get(CSIStorageCapacity, key[1], key[0])
        place = self._places.get(key)
        if pool is None or place is None:
            return pool is None and place is None
        storage_class, topology, at = place
        if (pool.storage_class_name, pool.node_topology) != (storage_class, topology):
            return False
        self._classes[storage_class].replace(at, pool)
        return True

    def _begin(self, objects: Objects) -> None:
        by_class: dict[str, list[CSIStorageCapacity]] = {}
        self._places = {}
        for pool in sorted(objects.list(CSIStorageCapacity), key=_key_of):
            some = by_class.setdefault(pool.storage_class_name, [])
            place = pool.storage_class_name, pool.node_topology, len(some)
            self._places[_key_of(pool)] = place
            some.append(pool)
        self._classes = {name: ClassPools(some) for name, some in by_class.items()}


def volume_size_max(pool: CSIStorageCapacity) -> Quantity | None:
    """Return the largest volume that the pool has room for, or None if not reported."""
    return pool.capacity if pool.maximum_volume_size is None else pool.maximum_volume_size


def _key_of(pool: CSIStorageCapacity) -> tuple[str, str]:
    return pool.metadata.namespace, pool.metadata.name


def _room_of(pool: CSIStorageCapacity) -> int:
    largest = volume_size_max(pool)
    return _UNKNOWN if largest is None else value(largest)
