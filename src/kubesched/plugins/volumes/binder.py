"""VolumeBinder: carries out the decisions for a pod's claims: assume, write, wait until bound.

Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go (v1.36)
Invariants: an assumed object can be reverted until it is written.
Differs:  a claim reference is built from the claim, without the API's scheme.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

import msgspec
import numpy as np

from kubesched.api.core import Pod
from kubesched.api.csi_translation import (
    TranslationError,
    csi_node_affinity,
    is_migrated_on,
    plugin_of,
)
from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.storage import CSINode
from kubesched.api.volume import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import BOUND_BY_CONTROLLER, SELECTED_NODE
from kubesched.framework.services import VolumeWriter
from kubesched.plugins.volumes.assume_cache import AssumeCache, AssumeError
from kubesched.plugins.volumes.claims import claims_of, is_fully_bound, ownership_error
from kubesched.plugins.volumes.decisions import DynamicProvision, PodVolumes, StaticBinding
from kubesched.plugins.volumes.matching import is_bound_to
from kubesched.plugins.volumes.node_access import NodeAccess, required_of
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.snapshot import Snapshot

K = TypeVar("K", PersistentVolume, PersistentVolumeClaim)

_POLL_SECONDS: Final = 1.0


class VolumeBindingError(Exception):
    """Binding failed, so the pod must be scheduled again; the text has the reason."""


class VolumeBinder:
    """The assumed volumes and claims of one profile, and the writes that make them real.

    Attributes:
        volumes: The assumed persistent volumes.
        claims: The assumed claims.
    """

    def __init__(self) -> None:
        self.volumes = AssumeCache(PersistentVolume, "persistentvolumes")
        self.claims = AssumeCache(PersistentVolumeClaim, "persistentvolumeclaims")

    def is_all_bound(self, objects: Objects, pod: Pod) -> bool:
        """Whether all claims of the pod are completely bound."""
        namespace = pod.metadata.namespace
        for used in claims_of(pod):
            claim = self.claims.get(objects, used.name, namespace)
            if claim is None or not is_fully_bound(claim):
                return False
            if used.is_ephemeral and ownership_error(pod, claim):
                return False
        return True

    def assume(self, objects: Objects, node_name: str, decided: PodVolumes) -> PodVolumes:
        """Assume the decided volumes and claims; return them in the form to write.

        Raises AssumeError if an object has changed; nothing is assumed then.
        """
        bindings: list[StaticBinding] = []
        provisions: list[DynamicProvision] = []
        try:
            for binding in decided.static_bindings:
                volume = _bind_to(binding.volume, binding.claim)
                if volume is not binding.volume:
                    self.volumes.assume(objects, volume)
                bindings.append(StaticBinding(volume, binding.claim))
            for one in decided.dynamic_provisions:
                claim = _annotate(one.claim, SELECTED_NODE, node_name)
                self.claims.assume(objects, claim)
                provisions.append(DynamicProvision(claim))
        except AssumeError:
            self.revert(PodVolumes(tuple(bindings), tuple(provisions)))
            raise
        return PodVolumes(tuple(bindings), tuple(provisions))

    def revert(self, volumes: PodVolumes) -> None:
        """Drop the assumed objects."""
        for binding in volumes.static_bindings:
            self.volumes.restore(binding.volume)
        for one in volumes.dynamic_provisions:
            self.claims.restore(one.claim)

    async def write(self, writer: VolumeWriter, assumed: PodVolumes) -> tuple[PodVolumes, str]:
        """Write volumes, then claims; return what is stored then, and an error text or "".

        Objects that could not be written are no longer assumed.
        """
        bindings: list[StaticBinding] = []
        provisions: list[DynamicProvision] = []
        error = ""
        try:
            for binding in assumed.static_bindings:
                volume = await writer.update_persistent_volume(binding.volume)
                bindings.append(StaticBinding(volume, binding.claim))
            for one in assumed.dynamic_provisions:
                claim = await writer.update_persistent_volume_claim(one.claim)
                provisions.append(DynamicProvision(claim))
        except ApiError as refusal:
            error = str(refusal)
        finally:
            unwritten = assumed.static_bindings[len(bindings) :]
            self.revert(PodVolumes(unwritten, assumed.dynamic_provisions[len(provisions) :]))
        return PodVolumes(tuple(bindings), tuple(provisions)), error


class BindingCheck(msgspec.Struct, frozen=True):
    """Checks whether a pod's volumes are bound, according to the informer cache.

    Attributes:
        pod: The pod.
        node_name: Its node.
        snapshot: The cluster, kept up to date.
        writer: Checks whether the pod still exists.
    """

    pod: Pod
    node_name: str
    snapshot: Snapshot
    writer: VolumeWriter

    async def wait_until_bound(self, written: PodVolumes, timeout_seconds: float) -> None:
        """Wait until the volume controller has bound everything; check once per second.

        Raises VolumeBindingError if binding is no longer possible, or timed out.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                is_bound = False
                while not is_bound:
                    await asyncio.sleep(_POLL_SECONDS)
                    is_bound = self._is_bound(written)
        except TimeoutError:
            raise VolumeBindingError("context deadline exceeded") from None

    def _is_bound(self, written: PodVolumes) -> bool:
        if self.node_name not in self.snapshot.nodes.row_of:
            text = f'failed to get node "{self.node_name}": node "{self.node_name}" not found'
            raise VolumeBindingError(text)
        metadata = self.pod.metadata
        if not self.writer.has_pod(metadata.namespace, metadata.name):
            raise VolumeBindingError(
                f'pod does not exist any more: pod "{metadata.name}" not found'
            )
        return all(self._is_static_bound(one) for one in written.static_bindings) and all(
            self._is_provisioned(one.claim) for one in written.dynamic_provisions
        )

    def _is_static_bound(self, binding: StaticBinding) -> bool:
        name = binding.volume.metadata.name
        volume = self.snapshot.objects.get(PersistentVolume, name)
        if volume is None:
            raise VolumeBindingError(
                f'failed to check binding: persistentvolumes "{name}" not found'
            )
        claim = self._claim(binding.claim, "failed to check binding")
        if _is_newer(binding.volume, volume):
            return False
        self._check_reachable(volume, "failed to translate pv to csi: ")
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid:
            raise VolumeBindingError(f'ClaimRef got reset for pv "{name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, written: PersistentVolumeClaim) -> bool:
        claim = self._claim(written, "failed to check provisioning pvc")
        if _is_newer(written, claim):
            return False
        name, annotations = claim.metadata.name, claim.metadata.annotations
        if not annotations:
            raise VolumeBindingError(f'selectedNode annotation reset for PVC "{name}"')
        if annotations.get(SELECTED_NODE, "") != self.node_name:
            # A provisioner that fails removes the annotation.
            raise VolumeBindingError(f'provisioning failed for PVC "{name}"')
        if claim.spec.volume_name:
            volume = self.snapshot.objects.get(PersistentVolume, claim.spec.volume_name)
            if volume is None:
                return False
            self._check_reachable(volume, "")
        return is_fully_bound(claim)

    def _claim(self, claim: PersistentVolumeClaim, context: str) -> PersistentVolumeClaim:
        metadata = claim.metadata
        found = self.snapshot.objects.get(PersistentVolumeClaim, metadata.name, metadata.namespace)
        if found is None:
            text = f'{context}: persistentvolumeclaims "{claim.metadata.key}" not found'
            raise VolumeBindingError(text)
        return found

    def _check_reachable(self, volume: PersistentVolume, context: str) -> None:
        required = required_of(volume.spec.node_affinity)
        plugin = plugin_of(volume.spec)
        csi_node = self.snapshot.objects.get(CSINode, self.node_name)
        if plugin is not None and plugin.is_migrated and is_migrated_on(plugin, csi_node):
            try:
                required = csi_node_affinity(volume)
            except TranslationError as error:
                raise VolumeBindingError(f"{context}could not translate pv: {error}") from None
        node = self.snapshot.nodes.take(np.array([self.snapshot.nodes.row_of[self.node_name]]))
        if not NodeAccess(node).mask_of_selector(required)[0]:
            raise VolumeBindingError(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node '
                f'"{self.node_name}": no matching NodeSelectorTerms'
            )


def _bind_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume bound to the claim; the same object if it is bound already."""
    ref, wanted = volume.spec.claim_ref, claim.metadata
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in volume.metadata.annotations:
        volume = _annotate(volume, BOUND_BY_CONTROLLER, "yes")
    if ref is None or (ref.name, ref.namespace, ref.uid) != (
        wanted.name,
        wanted.namespace,
        wanted.uid,
    ):
        ref = ObjectReference(
            api_version="v1",
            kind="PersistentVolumeClaim",
            namespace=wanted.namespace,
            name=wanted.name,
            uid=wanted.uid,
            resource_version=wanted.resource_version,
        )
        spec = msgspec.structs.replace(volume.spec, claim_ref=ref)
        volume = msgspec.structs.replace(volume, spec=spec)
    return volume


def _annotate(item: K, key: str, text: str) -> K:
    annotations = {**item.metadata.annotations, key: text}
    metadata: ObjectMeta = msgspec.structs.replace(item.metadata, annotations=annotations)
    return msgspec.structs.replace(item, metadata=metadata)


def _is_newer(written: KubeObject, seen: KubeObject) -> bool:
    """Whether the informer does not have the written version yet."""
    ours, theirs = written.metadata.resource_version, seen.metadata.resource_version
    return ours.isdigit() and theirs.isdigit() and int(ours) > int(theirs)
