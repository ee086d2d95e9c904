"""The server of clusters in which nothing takes time."""

from __future__ import annotations

import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from kubesched.simulator.instant_server import InstantServer
from kubesched.testing.builders import make_pod


@pytest.mark.parametrize("users", [("p",), ("p", "q")])
@pytest.mark.parametrize("is_special", [False, True])
def test_a_deleted_pod_releases_its_claims(users: tuple[str, ...], *, is_special: bool) -> None:
    """With the last user, the devices too; also the claim for extended resources."""
    server = InstantServer(lambda: 0.0)
    entry = {"name": "c", "resourceClaimName": "c"}
    spec = {} if is_special else {"resourceClaims": [entry]}
    special = {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}
    server.create(make_pod("p", uid="p", spec=spec, status=special if is_special else {}))
    reserved = tuple(ResourceClaimConsumerReference(uid=user) for user in users)
    used = ResourceClaimStatus(allocation=AllocationResult(), reserved_for=reserved)
    metadata = ObjectMeta(name="c", namespace="default")
    server.create(ResourceClaim(metadata=metadata, status=used))
    server.delete_pod("default", "p")
    claim = server.find(ResourceClaim, "default", "c")
    assert claim is not None
    assert [user.uid for user in claim.status.reserved_for] == list(users[1:])
    assert (claim.status.allocation is None) == (len(users) == 1)
