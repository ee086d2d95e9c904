"""The storage.k8s.io/v1 kinds: classes, CSI drivers, capacities and attachments.

Upstream: staging/src/k8s.io/api/storage/v1/types.go (v1.36)
Differs:  only fields that scheduling reads are kept.
"""

from kubesched.api.integers import Int32
from kubesched.api.meta import KubeObject, KubeStruct, LabelSelector, TopologySelectorTerm
from kubesched.api.quantity import Quantity


class StorageClass(KubeObject):
    """A class of storage, with its provisioner and binding mode."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(KubeStruct):
    """The maximum number of a driver's volumes on a node; None means no limit."""

    count: Int32 | None = None


class CSINodeDriver(KubeStruct):
    """A CSI driver that runs on the node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubeStruct):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject):
    """The CSI drivers of the node with the same name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(KubeStruct):
    """The requirements and capabilities of a driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject):
    """A CSI driver of the cluster."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject):
    """The available storage of a class in a part of the cluster."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(KubeStruct):
    """The volume by its name, which volumes without an object do not have."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(KubeStruct):
    """The volume, the node and the driver that attaches it."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachment(KubeObject):
    """A request to attach a volume to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class VolumeAttributesClass(KubeObject):
    """A class of mutable volume attributes."""

    parameters: dict[str, str] = {}
