"""Decides per row whether a volume can be provisioned for a claim, and whether there is room.

Room is found in columns of each storage class's pools, the CSIStorageCapacities.

Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go, checkVolumeProvisions and
          hasEnoughCapacity (v1.36)
Reads:    persistentvolumeclaim.spec; storage classes, CSIDrivers, CSIStorageCapacities;
          nodes.labels
Invariants: kept columns equal new ones (tests/plugins/volumes/test_decisions.py).
Differs:  of several pools with room, the first by name is taken; upstream takes any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.quantity import Quantity, value
from kubesched.api.storage import CSIDriver, CSIStorageCapacity, StorageClass
from kubesched.api.volume import PersistentVolumeClaim
from kubesched.api.well_known import NO_PROVISIONER
from kubesched.plugins.volumes.claims import STORAGE, class_of_claim
from kubesched.plugins.volumes.node_access import NodeAccess, Pairs, pairs_of
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.objects import ObjectName, Objects

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
        self._pairs: tuple[NodeAccess, Pairs] | None = None

    def replace(self, at: int, pool: CSIStorageCapacity) -> None:
        """Replace a pool by one in reach of the same nodes."""
        self.pools[at], self._room[at] = pool, _room_of(pool)

    def first_with_room(self, size: int, access: NodeAccess) -> NDArray[np.int32]:
        """Return the position of the first pool with room for `size` bytes per row, or NO_POOL."""
        if self._pairs is None or self._pairs[0] is not access:
            reached = [access.of_labels(pool.node_topology) for pool in self.pools]
            self._pairs = access, pairs_of(reached)
        at, rows = self._pairs[1]
        has_room = self._room[at] >= size
        found = np.full(len(access.nodes), NO_POOL, np.int32)
        # Of several values for a row, the last one is kept.
        found[rows[has_room][::-1]] = at[has_room][::-1]
        return found


class StoragePools:
    """The pools of all storage classes, kept up to date."""

    def __init__(self) -> None:
        self._changed: ChangeReader[ObjectName] = ChangeReader()
        self._classes: dict[str, ClassPools] = {}
        # Namespace and name -> pools of the class, and the position among them.
        self._places: dict[tuple[str, str], tuple[ClassPools, int]] = {}

    def of(self, objects: Objects, storage_class: str) -> ClassPools:
        """Return the pools of a class."""
        changed = self._changed.read(objects.changes_of(CSIStorageCapacity))
        if changed is None or not all(self._take_over(objects, key) for key in set(changed)):
            self._begin(objects)
        return self._classes.get(storage_class) or ClassPools(())

    def _take_over(self, objects: Objects, key: tuple[str, str]) -> bool:
        """Take over a changed pool; return False if more than its room has changed."""
        pool = objects.get(CSIStorageCapacity, key[1], key[0])
        place = self._places.get(key)
        if pool is None or place is None:
            return pool is None and place is None
        of_class, at = place
        known = of_class.pools[at]
        if (pool.storage_class_name, pool.node_topology) != (
            known.storage_class_name,
            known.node_topology,
        ):
            return False
        of_class.replace(at, pool)
        return True

    def _begin(self, objects: Objects) -> None:
        by_class: dict[str, list[CSIStorageCapacity]] = {}
        for pool in sorted(objects.list(CSIStorageCapacity), key=_key_of):
            by_class.setdefault(pool.storage_class_name, []).append(pool)
        self._classes = {name: ClassPools(pools) for name, pools in by_class.items()}
        self._places = {
            _key_of(pool): (of_class, at)
            for of_class in self._classes.values()
            for at, pool in enumerate(of_class.pools)
        }


class ProvisioningError(Exception):
    """The claim has no storage class, or the class is missing; the text has the reason."""


class Provision(msgspec.Struct, frozen=True):
    """Where a volume can be provisioned for a claim.

    Attributes:
        claim: The claim.
        possible: Bool per row: whether the class provisions volumes for the node.
        has_room: Bool per row: whether there is room, or capacity is not tracked.
        pools: The storage pools of the class.
        pool_at: The position in `pools` per row; NO_POOL if capacity is not tracked.
    """

    claim: PersistentVolumeClaim
    possible: NDArray[np.bool_]
    has_room: NDArray[np.bool_]
    pools: Sequence[CSIStorageCapacity]
    pool_at: NDArray[np.int32]

    def pool_on(self, row: int) -> CSIStorageCapacity | None:
        """Return the pool with room for the volume on a row; None if capacity is not tracked."""
        at = self.pool_at.item(row)
        return None if at == NO_POOL else self.pools[at]


def provision(
    claim: PersistentVolumeClaim, objects: Objects, pools: StoragePools, access: NodeAccess
) -> Provision:
    """Return for all rows whether a volume can be provisioned for a claim.

    Raises ProvisioningError if the claim has no class, or the class is missing.
    """
    storage_class = _class_of(claim, objects)
    rows = len(access.nodes)
    possible = np.zeros(rows, np.bool_)
    if can_provision(storage_class):
        possible[access.of_topologies(storage_class.allowed_topologies)] = True
    requests = claim.spec.resources.requests
    if STORAGE not in requests or not reports_capacity(storage_class, objects):
        untracked = np.full(rows, NO_POOL, np.int32)
        return Provision(claim, possible, np.ones(rows, np.bool_), (), untracked)
    of_class = pools.of(objects, storage_class.metadata.name)
    pool_at = of_class.first_with_room(value(requests[STORAGE]), access)
    return Provision(claim, possible, pool_at != NO_POOL, of_class.pools, pool_at)


def can_provision(storage_class: StorageClass) -> bool:
    """Whether volumes of the class are provisioned, not created by hand."""
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def reports_capacity(storage_class: StorageClass, objects: Objects) -> bool:
    """Whether the driver of the class reports its capacity."""
    driver = objects.get(CSIDriver, storage_class.provisioner)
    return driver is not None and bool(driver.spec.storage_capacity)


def volume_size_max(pool: CSIStorageCapacity) -> Quantity | None:
    """Return the largest volume that the pool has room for, or None if not reported."""
    return pool.capacity if pool.maximum_volume_size is None else pool.maximum_volume_size


def _class_of(claim: PersistentVolumeClaim, objects: Objects) -> StorageClass:
    name = class_of_claim(claim)
    if not name:
        raise ProvisioningError(f'no class for claim "{claim.metadata.key}"')
    storage_class = objects.get(StorageClass, name)
    if storage_class is None:
        raise ProvisioningError(f'failed to find storage class "{name}"')
    return storage_class


def _key_of(pool: CSIStorageCapacity) -> tuple[str, str]:
    return pool.metadata.namespace, pool.metadata.name


def _room_of(pool: CSIStorageCapacity) -> int:
    largest = volume_size_max(pool)
    return _UNKNOWN if largest is None else value(largest)
