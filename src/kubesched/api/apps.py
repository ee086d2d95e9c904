"""The apps/v1 kinds: what keeps pods in number and in shape.

Upstream: staging/src/k8s.io/api/apps/v1/types.go (v1.36)
Differs:  rollout strategies and revision history are not read.
"""

from kubesched.api.meta import Int32, Int64, KubeStruct, LabelSelector, ObjectMeta
from kubesched.api.pod import PodTemplateSpec
from kubesched.api.volume import PersistentVolumeClaim


class ReplicaSetSpec(KubeStruct):
    """How many pods, selected how, made from what; replicas of None means 1."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSetStatus(KubeStruct):
    """How many pods there are."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0


class ReplicaSet(KubeStruct):
    """Keeps a number of equal pods."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetSpec(KubeStruct):
    """How many pods with a name and claims of their own; replicas of None means 1."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    service_name: str = ""
    pod_management_policy: str = ""


class StatefulSetStatus(KubeStruct):
    """How many pods there are."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    observed_generation: Int64 = 0


class StatefulSet(KubeStruct):
    """Keeps a number of pods that have an identity."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DeploymentSpec(KubeStruct):
    """How many pods, selected how, made from what; replicas of None means 1."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    paused: bool = False


class DeploymentStatus(KubeStruct):
    """How many pods there are."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    observed_generation: Int64 = 0


class Deployment(KubeStruct):
    """Keeps a replica set of the newest template."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class DaemonSetSpec(KubeStruct):
    """What runs on every node that the template admits."""

    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSetStatus(KubeStruct):
    """On how many nodes it runs."""

    current_number_scheduled: Int32 = 0
    desired_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_ready: Int32 = 0
    number_misscheduled: Int32 = 0
    observed_generation: Int64 = 0


class DaemonSet(KubeStruct):
    """Keeps one pod on every node."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()
