"""Writers of claims and volumes to an InstantServer, for plugins.

Written volumes are bound, and missing ones provisioned, in the same call.

Upstream: pkg/controller/volume/persistentvolume; external-provisioner (v1.36)
Differs:  a provisioned volume is reachable from the zone of the selected node, or from everywhere;
          devices that must be prepared before binding are never ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from kubesched.api.core import (
    NodeSelector,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodExtendedResourceClaimStatus,
)
from kubesched.api.errors import ApiError
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import ResourceClaim
from kubesched.api.selector_terms import NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.storage import StorageClass
from kubesched.api.volume import (
    CSIPersistentVolumeSource,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from kubesched.framework.dra.claim_writer import ApiRefusedError
from kubesched.framework.volume_writer import VolumeWriteError
from kubesched.plugins.volumes.claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    class_of_claim,
)
from kubesched.plugins.volumes.csi_translation import plugin_named
from kubesched.simulator.instant_server import InstantServer
from kubesched.simulator.object_server import key_of

T = TypeVar("T")

_ZONE: Final = "topology.kubernetes.io/zone"
_STORAGE: Final = "storage"


class InstantClaimWriter:
    """The `ClaimWriter` of DynamicResources."""

    def __init__(self, server: InstantServer) -> None:
        self._server = server

    def now(self) -> str:
        """Return the time of the server."""
        return self._server.timestamp()

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Nobody reads events."""

    def deallocate(self, claim: ResourceClaim) -> None:
        """Write the status soon."""
        self._server.soon(lambda: self._server.update(claim))

    def delete(self, claim: ResourceClaim) -> None:
        """Delete the claim soon."""
        self._server.soon(lambda: self._server.delete(claim))

    def release(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove the pod from the claim soon."""
        self._server.soon(lambda: self._server.release_claim(claim, pod))

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Return the claim as stored."""
        metadata = ObjectMeta(namespace=namespace, name=name)
        key = key_of(ResourceClaim(metadata=metadata))
        return cast("ResourceClaim", _refused(lambda: self._server.store.get(key), ApiRefusedError))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim."""
        return _refused(lambda: self._server.create(claim), ApiRefusedError)

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the finalizers."""
        return _refused(lambda: self._server.update(claim), ApiRefusedError)

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the status."""
        return _refused(lambda: self._server.update(claim), ApiRefusedError)

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set the claim that provides the pod's extended resources."""
        metadata = pod.metadata
        stored = self._server.pod(metadata.namespace, metadata.name, metadata.uid)
        if stored is None:
            raise ApiRefusedError(f'pods "{metadata.name}" not found')
        written = replace(stored.status, extended_resource_claim_status=status)
        self._server.update(replace(stored, status=written))


class InstantVolumeWriter:
    """The `VolumeWriter` of VolumeBinding, and the volume controller behind it."""

    def __init__(self, server: InstantServer) -> None:
        self._server = server

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the volume, and bind its claim to it."""
        bound = replace(volume, status=PersistentVolumeStatus(phase="Bound"))
        written = _refused(lambda: self._server.update(bound), VolumeWriteError)
        reference = volume.spec.claim_ref
        if reference is not None:
            metadata = ObjectMeta(namespace=reference.namespace, name=reference.name)
            claim = self._server.store.find(key_of(PersistentVolumeClaim(metadata=metadata)))
            if isinstance(claim, PersistentVolumeClaim):
                self._bind(claim, written)
        return written

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the claim, provision its volume and bind it."""
        written = _refused(lambda: self._server.update(claim), VolumeWriteError)
        volume = _refused(lambda: self._server.create(self._volume_of(written)), VolumeWriteError)
        return self._bind(written, volume)

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod exists."""
        return self._server.pod(namespace, name) is not None

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
        metadata, spec = claim.metadata, claim.spec
        name = class_of_claim(claim)
        key = key_of(StorageClass(metadata=ObjectMeta(name=name)))
        found = self._server.store.find(key)
        provisioner = found.provisioner if isinstance(found, StorageClass) else ""
        in_tree = plugin_named(provisioner)
        driver = provisioner if in_tree is None else in_tree.driver
        volume_name = f"pvc-{metadata.uid or metadata.name}"
        return PersistentVolume(
            metadata=ObjectMeta(name=volume_name),
            spec=PersistentVolumeSpec(
                access_modes=spec.access_modes,
                capacity={
                    name: amount
                    for name, amount in spec.resources.requests.items()
                    if name == _STORAGE
                },
                claim_ref=ObjectReference(
                    api_version="v1",
                    kind="PersistentVolumeClaim",
                    namespace=metadata.namespace,
                    name=metadata.name,
                    uid=metadata.uid,
                ),
                storage_class_name=name,
                volume_mode=spec.volume_mode,
                node_affinity=self._affinity(metadata.annotations.get(SELECTED_NODE, "")),
                csi=CSIPersistentVolumeSource(driver=driver, volume_handle=volume_name),
            ),
            status=PersistentVolumeStatus(phase="Bound"),
        )

    def _affinity(self, node_name: str) -> VolumeNodeAffinity | None:
        node = self._server.node(node_name)
        zone = node.metadata.labels.get(_ZONE) if node is not None else None
        if not zone:
            return None
        expression = NodeSelectorRequirement(key=_ZONE, operator="In", values=(zone,))
        terms = (NodeSelectorTerm(match_expressions=(expression,)),)
        return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def _refused(write: Callable[[], T], kind: type[ApiRefusedError | VolumeWriteError]) -> T:
    """Return the result of a write; a refusal is raised as an error of `kind`."""
    try:
        return write()
    except ApiError as error:
        raise kind(error.message) from error
