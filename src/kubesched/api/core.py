"""The kinds of the core API group; the large ones have modules of their own.

Upstream: staging/src/k8s.io/api/core/v1/types.go (v1.36)
Differs:  only fields that scheduling, explaining and simulating read are kept.
"""

from msgspec import field

from kubesched.api.events import EventSeries
from kubesched.api.meta import Int32, Int64, KubeObject, KubeStruct
from kubesched.api.node import (
    AttachedVolume,
    ContainerImage,
    Node,
    NodeAddress,
    NodeCondition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    PreferredSchedulingTerm,
    Taint,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from kubesched.api.pod import (
    Affinity,
    Container,
    ContainerExtendedResourceRequest,
    ContainerPort,
    ContainerResizePolicy,
    ContainerResourceClaim,
    ContainerStatus,
    NodeAffinity,
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubesched.api.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    ConfigMapVolumeSource,
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    ISCSIVolumeSource,
    LocalVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    PortworxVolumeSource,
    RBDVolumeSource,
    SecretVolumeSource,
    TypedObjectReference,
    UnreadVolumeSource,
    Volume,
    VolumeNodeAffinity,
    VolumeResourceRequirements,
    VsphereVirtualDiskVolumeSource,
)

__all__ = [
    "AWSElasticBlockStoreVolumeSource",
    "Affinity",
    "AttachedVolume",
    "AzureDiskVolumeSource",
    "AzureFileVolumeSource",
    "Binding",
    "CSIPersistentVolumeSource",
    "CSIVolumeSource",
    "CinderVolumeSource",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerExtendedResourceRequest",
    "ContainerImage",
    "ContainerPort",
    "ContainerResizePolicy",
    "ContainerResourceClaim",
    "ContainerStatus",
    "CoreEvent",
    "EmptyDirVolumeSource",
    "EphemeralVolumeSource",
    "EventSource",
    "GCEPersistentDiskVolumeSource",
    "HostPathVolumeSource",
    "ISCSIVolumeSource",
    "ImageVolumeSource",
    "LocalVolumeSource",
    "Namespace",
    "NamespaceStatus",
    "Node",
    "NodeAddress",
    "NodeAffinity",
    "NodeAllocatableResourceClaimStatus",
    "NodeCondition",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodCondition",
    "PodExtendedResourceClaimStatus",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSpec",
    "PodStatus",
    "PodTemplateSpec",
    "PortworxVolumeSource",
    "PreferredSchedulingTerm",
    "RBDVolumeSource",
    "ReplicationController",
    "ReplicationControllerSpec",
    "ReplicationControllerStatus",
    "ResourceRequirements",
    "SecretVolumeSource",
    "Service",
    "ServiceSpec",
    "Taint",
    "Toleration",
    "TopologySelectorLabelRequirement",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "TypedObjectReference",
    "UnreadVolumeSource",
    "Volume",
    "VolumeNodeAffinity",
    "VolumeResourceRequirements",
    "VsphereVirtualDiskVolumeSource",
    "WeightedPodAffinityTerm",
]


class NamespaceStatus(KubeStruct):
    """Active or Terminating."""

    phase: str = ""


class Namespace(KubeObject):
    """A scope for names."""

    status: NamespaceStatus = NamespaceStatus()


class ServiceSpec(KubeStruct):
    """The selector of a service's pods; without one, its endpoints are set by hand."""

    selector: dict[str, str] | None = None
    cluster_ip: str = field(default="", name="clusterIP")
    type: str = ""


class Service(KubeObject):
    """A stable address for a set of pods."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(KubeStruct):
    """The number of pods (None means 1), their selector and template."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None


class ReplicationControllerStatus(KubeStruct):
    """The numbers of pods."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0


class ReplicationController(KubeObject):
    """Maintains a number of equal pods; the predecessor of ReplicaSet."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


class Binding(KubeObject):
    """Binds a pod (named in the metadata) to a node (the target)."""

    target: ObjectReference = ObjectReference()


class EventSource(KubeStruct):
    """The component that reports an event."""

    component: str = ""
    host: str = ""


class CoreEvent(KubeObject):
    """Something that happened to an object; the Event of the core group."""

    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    count: Int32 = 0
    type: str = ""
    event_time: str | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
