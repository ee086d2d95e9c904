"""The coordination.k8s.io/v1 kinds: leases.

Upstream: staging/src/k8s.io/api/coordination/v1/types.go (v1.36)
Differs:  nothing.
"""

from kubesched.api.integers import Int32
from kubesched.api.meta import KubeObject, KubeStruct


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
