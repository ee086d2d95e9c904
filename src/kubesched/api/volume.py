"""Volumes of pods, persistent volume claims and persistent volumes.

Upstream: staging/src/k8s.io/api/core/v1/types.go, Volume, PersistentVolume(Claim) (v1.36)
Differs:  of sources the scheduler does not look into, only their presence is read.
"""

from operator import attrgetter
from typing import Final

from msgspec import field

from kubesched.api.integers import Int32
from kubesched.api.meta import (
    Condition,
    KubeObject,
    KubeStruct,
    LabelSelector,
    NodeSelector,
    ObjectMeta,
)
from kubesched.api.quantity import Quantity


class ObjectReference(KubeStruct):
    """A reference to an object, or to a part of it."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class UnreadVolumeSource(KubeStruct):
    """A source of which only the presence matters."""


class PersistentVolumeClaimVolumeSource(KubeStruct):
    """A claim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class GCEPersistentDiskVolumeSource(KubeStruct):
    """A Google disk."""

    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(KubeStruct):
    """An Amazon disk."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDiskVolumeSource(KubeStruct):
    """An Azure disk; `kind` is Shared, Dedicated or Managed."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class CinderVolumeSource(KubeStruct):
    """An OpenStack disk."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class PortworxVolumeSource(CinderVolumeSource):
    """A Portworx volume."""


class VsphereVirtualDiskVolumeSource(KubeStruct):
    """A vSphere disk."""

    volume_path: str = ""
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")


class AzureFileVolumeSource(KubeStruct):
    """An Azure file share; `secret_namespace` only in persistent volumes."""

    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False
    secret_namespace: str | None = None


class ISCSIVolumeSource(KubeStruct):
    """An iSCSI disk."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: tuple[str, ...] = ()
    initiator_name: str | None = None


class RBDVolumeSource(KubeStruct):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    read_only: bool = False


class CSIVolumeSource(KubeStruct):
    """An inline volume that a CSI driver creates for the pod."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = {}


class ConfigMapVolumeSource(KubeStruct):
    """The keys of a ConfigMap as files."""

    name: str = ""


class SecretVolumeSource(KubeStruct):
    """The keys of a Secret as files."""

    secret_name: str = ""


class HostPathVolumeSource(KubeStruct):
    """A directory of the node."""

    path: str = ""
    type: str | None = None


class EmptyDirVolumeSource(KubeStruct):
    """A directory with the lifetime of the pod."""

    medium: str = ""
    size_limit: Quantity | None = None


class ImageVolumeSource(KubeStruct):
    """The content of an image as files."""

    reference: str = ""
    pull_policy: str = ""


class VolumeResourceRequirements(KubeStruct):
    """The requested and maximum size."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class TypedObjectReference(KubeStruct):
    """A reference to an object by API group, kind and name."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class PersistentVolumeClaimSpec(KubeStruct):
    """The requested storage; a class of None means the default class, "" means no class."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(KubeStruct):
    """The observed state of a claim."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()
    allocated_resources: dict[str, Quantity] = {}


class PersistentVolumeClaim(KubeObject):
    """A request for storage."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PersistentVolumeClaimTemplate(KubeStruct):
    """The template of an ephemeral volume's claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(KubeStruct):
    """A volume whose claim is created and deleted with the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class DiskSources(KubeStruct):
    """The disks that a pod or a persistent volume can name without a CSI driver; one is set."""

    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None


class Volume(DiskSources):
    """A volume of a pod: a name and one source."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    projected: UnreadVolumeSource | None = None
    downward_api: UnreadVolumeSource | None = field(default=None, name="downwardAPI")
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    nfs: UnreadVolumeSource | None = None

    @property
    def is_seen_by_scheduling(self) -> bool:
        """Whether any scheduler plugin reads the volume's source."""
        return any(_SEEN_SOURCES(self))


_SEEN_SOURCES: Final = attrgetter(
    "persistent_volume_claim", "ephemeral", "csi", "image", *DiskSources.__struct_fields__
)


class CSIPersistentVolumeSource(KubeStruct):
    """A volume of a CSI driver, identified by its handle."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class LocalVolumeSource(KubeStruct):
    """A disk or directory of one node."""

    path: str = ""


class VolumeNodeAffinity(KubeStruct):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(DiskSources):
    """The source, properties and claim of a volume."""

    capacity: dict[str, Quantity] = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    local: LocalVolumeSource | None = None
    nfs: UnreadVolumeSource | None = None


class PersistentVolumeStatus(KubeStruct):
    """The observed state of a volume."""

    phase: str = ""
    reason: str = ""
    message: str = ""


class PersistentVolume(KubeObject):
    """A volume of the cluster."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()
