"""ClaimClient reads and writes ResourceClaims for dynamic resource allocation.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
          extendeddynamicresources.go (v1.36)
Differs:  each update begins with a GET, see `client.whole_objects`; finalizers that the server
          refuses in JSON are written again in protobuf, which upstream always uses.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError
from kubesched.api.resource import FINALIZER, ResourceClaim, ResourceClaimStatus
from kubesched.api.scheme import kind_of
from kubesched.client.requests import STRATEGIC_MERGE_PATCH, Request, Rest, path_of
from kubesched.client.whole_objects import Plain, WholeObjects, part_of, set_or_remove

_CLAIMS: Final = kind_of(ResourceClaim)
_DELETE_TRIES: Final = 5
_RETRY_SECONDS: Final = 0.01
_JITTER: Final = 0.1


class ClaimClient:
    """Reads and writes claims. All methods raise `ApiError` if the request fails."""

    def __init__(self, rest: Rest, random: Random) -> None:
        """Set up.

        Args:
            rest: Sends the requests.
            random: Spreads retries.
        """
        self._rest = rest
        self._random = random
        self._objects = WholeObjects(rest)

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Return a claim as stored."""
        return await self._objects.get(ResourceClaim, namespace, name)

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim, whose name the server may generate; return it as stored."""
        plain: Plain = msgspec.to_builtins(claim)
        for name in ("uid", "resourceVersion"):
            part_of(plain, "metadata").pop(name, None)
        plain.pop("status", None)
        return await self._objects.create(ResourceClaim, claim.metadata.namespace, plain)

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Write `metadata.finalizers`; return the claim as stored."""
        return await self._set_finalizers(claim, list(claim.metadata.finalizers))

    async def _set_finalizers(self, claim: ResourceClaim, finalizers: list[str]) -> ResourceClaim:
        def change(item: Plain) -> None:
            set_or_remove(part_of(item, "metadata"), "finalizers", finalizers)

        try:
            return await self._objects.update(ResourceClaim, claim.metadata, change)
        except ApiError as error:
            if error.reason != "Invalid":
                raise
            refusal = error
        # The likely cause: a driver's parameters, which JSON does not show byte by byte.
        try:
            return await self._objects.set_finalizers(ResourceClaim, claim.metadata, finalizers)
        except ApiError as error:
            if error.reason == "Conflict":
                raise
            raise refusal from None

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the status; return the claim as stored."""

        def change(item: Plain) -> None:
            _set_status(part_of(item, "status"), claim.status)

        return await self._objects.update(ResourceClaim, claim.metadata, change, "status")

    async def release(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove a pod from `status.reservedFor`, even if the claim has changed."""
        patch = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod.metadata.uid}]},
        }
        path = path_of(_CLAIMS, claim.metadata.namespace, claim.metadata.name, "status")
        body = msgspec.json.encode(patch)
        await self._rest.send(
            Request(method="PATCH", path=path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        )

    async def delete(self, claim: ResourceClaim) -> None:
        """Remove the scheduler's finalizer from a claim and delete it; retry on conflicts."""
        namespace, name = claim.metadata.namespace, claim.metadata.name
        for tries_left in reversed(range(_DELETE_TRIES)):
            try:
                others = [one for one in claim.metadata.finalizers if one != FINALIZER]
                await self._set_finalizers(claim, others)
                break
            except ApiError as error:
                if error.reason != "Conflict" or not tries_left:
                    raise
            await asyncio.sleep(_RETRY_SECONDS * (1 + _JITTER * self._random.random()))
            claim = await self.get(namespace, name)
        await self._objects.delete(ResourceClaim, namespace, name)


def _set_status(stored: Plain, status: ResourceClaimStatus) -> None:
    """Write a status into the stored one, which may have fields that we do not decode."""
    _set_allocation(stored, status)
    set_or_remove(stored, "reservedFor", msgspec.to_builtins(status.reserved_for))
    if not status.devices:
        stored.pop("devices", None)


def _set_allocation(stored: Plain, status: ResourceClaimStatus) -> None:
    if status.allocation is None:
        stored.pop("allocation", None)
        return
    allocation = msgspec.to_builtins(status.allocation)
    # An existing allocation is the same one; only its timestamp may be missing.
    there = stored.setdefault("allocation", allocation)
    if status.allocation.allocation_timestamp is not None:
        there.setdefault("allocationTimestamp", status.allocation.allocation_timestamp)
