"""Builders of storage objects for the tests of the volume plugins."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim

Json = Mapping[str, object]

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"


def make_claim(
    name: str = "claim",
    *,
    storage_class: str | None = None,
    volume: str = "",
    completed: bool | None = None,
    storage: str | None = "1Gi",
    access_modes: Sequence[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    phase: str = "Pending",
    owner_uid: str | None = None,
    metadata: Json | None = None,
    spec: Json | None = None,
) -> PersistentVolumeClaim:
    """Build a claim; with a volume it is fully bound, unless `completed` is false."""
    marks = dict(annotations or {})
    if completed if completed is not None else bool(volume):
        marks[BIND_COMPLETED] = "yes"
    owners = [] if owner_uid is None else [{"uid": owner_uid, "controller": True}]
    body: dict[str, object] = {
        "accessModes": list(access_modes),
        "volumeName": volume,
        "resources": {"requests": {} if storage is None else {"storage": storage}},
        **(spec or {}),
    }
    if storage_class is not None:
        body["storageClassName"] = storage_class
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "resourceVersion": "1",
                "annotations": marks,
                "ownerReferences": owners,
                **(metadata or {}),
            },
            "spec": body,
            "status": {"phase": phase},
        },
        PersistentVolumeClaim,
    )


def make_volume(
    name: str = "volume",
    *,
    storage_class: str = "",
    storage: str = "1Gi",
    nodes: Json | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    claim: Json | None = None,
    phase: str = "Available",
    access_modes: Sequence[str] = ("ReadWriteOnce",),
    metadata: Json | None = None,
    **spec: Any,
) -> PersistentVolume:
    """Build a volume.

    Node affinity is one term: `nodes` is label -> values (In). `claim` is `spec.claimRef`; further
    fields of the specification have their JSON names.
    """
    body: dict[str, object] = {
        "storageClassName": storage_class,
        "capacity": {"storage": storage},
        "accessModes": list(access_modes),
        **spec,
    }
    if nodes is not None:
        body["nodeAffinity"] = {"required": terms(nodes)}
    if claim is not None:
        body["claimRef"] = claim
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "resourceVersion": "1",
                "labels": dict(labels or {}),
                "annotations": dict(annotations or {}),
                **(metadata or {}),
            },
            "spec": body,
            "status": {"phase": phase},
        },
        PersistentVolume,
    )


def terms(*any_of: Json) -> dict[str, object]:
    """Build a node selector: each argument is a term of labels and the values they may have."""
    return {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": key, "operator": "In", "values": values} for key, values in term.items()
                ]
            }
            for term in any_of
        ]
    }


def make_class(
    name: str,
    *,
    provisioner: str = "csi.example.com",
    mode: str | None = "WaitForFirstConsumer",
    topologies: Sequence[Mapping[str, Sequence[str]]] = (),
) -> StorageClass:
    """Build a storage class; each topology is labels and the values they may have."""
    body: dict[str, object] = {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "allowedTopologies": [
            {
                "matchLabelExpressions": [
                    {"key": key, "values": list(values)} for key, values in topology.items()
                ]
            }
            for topology in topologies
        ],
    }
    if mode is not None:
        body["volumeBindingMode"] = mode
    return msgspec.convert(body, StorageClass)


def make_csi_node(
    name: str, limits: Mapping[str, int | None] | None = None, *, migrated: Iterable[str] = ()
) -> CSINode:
    """Build a CSINode: driver -> limit, and the in-tree plugins that are migrated."""
    drivers = [
        {"name": driver, "nodeID": name}
        | ({} if limit is None else {"allocatable": {"count": limit}})
        for driver, limit in (limits or {}).items()
    ]
    annotations = {MIGRATED_PLUGINS: ",".join(migrated)}
    return msgspec.convert(
        {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}},
        CSINode,
    )


def make_driver(name: str, **spec: object) -> CSIDriver:
    """Build a CSIDriver; fields in camelCase."""
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, CSIDriver)


def make_pool(
    name: str,
    storage_class: str,
    *,
    topology: Json | None = None,
    capacity: str | None = None,
    largest: str | None = None,
) -> CSIStorageCapacity:
    """Build a CSIStorageCapacity; `topology` is a label selector."""
    body: dict[str, object] = {
        "metadata": {"name": name, "namespace": "storage"},
        "storageClassName": storage_class,
    }
    parts = {"nodeTopology": topology, "capacity": capacity, "maximumVolumeSize": largest}
    body |= {key: part for key, part in parts.items() if part is not None}
    return msgspec.convert(body, CSIStorageCapacity)


def make_attachment(
    name: str, *, node: str, volume: str | None, attacher: str = "csi.example.com"
) -> VolumeAttachment:
    """Build a volume attachment."""
    source = {} if volume is None else {"persistentVolumeName": volume}
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {"attacher": attacher, "nodeName": node, "source": source},
        },
        VolumeAttachment,
    )


def claim_volumes(*names: str) -> list[dict[str, object]]:
    """Build the volumes of a pod that uses these claims."""
    return [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}}
        for i, name in enumerate(names)
    ]
