"""The queueing hints of DynamicResources.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, EventsToRegister
          (v1.36)
Differs:  nothing.
"""

from collections.abc import Iterator
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.framework.cluster_event import Filing
from kubesched.plugins.dynamic_resources.claims import (
    ClaimsNotReadyError,
    GetClaim,
    claim_name,
    pod_resource_claims,
)


def after_claim_change(pod: Pod, old: object | None, new: object | None, get: GetClaim) -> bool:
    """Whether a claim was deallocated, or one of the pod's claims is new or changed its status."""
    if not isinstance(new, ResourceClaim):
        return True
    before = old if isinstance(old, ResourceClaim) else None
    try:
        claims = pod_resource_claims(pod, get)
    except ClaimsNotReadyError:
        return False
    if _is_deallocation(before, new):
        return True
    if not any(claim.metadata.uid == new.metadata.uid for claim in claims):
        return False
    return before is None or before.status != new.status


def _is_deallocation(before: ResourceClaim | None, new: ResourceClaim) -> bool:
    return (
        before is not None
        and before.status.allocation is not None
        and new.status.allocation is None
    )


def _claims_of(pod: Pod) -> Iterator[str]:
    """Yield the names of the pod's claims that are known."""
    for entry in pod.spec.resource_claims:
        try:
            name, _ = claim_name(pod, entry)
        except ClaimsNotReadyError:
            continue
        if name is not None:
            yield f"{pod.metadata.namespace}/{name}"


def _claim_of(old: object | None, new: object | None) -> str | None:
    """Return the changed claim; None if it was deallocated, which may help any pod."""
    if not isinstance(new, ResourceClaim):
        return None
    before = old if isinstance(old, ResourceClaim) else None
    if _is_deallocation(before, new):
        return None
    return new.metadata.key


BY_CLAIM: Final = Filing(_claims_of, _claim_of)
"""Indexes pods by their claims, which `after_claim_change` reads."""


def after_pod_change(pod: Pod, new: object | None, get: GetClaim) -> bool:
    """Whether all generated claims of the pod exist."""
    if not isinstance(new, Pod):
        return True
    if new.metadata.uid != pod.metadata.uid:
        return False
    try:
        pod_resource_claims(new, get)
    except ClaimsNotReadyError:
        return False
    return True
