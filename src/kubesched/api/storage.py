# ruff: noqa: RUF012 - msgspec copies the empty dict for every instance
"""The storage.k8s.io/v1 kinds: classes, drivers, what drivers can attach where.

Upstream: staging/src/k8s.io/api/storage/v1/types.go (v1.36)
Differs:  mount options, token requests and attachment errors are not read.
"""

from msgspec import field

from kubesched.api.meta import Int32, Int64, KubeStruct, LabelSelector, ObjectMeta
from kubesched.api.quantity import Quantity
from kubesched.api.selector_terms import TopologySelectorTerm
from kubesched.api.volume import PersistentVolumeSpec


class StorageClass(KubeStruct):
    """A kind of storage, and when its volumes are bound."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(KubeStruct):
    """How many volumes of a driver a node can have; None means no limit."""

    count: Int32 | None = None


class CSINodeDriver(KubeStruct):
    """A driver that runs on the node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubeStruct):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeStruct):
    """The CSI side of the node of the same name."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(KubeStruct):
    """What a driver needs and promises."""

    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()
    storage_capacity: bool | None = None
    fs_group_policy: str | None = None
    requires_republish: bool | None = None
    node_allocatable_update_period_seconds: Int64 | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeStruct):
    """A CSI driver of the cluster."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeStruct):
    """How much storage of a class is left in a part of the cluster."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(KubeStruct):
    """The volume: by name, or inline for migrated in-tree volumes."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(KubeStruct):
    """Which volume is to be attached where, by whom."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(KubeStruct):
    """Whether it is attached."""

    attached: bool = False
    attachment_metadata: dict[str, str] = {}


class VolumeAttachment(KubeStruct):
    """The order to attach a volume to a node."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


class VolumeAttributesClass(KubeStruct):
    """Attributes of a volume that may change while it lives."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    driver_name: str = ""
    parameters: dict[str, str] = {}
