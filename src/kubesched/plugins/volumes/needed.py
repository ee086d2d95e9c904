"""The kinds of objects that a pod's volumes depend on.

Reads:    pod.spec.volumes; claims, storage classes, CSIDrivers, CSINodes
Differs:  not in upstream; for explain.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.core import Pod
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import NO_PROVISIONER
from kubesched.framework.needed_kinds import NeededKind
from kubesched.plugins.volumes.attachable import AttachableError, add_volumes_of, may_attach
from kubesched.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
    has_claims,
    known_claims,
)
from kubesched.snapshot.objects import Objects


def kinds_of_pod(pod: Pod) -> Iterator[NeededKind]:
    """Yield the kinds that the pod's volumes name."""
    if has_claims(pod.spec.volumes):
        yield NeededKind(PersistentVolumeClaim, "volumes of pods name them")


def kinds_of_claims(pod: Pod, objects: Objects) -> Iterator[NeededKind]:
    """Yield claims, volumes and classes, if the pod's volumes refer to them."""
    yield from kinds_of_pod(pod)
    claims = known_claims(pod, objects)
    if None in claims and objects.knows(PersistentVolumeClaim):
        return  # The claim is missing, so nothing else matters.
    if any(claim is None or claim.spec.volume_name for claim in claims):
        yield NeededKind(PersistentVolume, "claims are bound to them")
    elif any(claim is not None and _may_match(claim, objects) for claim in claims):
        yield NeededKind(PersistentVolume, "a claim could be bound to one")
    if any(claim is None or not claim.spec.volume_name for claim in claims):
        yield NeededKind(StorageClass, "they define when and where volumes are created")


def kinds_of_new_volumes(pod: Pod, objects: Objects) -> Iterator[NeededKind]:
    """Yield the kinds that determine the capacity for volumes to provision."""
    for claim in known_claims(pod, objects):
        if claim is None and objects.knows(PersistentVolumeClaim):
            continue
        if claim is not None and not _is_made_late(claim, objects):
            continue
        yield NeededKind(CSIDriver, "they show whether drivers report capacity")
        if claim is None or _reports_room(claim, objects):
            yield NeededKind(CSIStorageCapacity, "they report the capacity for volumes")


def kinds_of_limits(pod: Pod, objects: Objects, limited: frozenset[str]) -> Iterator[NeededKind]:
    """Yield the kinds that determine the number and limit of volumes on a node.

    `limited` are the drivers that have a limit on some node.
    """
    if not any(map(may_attach, pod.spec.volumes)):
        return
    yield NeededKind(CSINode, "they limit the volumes of a node")
    found: dict[str, str] = {}
    try:
        add_volumes_of(pod, objects, found, has_csi_node=True, is_new=True)
    except AttachableError:
        if objects.knows(PersistentVolumeClaim):
            return
    if not objects.knows(CSINode) or not limited.isdisjoint(found.values()):
        yield NeededKind(VolumeAttachment, "they count towards the limit of a node's volumes")


def _may_match(claim: PersistentVolumeClaim, objects: Objects) -> bool:
    """Whether the scheduler may bind the claim to an existing volume."""
    storage_class = objects.get(StorageClass, class_of_claim(claim))
    return storage_class is None or storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _is_made_late(claim: PersistentVolumeClaim, objects: Objects) -> bool:
    """Whether, as far as known, the claim is provisioned when its pod has a node."""
    if claim.spec.volume_name:
        return False
    storage_class = objects.get(StorageClass, class_of_claim(claim))
    if storage_class is None:
        return not objects.knows(StorageClass)
    return (
        storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        and storage_class.provisioner not in ("", NO_PROVISIONER)
    )


def _reports_room(claim: PersistentVolumeClaim, objects: Objects) -> bool:
    """Whether, as far as known, the driver of the claim's class reports its capacity."""
    storage_class = objects.get(StorageClass, class_of_claim(claim))
    if storage_class is None or not objects.knows(CSIDriver):
        return True
    driver = objects.get(CSIDriver, storage_class.provisioner)
    return driver is not None and bool(driver.spec.storage_capacity)
