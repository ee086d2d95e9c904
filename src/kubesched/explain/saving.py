"""Saving a cluster to a file: the kinds that decisions depend on, and commands to get them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KUBECTL_NAMES: Final[Mapping[str, str]] = {
    "Node": "nodes",
    "Pod": "pods",
    "PodDisruptionBudget": "pdb",
    "PriorityClass": "priorityclasses",
    "Namespace": "namespaces",
    "Service": "services",
    "ReplicationController": "rc",
    "ReplicaSet": "rs",
    "StatefulSet": "sts",
    "PersistentVolume": "pv",
    "PersistentVolumeClaim": "pvc",
    "StorageClass": "sc",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
}
"""All kinds that a decision may depend on, with kubectl's names."""


def get_command(*kinds: str) -> str:
    """Return the command that prints all objects of these kinds."""
    listed = ",".join(KUBECTL_NAMES.get(kind, kind.lower()) for kind in kinds)
    return f"kubectl get {listed} -A -o json"


SAVE_COMMAND: Final = f"{get_command(*KUBECTL_NAMES)} > cluster.json"
"""The command that saves all objects that a decision may depend on."""
SAVE_KNOWN_COMMAND: Final = (
    f"for kind in {' '.join(KUBECTL_NAMES.values())}; do kubectl get $kind -A -o json; "
    "done > cluster.json"
)
"""The command for a server without some of the kinds, where `SAVE_COMMAND` fails."""
