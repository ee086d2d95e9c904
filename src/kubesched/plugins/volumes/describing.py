"""Describes why a pod's claims cannot be served, on one node or on any.

Reads:    claims, volumes, storage classes; the node's labels
Differs:  not in upstream; for explain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kubesched.api.core import Node, Pod
from kubesched.api.meta import NodeSelector
from kubesched.api.storage import StorageClass
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import NO_PROVISIONER, SELECTED_NODE
from kubesched.plugins.shared.node_selector_text import describe_selector, shown_label
from kubesched.plugins.volumes.claims import (
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
    is_fully_bound,
    known_claims,
)
from kubesched.plugins.volumes.csi_translation import TranslationError, csi_node_affinity
from kubesched.plugins.volumes.matching import why_not_matching
from kubesched.plugins.volumes.node_access import NodeAccess, label_terms, required_of
from kubesched.plugins.volumes.provisioning import Provision, ProvisioningError, provision
from kubesched.plugins.volumes.storage_pools import StoragePools
from kubesched.snapshot.objects import Objects


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
    return (
        f"has no volume, and StorageClass {name} binds at once: "
        f"{_who_creates_volumes(storage_class)} before any pod is placed"
    )


def _who_creates_volumes(storage_class: StorageClass) -> str:
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return "a volume must be created"
    return f"{storage_class.provisioner} must create a volume"


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
    if storage_class.provisioner in ("", NO_PROVISIONER):
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
