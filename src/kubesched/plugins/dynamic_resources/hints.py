"""Which changes in the cluster make a waiting pod worth another try.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, EventsToRegister
          (v1.36)
Differs:  nothing.
"""

from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.plugins.dynamic_resources.claims import (
    ClaimsNotReadyError,
    GetClaim,
    pod_resource_claims,
)


def after_claim_change(pod: Pod, old: object | None, new: object | None, get: GetClaim) -> bool:
    """A claim was deallocated, or one of the pod's came or changed its status."""
    if not isinstance(new, ResourceClaim):
        return True
    before = old if isinstance(old, ResourceClaim) else None
    try:
        claims = pod_resource_claims(pod, get)
    except ClaimsNotReadyError:
        return False
    if (
        before is not None
        and before.status.allocation is not None
        and new.status.allocation is None
    ):
        return True
    if not any(claim.metadata.uid == new.metadata.uid for claim in claims):
        return False
    return before is None or before.status != new.status


def after_pod_change(pod: Pod, new: object | None, get: GetClaim) -> bool:
    """The pod's generated claims are all there."""
    if not isinstance(new, Pod):
        return True
    if new.metadata.uid != pod.metadata.uid:
        return False
    try:
        pod_resource_claims(new, get)
    except ClaimsNotReadyError:
        return False
    return True
