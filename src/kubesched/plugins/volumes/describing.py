"""What explain says about a pod's volumes: which kinds matter, and why claims cannot be served.

Reads:    pod.spec.volumes; claims, volumes, storage classes, CSIDrivers, CSINodes; node labels
Differs:  not in upstream; for explain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from kubesched.api.core import Node, Pod
from kubesched.api.csi_translation import TranslationError, csi_node_affinity
from kubesched.api.meta import NodeSelector
from kubesched.api.selector_text import describe_selector, shown_label
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import SELECTED_NODE
from kubesched.framework.plugin import NeededKind
from kubesched.plugins.volumes.attachable import AttachableError, add_volumes_of, may_attach
from kubesched.plugins.volumes.claims import (
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
    has_claims,
    is_fully_bound,
    known_claims,
)
from kubesched.plugins.volumes.matching import why_not_matching
from kubesched.plugins.volumes.node_access import NodeAccess, label_terms, required_of
from kubesched.plugins.volumes.provisioning import (
    Provision,
    ProvisioningError,
    StoragePools,
    can_provision,
    provision,
    reports_capacity,
)
from kubesched.snapshot.objects import Objects

# The kinds of objects that a pod's volumes depend on.


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


def kinds_of_limits(pod: Pod, objects: Objects, limited: Collection[str]) -> Iterator[NeededKind]:
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
    if not objects.knows(CSINode) or any(driver in limited for driver in found.values()):
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
    waits = storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return waits and can_provision(storage_class)


def _reports_room(claim: PersistentVolumeClaim, objects: Objects) -> bool:
    """Whether, as far as known, the driver of the claim's class reports its capacity."""
    storage_class = objects.get(StorageClass, class_of_claim(claim))
    if storage_class is None or not objects.knows(CSIDriver):
        return True
    return reports_capacity(storage_class, objects)


# Why claims cannot be served, on one node or on any.


def describe_unbound_claims(pod: Pod, objects: Objects) -> str:
    """Return why unbound claims of the pod must be bound before it is scheduled."""
    texts = [
        f"claim {claim.metadata.name} {text}"
        for claim in known_claims(pod, objects)
        if claim is not None and (text := _why_not_delayed(claim, objects))
    ]
    return "; ".join(dict.fromkeys(texts))


def _why_not_delayed(claim: PersistentVolumeClaim, objects: Objects) -> str:
    if is_fully_bound(claim):
        return ""
    if claim.spec.volume_name:
        return f"is still being bound to volume {claim.spec.volume_name}"
    name = class_of_claim(claim)
    if not name:
        return "has no volume and names no StorageClass"
    storage_class = objects.get(StorageClass, name)
    if storage_class is None:
        return f"has no volume and names StorageClass {name}, which does not exist"
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return ""
    what = "a volume must be created"
    if can_provision(storage_class):
        what = f"{storage_class.provisioner} must create a volume"
    return f"has no volume, and StorageClass {name} binds at once: {what} before any pod is placed"


def describe_provision(claim: PersistentVolumeClaim, objects: Objects) -> str:
    """Return which volume must be provisioned, and by which provisioner."""
    name = class_of_claim(claim)
    storage_class = objects.get(StorageClass, name)
    by = f" by {storage_class.provisioner}" if storage_class is not None else ""
    return f"a volume of StorageClass {name} for claim {claim.metadata.name}, made{by}"


def describe_bound_claim(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume | None,
    access: NodeAccess,
    *,
    is_migrated: bool,
) -> str:
    """Return why the only row of `access` cannot reach the claim's volume, or ""."""
    where = f"claim {claim.metadata.name}: volume {claim.spec.volume_name}"
    if volume is None:
        return f"{where} does not exist"
    required = required_of(volume.spec.node_affinity)
    if is_migrated and access.mask_of_selector(required)[0]:
        try:
            required = csi_node_affinity(volume)
        except TranslationError:
            return ""
    if required is None or access.mask_of_selector(required)[0]:
        return ""
    asked = NodeSelector(node_selector_terms=label_terms(required))
    return f"{where} {describe_selector(asked, access.nodes.nodes[0])}"


def describe_delayed_claim(
    claim: PersistentVolumeClaim,
    volumes: Sequence[PersistentVolume],
    objects: Objects,
    access: NodeAccess,
) -> str:
    """Return why a claim gets no volume on the only row of `access`; "" if one can be provisioned.

    No existing volume matches the claim there; `volumes` are those of its class.
    """
    name = claim.metadata.name
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if selected not in (None, access.nodes.names[0]):
        return f"claim {name}: its volume is being made for node {selected}"
    try:
        text = _why_not_made(provision(claim, objects, StoragePools(), access), objects, access)
    except ProvisioningError:
        return ""
    if not text:
        return ""
    unfit = Counter(why_not_matching(claim, volume, access) for volume in volumes)
    listed = ", ".join(f"{number} {why}" for why, number in unfit.items())
    there = f"; of its {unfit.total()} volumes: {listed}" if unfit else "; it has no volumes"
    return f"claim {name}: StorageClass {class_of_claim(claim)} {text}{there}"


def _why_not_made(one: Provision, objects: Objects, access: NodeAccess) -> str:
    storage_class = objects.get(StorageClass, class_of_claim(one.claim))
    assert storage_class is not None, "without it there is no provision"
    if not can_provision(storage_class):
        return "makes no volumes"
    if not one.possible[0]:
        return _written_topologies(storage_class, access.nodes.nodes[0])
    if not one.has_room[0]:
        size = one.claim.spec.resources.requests.get(STORAGE, 0)
        return f"has no pool of capacity with room for {size} in reach of the node"
    return ""


def _written_topologies(storage_class: StorageClass, node: Node) -> str:
    """Return the topologies of the class, and the node's labels."""
    terms = [term.match_label_expressions for term in storage_class.allowed_topologies]
    allowed = " or ".join(
        " and ".join(f"{one.key} In ({', '.join(one.values)})" for one in term) for term in terms
    )
    keys = dict.fromkeys(one.key for term in terms for one in term)
    labels = (shown_label(key, node.metadata.labels.get(key)) for key in keys)
    return f"makes volumes only where {allowed}, node has {' and '.join(labels)}"
