"""The kinds of the core API group, without volumes; and two that go with them: events and leases.

Upstream: staging/src/k8s.io/api/core/v1/types.go; api/events/v1 and api/coordination/v1 (v1.36)
Differs:  only fields that scheduling, explaining and simulating read are kept: of pods not those
          that only the kubelet reads (commands, environment, probes), of nodes not nodeInfo, daemon
          endpoints and configuration sources, of events.k8s.io none.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import field

from kubesched.api.integers import Int32, Int64
from kubesched.api.meta import (
    Condition,
    KubeObject,
    KubeStruct,
    LabelSelector,
    NodeSelector,
    ObjectMeta,
    PreferredSchedulingTerm,
)
from kubesched.api.quantity import Quantity
from kubesched.api.volume import ObjectReference, Volume

FINISHED: Final = ("Succeeded", "Failed")
"""The phases of pods whose containers have ended for good."""

# Nodes.


class Taint(KubeStruct):
    """Repels pods that do not tolerate it. Hashable."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(KubeStruct):
    """The desired state of a node."""

    pod_cidr: str = field(default="", name="podCIDR")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(KubeStruct):
    """One observation of a node's state."""

    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(KubeStruct):
    """A host name or IP address of a node."""

    type: str = ""
    address: str = ""


class ContainerImage(KubeStruct):
    """An image on the node, with all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class AttachedVolume(KubeStruct):
    """A volume attached to the node."""

    name: str = ""
    device_path: str = ""


class NodeStatus(KubeStruct):
    """The observed state of a node."""

    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    phase: str = ""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject):
    """A machine."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# Pods.


class ContainerPort(KubeStruct):
    """A port of a container; `host_port` is the node's port that is forwarded to it, 0 if none."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: str = ""
    host_ip: str = field(default="", name="hostIP")


class ContainerResourceClaim(KubeStruct):
    """One of the pod's resource claims, or a request of it, that a container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(KubeStruct):
    """Requests and limits by resource name."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    claims: tuple[ContainerResourceClaim, ...] = ()


class ContainerResizePolicy(KubeStruct):
    """Whether a container restarts when one of its resources is resized."""

    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRule(KubeStruct):
    """The action after certain exit codes of a container; the codes are not kept."""

    action: str = ""


class Container(KubeStruct):
    """A container; an init container with restart policy Always is a sidecar."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class NodeAffinity(KubeStruct):
    """The nodes that a pod requires and prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[PreferredSchedulingTerm, ...] | None
    ) = None


class PodAffinityTerm(KubeStruct):
    """Pods to be near to or far from; `topology_key` is the label of the domains that count."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(KubeStruct):
    """A preferred term with its weight, 1 to 100."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(KubeStruct):
    """Pods to be near to."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(PodAffinity):
    """Pods to be far from."""


class Affinity(KubeStruct):
    """Affinity to nodes, affinity to pods and anti-affinity to pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(KubeStruct):
    """The taints that a pod tolerates. Hashable."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(KubeStruct):
    """How evenly pods must be spread over the domains of a node label."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodSchedulingGate(KubeStruct):
    """A gate that must be removed before the pod is scheduled."""

    name: str = ""


class PodSchedulingGroup(KubeStruct):
    """The pod group that a pod belongs to."""

    pod_group_name: str | None = None


class PodResourceClaim(KubeStruct):
    """A resource claim of the pod: an existing one, or one created from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(KubeStruct):
    """The containers of a pod, and where they may run."""

    volumes: tuple[Volume, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    node_selector: dict[str, str] | None = None
    service_account_name: str = ""
    node_name: str = ""
    host_network: bool = False
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    overhead: dict[str, Quantity] = {}
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    scheduling_group: PodSchedulingGroup | None = None


class PodCondition(KubeStruct):
    """One observation of a pod's state."""

    type: str = ""
    status: str = ""
    observed_generation: Int64 = 0
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class ContainerStatus(KubeStruct):
    """What the kubelet reports about a container; resources are None if not reported."""

    name: str = ""
    image: str = ""
    ready: bool = False
    restart_count: Int32 = 0
    allocated_resources: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(KubeStruct):
    """The claim that was created from a template; None if none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(KubeStruct):
    """The request of the special claim that provides a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(KubeStruct):
    """The special claim that provides extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class NodeAllocatableResourceClaimStatus(KubeStruct):
    """The node resources that a claim consumes."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: dict[str, Quantity] = {}


class PodStatus(KubeStruct):
    """The observed state of a pod."""

    observed_generation: Int64 = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = field(default="", name="hostIP")
    pod_ip: str = field(default="", name="podIP")
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(KubeObject):
    """Containers that run together on a node."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def resource_claims(self) -> Iterator[tuple[PodResourceClaim, str]]:
        """Yield each entry of `spec.resourceClaims` with its claim's name, "" if not created."""
        created = {one.name: one.resource_claim_name for one in self.status.resource_claim_statuses}
        for entry in self.spec.resource_claims:
            yield entry, entry.resource_claim_name or created.get(entry.name) or ""

    def claims_in_use(self) -> Iterator[str]:
        """Yield the names of its ResourceClaims, and of the one for its extended resources."""
        yield from (name for _, name in self.resource_claims())
        if self.status.extended_resource_claim_status is not None:
            yield self.status.extended_resource_claim_status.resource_claim_name


class PodTemplateSpec(KubeStruct):
    """The template from which a controller creates its pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


# Other kinds.


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


class Event(KubeObject):
    """Something that a controller did to an object or observed about it."""


class EventRecord(msgspec.Struct, frozen=True):
    """An event to write; events may be lost.

    Attributes:
        regarding: The pod that the event is about.
        type: `Normal` or `Warning`.
        reason: Such as `Scheduled`.
        action: Such as `Binding`.
        note: A human-readable message of at most 1,024 bytes.
        related: A second pod that is involved.
        reporting_controller: The profile's name.
    """

    regarding: Pod
    type: str
    reason: str
    action: str
    note: str
    related: Pod | None = None
    reporting_controller: str = ""


class LeaseSpec(KubeStruct):
    """The lease's holder, times (RFC 3339 with microseconds) and duration."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject):
    """A lock with a holder and an expiry, for leader election."""

    spec: LeaseSpec = LeaseSpec()
