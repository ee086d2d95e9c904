"""The batch/v1 kinds: jobs.

Upstream: staging/src/k8s.io/api/batch/v1/types.go (v1.36)
Differs:  of the specification only the template and the number of pods are read, and no status.
"""

from kubesched.api.integers import Int32
from kubesched.api.meta import KubeObject, KubeStruct, ObjectMeta
from kubesched.api.pod import PodTemplateSpec


class JobSpec(KubeStruct):
    """How many pods run at a time and succeed (None means 1 and any), and their template."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
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
