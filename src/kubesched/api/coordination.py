"""The coordination.k8s.io/v1 kinds: leases.

Upstream: staging/src/k8s.io/api/coordination/v1/types.go (v1.36)
Differs:  no field is read here; leader election reads the JSON.
"""

from kubesched.api.meta import KubeObject


class Lease(KubeObject):
    """A lock with a holder and an expiry, for leader election."""
