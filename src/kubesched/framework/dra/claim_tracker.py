"""ClaimTracker: which devices are allocated, including allocations that are not written yet.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/{dra_manager,allocateddevices}.go (v1.36)
Reads:    claim.status.allocation
Invariants: a claim that the scheduler wrote is used until the informer has this or a newer version.
Differs:  one thread; a pending allocation has a set of the pods that share it, where upstream has a
          counter that counts a pod twice after a failed write; pods of one group share it across
          cycles of the group, too; it counts until the informer has the allocated claim, where
          upstream drops it when the write ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from kubesched.api.quantity import nano_value
from kubesched.api.resource import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    AllocationResult,
    ResourceClaim,
)
from kubesched.snapshot.changes import ChangeLog, ChangeReader
from kubesched.snapshot.objects import ObjectName, Objects

DeviceID = tuple[str, str, str]
"""Driver, pool and device name."""


@dataclass(slots=True)
class AllocatedState:
    """The allocated devices. Callers must not change it.

    Attributes:
        devices: Devices allocated as a whole -> number of allocations.
        shared: Devices allocated in shares -> number of shares.
        capacity: Device -> capacity name -> amount used by shares, in 10^-9 units.
        changes: The devices that were allocated or released, or changed their shares.
    """

    devices: Counter[DeviceID] = field(default_factory=Counter)
    shared: Counter[DeviceID] = field(default_factory=Counter)
    capacity: dict[DeviceID, dict[str, int]] = field(default_factory=dict)
    changes: ChangeLog[DeviceID] = field(default_factory=ChangeLog, compare=False)

    def is_allocated(self, device: DeviceID) -> bool:
        """Whether the device, or a share of it, is allocated."""
        return device in self.devices or device in self.shared

    def count(self, allocation: AllocationResult, sign: int, *, consumable: bool) -> None:
        """Count an allocation (`sign` 1), or undo that (-1).

        Without `consumable`, a share counts as the whole device.
        """
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            if result.share_id is None or not consumable:
                was_free = device not in self.devices
                _change(self.devices, device, sign)
                if was_free != (device not in self.devices):
                    self.changes.add(device)
                continue
            self.changes.add(device)
            _change(self.shared, device, sign)
            if result.consumed_capacity:
                self._change_capacity(device, result.consumed_capacity, sign)

    def _change_capacity(
        self, device: DeviceID, consumed: Mapping[str, str | int | float], sign: int
    ) -> None:
        amounts = self.capacity.setdefault(device, {})
        for name, quantity in consumed.items():
            amounts[name] = amounts.get(name, 0) + sign * nano_value(quantity)
        if sign < 0 and not any(amounts.values()):
            del self.capacity[device]


def _change(counts: Counter[DeviceID], device: DeviceID, sign: int) -> None:
    counts[device] += sign
    if counts[device] <= 0:
        del counts[device]


@dataclass(slots=True)
class _Pending:
    """An allocation that is not written yet.

    Attributes:
        claim: The claim with its allocation.
        group: The pod group whose pods may share the allocation, or "".
        users: Uids of the pods that are going to write it.
    """

    claim: ResourceClaim
    group: str
    users: set[str] = field(default_factory=set)


class ClaimTracker:
    """The scheduler's view of all claims; one object serves all profiles."""

    def __init__(self, *, consumable_capacity: bool = True) -> None:
        self._consumable = consumable_capacity
        self._pending: dict[str, _Pending] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._assumed: dict[ObjectName, ResourceClaim] = {}
        self._unseen: set[ObjectName] = set()
        self._changed: list[ObjectName] = []
        self._seen: dict[ObjectName, ResourceClaim] = {}
        self._stored: ChangeReader[ObjectName] = ChangeReader()
        self._state = AllocatedState()
        # Uid of a pod -> the claim that was created for its extended resources.
        self._special: dict[str, ObjectName] = {}

    # Claims.

    def get(self, objects: Objects, namespace: str, name: str) -> ResourceClaim | None:
        """Return the claim, or the version that the scheduler wrote if that is newer."""
        key, claim = (namespace, name), objects.get(ResourceClaim, name, namespace)
        assumed = self._assumed.get(key)
        if assumed is None:
            return claim
        if claim is None and key in self._unseen:
            return assumed
        self._unseen.discard(key)
        if claim is not None and _version(claim) < _version(assumed):
            return assumed
        self.restore(*key)
        return claim

    def special_claim(self, objects: Objects, pod_uid: str) -> ResourceClaim | None:
        """Return the claim that was created for a pod's extended resources, or None."""
        self._catch_up(objects)
        key = self._special.get(pod_uid)
        return None if key is None else self.get(objects, *key)

    def assume(self, claim: ResourceClaim, *, is_created: bool = False) -> None:
        """Use a claim that the API server returned, until the informer has it.

        `is_created` means that the informer may have no version of it yet.
        """
        key = (claim.metadata.namespace, claim.metadata.name)
        self._assumed[key] = claim
        if is_created:
            self._unseen.add(key)
        self._changed.append(key)

    def restore(self, namespace: str, name: str) -> None:
        """Use the informer's version of a claim again."""
        key = namespace, name
        self._unseen.discard(key)
        if self._assumed.pop(key, None) is not None:
            self._changed.append(key)

    def turn(self, uid: str) -> asyncio.Lock:
        """Return the lock for writing a claim; every write needs the version before it."""
        return self._turns.setdefault(uid, asyncio.Lock())

    # Allocations that are not written yet.

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """Return the claim's allocation that is not written yet, or None."""
        pending = self._pending.get(uid)
        return None if pending is None else pending.claim.status.allocation

    def shared_allocation(self, uid: str, group: str) -> AllocationResult | None:
        """Return the pending allocation if pods of the group may share it, or None."""
        pending = self._pending.get(uid)
        is_shared = pending is not None and bool(group) and pending.group == group
        return self.pending_allocation(uid) if is_shared else None

    def add_pending(
        self, uid: str, claim: ResourceClaim, user: str, group: str = ""
    ) -> ResourceClaim:
        """Record that a pod, the user, is going to write a claim with its allocation.

        `group` is the pod group that may share the allocation, or "". Returns the claim with the
        allocation that is valid, which is that of the first pod.
        """
        pending = self._pending.get(uid)
        if pending is None:
            pending = self._pending[uid] = _Pending(claim, group)
            self._count(claim, 1)
        pending.users.add(user)
        return pending.claim

    def remove_pending(self, uid: str, user: str | None = None) -> bool:
        """Remove a pod from a pending allocation; return whether the allocation is dropped.

        `user` is the uid of the pod that no longer needs it; None drops it for all pods.
        """
        pending = self._pending.get(uid)
        if pending is None:
            return False
        if user is not None:
            pending.users.discard(user)
            if pending.users:
                return False
        self._drop_pending(uid)
        return True

    # Devices.

    def allocated_state(self, objects: Objects) -> AllocatedState:
        """Return the devices of allocated claims and pending allocations.

        It is always the same object, which the next call brings up to date; do not change it.
        """
        self._catch_up(objects)
        return self._state

    def _catch_up(self, objects: Objects) -> None:
        """Update the state with the claims that changed."""
        changed: Iterable[ObjectName] | None = self._stored.read(objects.changes_of(ResourceClaim))
        if changed is None:
            stored = {
                (claim.metadata.namespace, claim.metadata.name): _version(claim)
                for claim in objects.list(ResourceClaim)
            }
            newest = max(stored.values(), default=0)
            self._unseen = {key for key in self._unseen if _version(self._assumed[key]) > newest}
            changed = (*self._seen, *stored, *self._assumed)
        else:
            self._unseen.difference_update(changed)
        written, self._changed = self._changed, []
        for key in dict.fromkeys((*changed, *written)):
            namespace, name = key
            self._see(key, self.get(objects, namespace, name))

    def _see(self, key: ObjectName, claim: ResourceClaim | None) -> None:
        """Replace the known version of a claim."""
        before = self._seen.pop(key, None)
        if before is not None and self._special.get(uid := _pod_served(before)) == key:
            del self._special[uid]
        if claim is not None:
            self._seen[key] = claim
            if uid := _pod_served(claim):
                self._special[uid] = key
        if before is claim:
            return
        # Counted before it is dropped, an allocation that stays is not logged as a change.
        if claim is not None and claim.status.allocation is not None:
            self._count(claim, 1)
            # If another scheduler allocated it, the pending allocation will never be written.
            self._drop_pending(claim.metadata.uid)
        if before is not None:
            self._count(before, -1)

    def _drop_pending(self, uid: str) -> None:
        pending = self._pending.pop(uid, None)
        if pending is not None:
            self._count(pending.claim, -1)

    def _count(self, claim: ResourceClaim, sign: int) -> None:
        allocation = claim.status.allocation
        if allocation is not None:
            self._state.count(allocation, sign, consumable=self._consumable)


def _pod_served(claim: ResourceClaim) -> str:
    """Return the uid of the pod whose extended resources the claim is for, or ""."""
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
        return ""
    return next((owner.uid for owner in claim.metadata.owner_references if owner.controller), "")


def _version(claim: ResourceClaim) -> int:
    version = claim.metadata.resource_version
    return int(version) if version.isdigit() else 0
