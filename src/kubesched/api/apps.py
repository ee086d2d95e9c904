"""The apps/v1 kinds: workload controllers.

Upstream: staging/src/k8s.io/api/apps/v1/types.go (v1.36)
Differs:  rollout strategies and revision history are not read.
"""

from kubesched.api.integers import Int32, Int64
from kubesched.api.meta import Condition, KubeObject, KubeStruct, LabelSelector
from kubesched.api.pod import PodTemplateSpec
from kubesched.api.volume import PersistentVolumeClaim


class ReplicaSetSpec(KubeStruct):
    """The number of pods (None means 1), their selector and template."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSetStatus(KubeStruct):
    """The numbers of pods."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(KubeObject):
    """Maintains a number of equal pods."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetSpec(KubeStruct):
    """The number of pods (None means 1), with individual names and volume claims."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    service_name: str = ""
    pod_management_policy: str = ""


class StatefulSetStatus(KubeStruct):
    """The numbers of pods."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    observed_generation: Int64 = 0


class StatefulSet(KubeObject):
    """Maintains a number of pods that have an identity."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DeploymentSpec(KubeStruct):
    """The number of pods (None means 1), their selector and template."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    paused: bool = False


class DeploymentStatus(KubeStruct):
    """The numbers of pods."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(KubeObject):
    """Maintains a ReplicaSet with the newest template."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class DaemonSetSpec(KubeStruct):
    """The selector and template of the pods."""

    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSetStatus(KubeStruct):
    """The numbers of nodes."""

    current_number_scheduled: Int32 = 0
    desired_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_ready: Int32 = 0
    number_misscheduled: Int32 = 0
    observed_generation: Int64 = 0


class DaemonSet(KubeObject):
    """Maintains one pod on every node that the template admits."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()
