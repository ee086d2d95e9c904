"""The kinds of the core API group; the large ones live in modules of their own.

Upstream: staging/src/k8s.io/api/core/v1/types.go (v1.36)
Differs:  only fields that scheduling, explaining and simulating read are kept.
"""

from msgspec import field

from kubesched.api.events import EventSeries
from kubesched.api.meta import Int32, Int64, KubeStruct, ObjectMeta
from kubesched.api.node import (
    AttachedVolume,
    ContainerImage,
    Node,
    NodeAddress,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Taint,
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
from kubesched.api.selector_terms import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
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


class Namespace(KubeStruct):
    """A room for names."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    status: NamespaceStatus = NamespaceStatus()


class ServiceSpec(KubeStruct):
    """Which pods a service stands for; without a selector, none that we know of."""

    selector: dict[str, str] | None = None
    cluster_ip: str = field(default="", name="clusterIP")
    type: str = ""


class Service(KubeStruct):
    """One name for many pods."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(KubeStruct):
    """How many pods, selected how, made from what; replicas of None means 1."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None


class ReplicationControllerStatus(KubeStruct):
    """How many pods there are."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0


class ReplicationController(KubeStruct):
    """Keeps a number of pods; the forerunner of ReplicaSet."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


class Binding(KubeStruct):
    """The order to run a pod (named by the metadata) on a node (the target)."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    target: ObjectReference = ObjectReference()


class EventSource(KubeStruct):
    """Who reports an event."""

    component: str = ""
    host: str = ""


class CoreEvent(KubeStruct):
    """Something that happened to an object, as the core group writes it."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
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
