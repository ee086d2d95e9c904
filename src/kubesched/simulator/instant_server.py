"""InstantServer is an object server in whose cluster nothing takes time.

A bound pod runs in the same write, a deleted pod is gone at once. Objects of a real cluster are
taken over as they are, and every change is passed to a handler before the write returns.

Upstream: pkg/controller/volume/persistentvolume; external-provisioner (v1.36)
Differs:  pods never end by themselves; a pod that is deleted releases its ResourceClaims at once. A
          provisioned volume is reachable from the zone of the selected node, or from everywhere;
          devices that must be prepared before binding are ready at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import FINISHED, Pod, PodExtendedResourceClaimStatus
from kubesched.api.csi_translation import plugin_named
from kubesched.api.errors import ConflictError, NotFoundError
from kubesched.api.meta import Condition, KubeObject, ResourceEventHandler
from kubesched.api.resource import AllocatedDeviceStatus, ResourceClaim
from kubesched.api.scheduling import PodGroup
from kubesched.api.storage import StorageClass
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus
from kubesched.api.well_known import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from kubesched.cluster.controllers.claims import provisioned_volume
from kubesched.cluster.server import kind_name
from kubesched.cluster.store import Change, ChangeType
from kubesched.plugins.volumes.claims import class_of_claim
from kubesched.simulator.object_server import ObjectServer, key_of

_SECONDS_PER_POD: Final = 1.0


class InstantServer(ObjectServer):
    """Objects, and writes to them that take no time.

    Attributes:
        changes: Number of writes, without those that only report the status of a pod or group.
        on_pod_deleted: Called with each pod that is gone.
    """

    starts_at_once = True

    def __init__(self, now: Callable[[], float]) -> None:
        """Start empty; `now` returns seconds since the start of virtual time."""
        super().__init__(lambda: self._start_seconds + now())
        self.changes = 0
        self.on_pod_deleted: Callable[[Pod], None] = lambda _pod: None
        self._start_seconds = 0.0

    def restore(self, objects: Iterable[KubeObject], start_seconds: float) -> None:
        """Take over the objects of a cluster, each with the fields that its API server gave it.

        Pods start after `start_seconds`, each a second after the one before.
        """
        self._start_seconds = start_seconds
        known = [(key_of(item), item) for item in objects]
        versions = (item.metadata.resource_version for _, item in known)
        newest = max((int(text) for text in versions if text.isdecimal()), default=0)
        self.store.restore(known, newest or 1)

    def connect(self, handler: ResourceEventHandler) -> None:
        """Pass every change from now on to a handler."""
        self.store.on_write.append(partial(self._deliver, handler))

    def _deliver(self, handler: ResourceEventHandler, change: Change[KubeObject]) -> None:
        before, after = change.previous, change.value
        self.changes += not _is_report(before, after)
        if change.type is ChangeType.DELETED:
            if not _is_finished(after):
                handler.deleted(after)
            if isinstance(after, Pod):
                self.on_pod_deleted(after)
        elif before is None or _is_finished(before):
            handler.added(after)
        else:
            handler.updated(before, after)

    def bind(self, namespace: str, name: str, uid: str, node_name: str) -> Pod:
        """Assign a pod to a node, where it runs; see `ObjectServer.bind`."""
        # The order in which pods started decides which of them are evicted.
        self._start_seconds += _SECONDS_PER_POD
        return super().bind(namespace, name, uid, node_name)

    def delete_pod(
        self, namespace: str, name: str, uid: str = "", grace_seconds: int | None = 0
    ) -> None:
        """Delete a pod, without grace; see `ObjectServer.delete_pod`."""
        pod = self.pod(namespace, name, uid)
        super().delete_pod(namespace, name, uid, 0)
        if pod is not None:
            for claim in pod.claims_in_use():
                self.release_claim(namespace, claim, pod)

    def release_claim(self, namespace: str, name: str, pod: Pod) -> None:
        """Remove a pod from a claim; with the last pod, the devices are released."""
        found = self.find(ResourceClaim, namespace, name)
        if found is not None:
            left = found.without_users((pod.metadata.uid,))
            if left is not found:
                self.update(left)

    @staticmethod
    def soon(write: Callable[[], object]) -> None:
        """Write after the current callback, which may be in the middle of a scheduling cycle."""

        def attempt() -> None:
            with suppress(NotFoundError):
                write()

        asyncio.get_running_loop().call_soon(attempt)


def _is_finished(item: KubeObject) -> bool:
    return isinstance(item, Pod) and item.status.phase in FINISHED


def _is_report(before: KubeObject | None, after: KubeObject) -> bool:
    """Whether a write changed nothing but the status of a pod or pod group."""
    if not isinstance(before, (Pod, PodGroup)) or not isinstance(after, (Pod, PodGroup)):
        return False
    old, new = before.metadata, after.metadata
    return (
        before.spec is after.spec
        and old.labels is new.labels
        and old.deletion_timestamp == new.deletion_timestamp
    )


# Writers of claims and volumes, for plugins.


class InstantClaimWriter:
    """The `ClaimWriter` of DynamicResources."""

    def __init__(self, server: InstantServer) -> None:
        self._server = server

    def now(self) -> str:
        """Return the time of the server."""
        return self._server.timestamp()

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Do nothing, because events are not read."""

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Write the status soon."""
        self._server.soon(lambda: self._server.update(claim))

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Delete the claim soon."""
        self._server.soon(lambda: self._server.delete(claim))

    def release_soon(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove the pod from the claim soon."""
        of = claim.metadata
        self._server.soon(lambda: self._server.release_claim(of.namespace, of.name, pod))

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Return the claim as stored."""
        return self._server.get(ResourceClaim, namespace, name)

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim."""
        return self._server.create(claim)

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the finalizers."""
        return self._server.update(claim)

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the status, with conditions of its devices as their drivers would."""
        return self._server.update(_with_ready_devices(claim))

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set the claim that provides the pod's extended resources."""
        metadata = pod.metadata
        stored = self._server.pod(metadata.namespace, metadata.name, metadata.uid)
        if stored is None:
            raise NotFoundError(f'pods "{metadata.name}" not found')
        written = replace(stored.status, extended_resource_claim_status=status)
        self._server.update(replace(stored, status=written))


def _with_ready_devices(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim with each device ready for binding whose state is not reported yet."""
    status = claim.status
    reported = {(one.driver, one.pool, one.device, one.share_id) for one in status.devices}
    ready = [
        AllocatedDeviceStatus(
            driver=one.driver,
            pool=one.pool,
            device=one.device,
            share_id=one.share_id,
            conditions=tuple(
                Condition(type=name, status="True") for name in one.binding_conditions
            ),
        )
        for one in (() if status.allocation is None else status.allocation.devices.results)
        if one.binding_conditions
        and (one.driver, one.pool, one.device, one.share_id) not in reported
    ]
    if not ready:
        return claim
    return replace(claim, status=replace(status, devices=(*status.devices, *ready)))


class InstantVolumeWriter:
    """The `VolumeWriter` of VolumeBinding, and the volume controller behind it."""

    def __init__(self, server: InstantServer) -> None:
        self._server = server

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the volume, and bind its claim to it."""
        self._check_version(volume)
        bound = replace(volume, status=PersistentVolumeStatus(phase="Bound"))
        written = self._server.update(bound)
        reference = volume.spec.claim_ref
        if reference is not None:
            claim = self._server.find(PersistentVolumeClaim, reference.namespace, reference.name)
            if claim is not None:
                self._bind(claim, written)
        return written

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the claim, provision its volume and bind it."""
        self._check_version(claim)
        written = self._server.update(claim)
        return self._bind(written, self._server.create(self._volume_of(written)))

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod exists."""
        return self._server.pod(namespace, name) is not None

    def _check_version(self, item: PersistentVolume | PersistentVolumeClaim) -> None:
        """Refuse what another pod with the same claim has written already."""
        metadata = item.metadata
        stored = self._server.get(type(item), metadata.namespace, metadata.name)
        if stored.metadata.resource_version != metadata.resource_version:
            raise ConflictError(
                f'Operation cannot be fulfilled on {kind_name(type(item))} "{metadata.name}": the '
                "object has been modified"
            )

    def _bind(
        self, claim: PersistentVolumeClaim, volume: PersistentVolume
    ) -> PersistentVolumeClaim:
        marks = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
        metadata = claim.metadata
        status = replace(
            claim.status,
            phase="Bound",
            access_modes=volume.spec.access_modes,
            capacity=volume.spec.capacity,
        )
        return self._server.update(
            replace(
                claim,
                metadata=replace(metadata, annotations={**metadata.annotations, **marks}),
                spec=replace(claim.spec, volume_name=volume.metadata.name),
                status=status,
            )
        )

    def _volume_of(self, claim: PersistentVolumeClaim) -> PersistentVolume:
        """Return the volume that a provisioner makes for a claim."""
        name = class_of_claim(claim)
        found = self._server.find(StorageClass, "", name)
        provisioner = "" if found is None else found.provisioner
        in_tree = plugin_named(provisioner)
        driver = provisioner if in_tree is None else in_tree.driver
        node = self._server.node(claim.metadata.annotations.get(SELECTED_NODE, ""))
        volume = provisioned_volume(claim, name, driver, node)
        return replace(volume, status=PersistentVolumeStatus(phase="Bound"))
