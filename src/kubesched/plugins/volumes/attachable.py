"""Finds the volumes of a pod that CSI drivers attach, with their drivers and handles.

Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, filterAttachableVolumes (v1.36)
Reads:    pod.spec.volumes; claims, volumes, storage classes, volume attachments
Rejects:  volumes that cannot be identified, with `AttachableError`.
Differs:  volumes that are not provisioned yet get a fixed prefix, where upstream's is random.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.csi_translation import TranslationError, csi_identity, plugin_named, plugin_of
from kubesched.api.storage import StorageClass, VolumeAttachment
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim, Volume
from kubesched.plugins.volumes.claims import (
    PodClaim,
    claim_not_found,
    claim_of,
    class_of_claim,
    ownership_error,
)
from kubesched.snapshot.objects import Objects

_NOT_PROVISIONED: Final = "\x00"

Attachables = dict[str, str]
"""`driver/handle` -> driver."""


class AttachableError(Exception):
    """A pod's volumes cannot be identified.

    `is_missing` says whether the only cause is a missing claim, which may be created later.
    """

    def __init__(self, text: str, *, is_missing: bool = False) -> None:
        super().__init__(text)
        self.is_missing = is_missing


def may_attach(volume: Volume) -> bool:
    """Whether a volume is of a kind that CSI drivers attach."""
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or plugin_of(volume) is not None
    )


def add_volumes_of(
    pod: Pod, objects: Objects, found: Attachables, *, has_csi_node: bool, is_new: bool
) -> None:
    """Add the volumes of a pod that CSI drivers attach to `found`.

    In-tree volumes count only if the node has a CSINode. If the pod is not new, missing claims are
    ignored. Raises AttachableError if a volume cannot be identified.
    """
    for volume in pod.spec.volumes:
        used = claim_of(pod, volume)
        if used is None:
            if has_csi_node:
                _add_inline(volume, found)
            continue
        claim = _claim(pod, used, objects, is_new=is_new)
        if claim is None:
            continue
        driver, handle = _identity_of(claim, objects, has_csi_node=has_csi_node)
        if driver and handle:
            found[f"{driver}/{handle}"] = driver


def attached_to(attachments: Iterable[VolumeAttachment], objects: Objects) -> Attachables:
    """Return the CSI volumes of volume attachments."""
    found: Attachables = {}
    for attachment in attachments:
        spec = attachment.spec
        name = spec.source.persistent_volume_name
        if not spec.attacher or name is None:
            continue
        volume = objects.get(PersistentVolume, name)
        if volume is not None and volume.spec.csi is not None:
            found[f"{spec.attacher}/{volume.spec.csi.volume_handle}"] = spec.attacher
    return found


def _claim(
    pod: Pod, used: PodClaim, objects: Objects, *, is_new: bool
) -> PersistentVolumeClaim | None:
    if not used.name:
        raise AttachableError("PersistentVolumeClaim had no name")
    namespace = pod.metadata.namespace
    claim = objects.get(PersistentVolumeClaim, used.name, namespace)
    if claim is None:
        if is_new:
            text = f"looking up PVC {namespace}/{used.name}: {claim_not_found(used.name)}"
            raise AttachableError(text, is_missing=True)
        return None
    if used.is_ephemeral and (error := ownership_error(pod, claim)):
        raise AttachableError(error)
    return claim


def _add_inline(volume: Volume, found: Attachables) -> None:
    try:
        identity = csi_identity(volume)
    except TranslationError as error:
        text = f"converting volume({volume.name}) from inline to csi: {error}"
        raise AttachableError(text) from None
    if identity is not None:
        found["/".join(identity)] = identity[0]


def _identity_of(
    claim: PersistentVolumeClaim, objects: Objects, *, has_csi_node: bool
) -> tuple[str, str]:
    """Return the driver and handle of a claim's volume; empty if no driver attaches it."""
    name = claim.spec.volume_name
    volume = objects.get(PersistentVolume, name) if name else None
    if volume is None:
        return _identity_by_class(claim, objects, has_csi_node=has_csi_node)
    csi = volume.spec.csi
    if csi is not None:
        return csi.driver, csi.volume_handle
    try:
        identity = csi_identity(volume.spec, volume.metadata.labels) if has_csi_node else None
    except TranslationError:
        identity = None
    return identity or ("", "")


def _identity_by_class(
    claim: PersistentVolumeClaim, objects: Objects, *, has_csi_node: bool
) -> tuple[str, str]:
    name = class_of_claim(claim)
    storage_class = objects.get(StorageClass, name) if name else None
    if storage_class is None:
        return "", ""
    handle = f"{_NOT_PROVISIONED}-{claim.metadata.namespace}/{claim.metadata.name}"
    plugin = plugin_named(storage_class.provisioner)
    if plugin is None:
        return storage_class.provisioner, handle
    return (plugin.driver, handle) if plugin.is_migrated and has_csi_node else ("", "")
