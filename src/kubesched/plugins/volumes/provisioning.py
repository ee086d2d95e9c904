"""Decides per row whether a volume can be provisioned for a claim, and whether there is room.

Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go, checkVolumeProvisions (v1.36)
Reads:    persistentvolumeclaim.spec; storage classes, CSIDrivers, CSIStorageCapacities;
          nodes.labels
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.quantity import value
from kubesched.api.storage import CSIDriver, CSIStorageCapacity, StorageClass
from kubesched.api.volume import PersistentVolumeClaim
from kubesched.api.well_known import NO_PROVISIONER
from kubesched.plugins.volumes.claims import STORAGE, class_of_claim
from kubesched.plugins.volumes.node_access import NodeAccess
from kubesched.plugins.volumes.storage_pools import NO_POOL, StoragePools
from kubesched.snapshot.objects import Objects


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


def provision(
    claim: PersistentVolumeClaim, objects: Objects, pools: StoragePools, access: NodeAccess
) -> Provision:
    """Return for all rows whether a volume can be provisioned for a claim.

    Raises:
        ProvisioningError: The claim has no class, or the class is missing.
    """
    storage_class = _class_of(claim, objects)
    rows = len(access.nodes)
    possible = np.zeros(rows, np.bool_)
    if storage_class.provisioner not in ("", NO_PROVISIONER):
        possible[access.of_topologies(storage_class.allowed_topologies)] = True
    if not _is_room_known(claim, storage_class.provisioner, objects):
        untracked = np.full(rows, NO_POOL, np.int32)
        return Provision(claim, possible, np.ones(rows, np.bool_), (), untracked)
    of_class = pools.of(objects, storage_class.metadata.name)
    pool_at = of_class.first_with_room(value(claim.spec.resources.requests[STORAGE]), access)
    return Provision(claim, possible, pool_at != NO_POOL, of_class.pools, pool_at)


def _class_of(claim: PersistentVolumeClaim, objects: Objects) -> StorageClass:
    name = class_of_claim(claim)
    if not name:
        raise ProvisioningError(f'no class for claim "{claim.metadata.key}"')
    storage_class = objects.get(StorageClass, name)
    if storage_class is None:
        raise ProvisioningError(f'failed to find storage class "{name}"')
    return storage_class


def _is_room_known(claim: PersistentVolumeClaim, provisioner: str, objects: Objects) -> bool:
    """Whether the driver reports its capacity and the claim has a request."""
    if STORAGE not in claim.spec.resources.requests:
        return False
    driver = objects.get(CSIDriver, provisioner)
    return driver is not None and bool(driver.spec.storage_capacity)
