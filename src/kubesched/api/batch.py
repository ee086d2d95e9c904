"""The batch/v1 kinds: what runs pods to their end.

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
    """Makes jobs at set times."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
