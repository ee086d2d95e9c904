"""The claims of a pod, and the state of a claim.

Upstream: component-helpers/storage/{ephemeral/ephemeral.go,volume/helpers.go,volume/pv_helpers.go}
          (v1.36)
Reads:    pod.spec.volumes; claims, volumes and storage classes
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.api.meta import controller_of
from kubesched.api.storage import StorageClass
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim, Volume
from kubesched.api.well_known import BETA_STORAGE_CLASS, BIND_COMPLETED
from kubesched.framework.cluster_event import Filing
from kubesched.snapshot.objects import Objects

STORAGE: Final = "storage"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


class PodClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim that a pod's volume refers to, by its name in the pod's namespace."""

    name: str
    is_ephemeral: bool


def claim_of(pod: Pod, volume: Volume) -> PodClaim | None:
    """Return the claim of a volume, or None if it has none."""
    if volume.persistent_volume_claim is not None:
        return PodClaim(volume.persistent_volume_claim.claim_name, is_ephemeral=False)
    if volume.ephemeral is not None:
        return PodClaim(f"{pod.metadata.name}-{volume.name}", is_ephemeral=True)
    return None


def has_claims(volumes: tuple[Volume, ...]) -> bool:
    """Whether one of the volumes uses a claim; ephemeral volumes do."""
    return any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None
        for volume in volumes
    )


def claims_of(pod: Pod) -> list[PodClaim]:
    """Return the claims of a pod in order of its volumes, with repetitions."""
    claims = [claim_of(pod, volume) for volume in pod.spec.volumes]
    return [claim for claim in claims if claim is not None]


def known_claims(pod: Pod, objects: Objects) -> list[PersistentVolumeClaim | None]:
    """Return the claims of a pod in order of its volumes; None for one that is not known."""
    return [
        objects.get(PersistentVolumeClaim, used.name, pod.metadata.namespace)
        for used in claims_of(pod)
    ]


def named_claims(pod: Pod) -> list[str]:
    """Return the claims that the pod's volumes name, without those of ephemeral volumes."""
    return [used.name for used in claims_of(pod) if not used.is_ephemeral]


def after_claim_change(pod: Pod, _old: object | None, new: object | None) -> bool:
    """Whether the pod uses the claim, by name or through an ephemeral volume; a queueing hint."""
    return _is_among([used.name for used in claims_of(pod)], pod, new)


def after_named_claim_change(pod: Pod, _old: object | None, new: object | None) -> bool:
    """Whether the pod names the claim; a queueing hint."""
    return _is_among(named_claims(pod), pod, new)


def _is_among(names: list[str], pod: Pod, claim: object | None) -> bool:
    if not isinstance(claim, PersistentVolumeClaim):
        return True
    metadata = claim.metadata
    return metadata.namespace == pod.metadata.namespace and metadata.name in names


def _names_of_claims(pod: Pod) -> Iterator[str]:
    return (f"{pod.metadata.namespace}/{used.name}" for used in claims_of(pod))


def _name_of_claim(_old: object | None, new: object | None) -> tuple[str] | None:
    return (new.metadata.key,) if isinstance(new, PersistentVolumeClaim) else None


BY_CLAIM: Final = Filing(_names_of_claims, _name_of_claim)
"""Indexes pods by their claims, which the hints above read."""


def ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Return why an ephemeral volume's claim does not belong to the pod, or ""."""
    mine, theirs = pod.metadata, claim.metadata
    controller = controller_of(theirs)
    if mine.namespace == theirs.namespace and controller and controller.uid == mine.uid:
        return ""
    return (
        f"PVC {theirs.namespace}/{theirs.name} was not created for pod "
        f"{mine.namespace}/{mine.name} (pod is not owner)"
    )


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the storage class of a claim, or ""."""
    beta = claim.metadata.annotations.get(BETA_STORAGE_CLASS)
    return (claim.spec.storage_class_name or "") if beta is None else beta


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the storage class of a volume, or ""."""
    beta = volume.metadata.annotations.get(BETA_STORAGE_CLASS)
    return volume.spec.storage_class_name if beta is None else beta


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has a volume and binding is complete."""
    return claim.spec.volume_name != "" and BIND_COMPLETED in claim.metadata.annotations


def waits_for_consumer(claim: PersistentVolumeClaim, objects: Objects) -> bool | None:
    """Whether the claim's class has binding mode WaitForFirstConsumer; None if it has no mode.

    False if the class is missing.
    """
    storage_class = objects.get(StorageClass, class_of_claim(claim))
    if storage_class is None:
        return False
    mode = storage_class.volume_binding_mode
    return None if mode is None else mode == WAIT_FOR_FIRST_CONSUMER


def no_binding_mode(storage_class: str) -> str:
    """Return upstream's error for a storage class without a volume binding mode."""
    return f'VolumeBindingMode not set for StorageClass "{storage_class}"'


def claim_not_found(name: str) -> str:
    """Return upstream's error for a missing claim."""
    return f'persistentvolumeclaim "{name}" not found'
