"""The kinds of the core API group; the large ones have modules of their own.

Upstream: staging/src/k8s.io/api/core/v1/types.go (v1.36)
Differs:  only fields that scheduling, explaining and simulating read are kept.
"""

from kubesched.api.integers import Int32
from kubesched.api.meta import Condition, KubeObject, KubeStruct
from kubesched.api.node import (
    Node,
    NodeCondition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
    PreferredSchedulingTerm,
    Taint,
    TopologySelectorTerm,
)
from kubesched.api.pod import (
    Affinity,
    Container,
    ContainerExtendedResourceRequest,
    ContainerPort,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from kubesched.api.volume import (
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Volume,
    VolumeNodeAffinity,
)

__all__ = [
    "Affinity",
    "AzureDiskVolumeSource",
    "AzureFileVolumeSource",
    "Container",
    "ContainerExtendedResourceRequest",
    "ContainerPort",
    "CoreEvent",
    "EventSource",
    "Namespace",
    "NamespaceStatus",
    "Node",
    "NodeAffinity",
    "NodeCondition",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeStatus",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodCondition",
    "PodExtendedResourceClaimStatus",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSpec",
    "PodStatus",
    "PodTemplateSpec",
    "PreferredSchedulingTerm",
    "ReplicationController",
    "ReplicationControllerSpec",
    "ResourceRequirements",
    "Service",
    "ServiceSpec",
    "Taint",
    "Toleration",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeNodeAffinity",
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
    type: str = ""


class Service(KubeObject):
    """A stable address for a set of pods."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(KubeStruct):
    """The number of pods (None means 1), their selector and template."""

    replicas: Int32 | None = None
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None


class ReplicationControllerStatus(KubeStruct):
    """Observations of the controller."""

    conditions: tuple[Condition, ...] = ()


class ReplicationController(KubeObject):
    """Maintains a number of equal pods; the predecessor of ReplicaSet."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


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
    reporting_component: str = ""
    reporting_instance: str = ""
