"""The batch/v1 kinds: jobs.

Upstream: staging/src/k8s.io/api/batch/v1/types.go (v1.36)
Differs:  specification and status are not read.
"""

from kubesched.api.meta import KubeStruct, ObjectMeta


class Job(KubeStruct):
    """Runs pods until enough of them have succeeded."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class CronJob(KubeStruct):
    """Creates jobs on a schedule."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
