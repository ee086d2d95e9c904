"""ClaimWriter: the API calls of dynamic resource allocation.

Invariants: methods called `..._soon` only start a write in the background, and never raise.
"""

from typing import Protocol

from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.resource import ResourceClaim


class ClaimWriter(Protocol):
    """Writes ResourceClaims and the pod status field for extended resource claims.

    The objects hold only the fields that scheduling reads, so an implementation must write only
    the named fields. `metadata.resourceVersion` guards against lost updates.
    The async methods raise ApiError.
    """

    def now(self) -> str:
        """Return the current time in RFC 3339 format."""

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Emit the pod's event `BindingConditionsPending`."""

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Start to write the status of this claim, which has no allocation."""

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Start to remove the scheduler's finalizer from the claim and to delete it."""

    def release_soon(self, claim: ResourceClaim, pod: Pod) -> None:
        """Start to remove the pod from the claim's `status.reservedFor`."""

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Return the claim's newest version."""

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim, with a generated name; return the stored claim."""

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Update `metadata.finalizers`; return the stored claim."""

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Update the status; return the stored claim."""

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set `status.extendedResourceClaimStatus` of the pod."""
