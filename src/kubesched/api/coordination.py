"""The coordination.k8s.io/v1 kinds: who leads.

Upstream: staging/src/k8s.io/api/coordination/v1/types.go (v1.36)
Differs:  nothing.
"""

from kubesched.api.meta import Int32, KubeStruct, ObjectMeta


class LeaseSpec(KubeStruct):
    """Who holds the lease, since when, for how long. Times with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeStruct):
    """A claim that somebody holds for a while."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
