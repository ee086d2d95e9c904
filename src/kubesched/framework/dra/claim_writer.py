"""What dynamic resource allocation asks of an API server.

Invariants: the methods that are not async only note down what is to be done; they never fail.
"""

from typing import Protocol

from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.resource import ResourceClaim


class ApiConflictError(Exception):
    """The object changed since it was read; read again and retry."""


class ApiRefusedError(Exception):
    """The API server refused for any other reason; the text is its own."""


class ClaimWriter(Protocol):
    """Writes ResourceClaims, and the one field of a pod's status that is about them.

    Objects here hold only the fields that scheduling reads, so an implementation writes the named
    fields and leaves the others alone; `metadata.resourceVersion` guards against lost updates.
    The async methods raise ApiConflictError or ApiRefusedError.
    """

    def now(self) -> str:
        """The time of day, RFC 3339."""
        ...

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Emit the pod's event `BindingConditionsPending`."""
        ...

    def deallocate(self, claim: ResourceClaim) -> None:
        """Update the status to this claim's, which has no allocation; as soon as possible."""
        ...

    def delete(self, claim: ResourceClaim) -> None:
        """Take the scheduler's finalizer off the claim and delete it; as soon as possible."""
        ...

    def release(self, claim: ResourceClaim, pod: Pod) -> None:
        """Take the pod out of the claim's `status.reservedFor`; as soon as possible."""
        ...

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Read the claim's newest version."""
        ...

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim, whose name is generated; return it as stored."""
        ...

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Update `metadata.finalizers`; return the claim as stored."""
        ...

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Update the status; return the claim as stored."""
        ...

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set `status.extendedResourceClaimStatus` of the pod."""
        ...
