"""The apps/v1 and batch/v1 kinds: workload controllers.

Upstream: staging/src/k8s.io/api/apps/v1/types.go, batch/v1/types.go (v1.36)
Differs:  only fields that scheduling, explaining and simulating read are kept.
"""

from kubesched.api.core import PodTemplateSpec
from kubesched.api.integers import Int32
from kubesched.api.meta import Condition, KubeObject, KubeStruct, LabelSelector, ObjectMeta
from kubesched.api.volume import PersistentVolumeClaim


class ReplicaSetSpec(KubeStruct):
    """The number of pods (None means 1), their selector and template."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSetStatus(KubeStruct):
    """Observations of the controller."""

    conditions: tuple[Condition, ...] = ()


class ReplicaSet(KubeObject):
    """Maintains a number of equal pods."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetOrdinals(KubeStruct):
    """The number of the first pod."""

    start: Int32 = 0


class StatefulSetSpec(ReplicaSetSpec):
    """The same, and the claims of each pod."""

    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()


class StatefulSet(KubeObject):
    """Maintains a number of pods that have an identity."""

    spec: StatefulSetSpec = StatefulSetSpec()


class Deployment(KubeObject):
    """Maintains a ReplicaSet with the newest template."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class DaemonSetSpec(KubeStruct):
    """The selector and template of the pods."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSetStatus(KubeStruct):
    """The number of nodes that should have a pod."""

    desired_number_scheduled: Int32 = 0


class DaemonSet(KubeObject):
    """Maintains one pod on every node that the template admits."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(KubeStruct):
    """How many pods run at a time and succeed (None means 1 and any), and their template."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: str = ""
    template: PodTemplateSpec = PodTemplateSpec()


class Job(KubeObject):
    """Runs pods until enough of them have succeeded."""

    spec: JobSpec = JobSpec()


class JobTemplateSpec(KubeStruct):
    """The template from which a CronJob creates its jobs."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(KubeStruct):
    """The template of the jobs."""

    job_template: JobTemplateSpec = JobTemplateSpec()


class CronJob(KubeObject):
    """Creates jobs on a schedule."""

    spec: CronJobSpec = CronJobSpec()
