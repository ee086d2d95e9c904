"""Write allocations and reservations into claims, and wait until devices are ready.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, bindClaim, PreBind
          (v1.36)
Differs:  pods that share a claim write it one after another, each based on the version before;
          upstream, they run into conflicts, of which the fifth fails the pod. If another pod of
          the group has allocated the same devices to the claim meanwhile, the claim is reserved;
          upstream, the pod fails and is retried.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.errors import ApiError
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import FINALIZER, AllocationResult, ResourceClaim
from kubesched.api.times import parse_time
from kubesched.framework.dra.claim_tracker import ClaimTracker
from kubesched.framework.services import BindingConditionsStatus, ClaimWriter, PluginObserver
from kubesched.plugins.dynamic_resources.claims import (
    BindingFailedError,
    consumer_reference,
    has_binding_conditions,
    is_ready_for_binding,
    is_reserved_for,
    results_of,
)
from kubesched.plugins.dynamic_resources.extended_resources import NodeClaim, is_in_memory
from kubesched.plugins.dynamic_resources.state import ClaimInformation
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import uid_of

_CONFLICT = "Conflict"
_ATTEMPTS = 5
_RETRY_SECONDS = 0.01
_POLL_SECONDS = 5.0
_NANOSECONDS = 1_000_000_000


class ClaimBindingError(Exception):
    """A claim could not be bound; the pod will be retried."""


@dataclass(slots=True, eq=False)
class ClaimBinder:
    """Binds the claims of one pod."""

    _writer: ClaimWriter
    _tracker: ClaimTracker
    _objects: Objects
    _claims: Sequence[ClaimInformation]
    _special: NodeClaim
    _pod: Pod
    _node_name: str
    _observer: PluginObserver
    _binding_conditions: bool

    async def bind(self) -> None:
        """Write all claims that are not reserved for the pod yet. Raises ClaimBindingError."""
        for one in self._claims:
            if is_reserved_for(one.claim, self._pod):
                continue
            try:
                await self._bind(one)
            except ApiError as error:
                raise ClaimBindingError(str(error)) from error

    async def _bind(self, one: ClaimInformation) -> None:
        if one.is_special and one.reserved is None and not one.claim.spec.devices.requests:
            # The node's allocatable amounts include the resources.
            return
        uids = {one.claim.metadata.uid, one.uid}
        # If this write fails, another pod of the group may still succeed.
        user: str | None = uid_of(self._pod)
        try:
            if one.is_special and is_in_memory(one.claim):
                one.claim = await self._create()
                self._tracker.assume(one.claim, is_created=True)
            async with self._tracker.turn(one.claim.metadata.uid):
                one.claim = await self._write(self._newest(one.claim), one.reserved)
                self._tracker.assume(one.claim)
            user = None
        finally:
            if one.reserved is not None:
                for uid in uids:
                    self._tracker.remove_pending(uid, user)
        if one.is_special:
            await self._write_pod_status(one.claim)

    def _newest(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim as the previous writer left it."""
        namespace, name = claim.metadata.namespace, claim.metadata.name
        known = self._tracker.get(self._objects, namespace, name)
        is_same = known is not None and known.metadata.uid == claim.metadata.uid
        return known if known is not None and is_same else claim

    async def _create(self) -> ResourceClaim:
        special = self._special.claim
        assert special is not None, "a node on which devices provide resources needs the claim"
        metadata: ObjectMeta = replace(special.metadata, name="", uid="")
        is_success = False
        try:
            created = await self._writer.create(replace(special, metadata=metadata))
            is_success = True
        except ApiError as error:
            raise ClaimBindingError(
                f"create claim for extended resources {special.metadata.namespace}/: {error}"
            ) from error
        finally:
            self._observer.resource_claim_create_requested(is_success=is_success)
        return created

    async def _write_pod_status(self, claim: ResourceClaim) -> None:
        key = self._pod.metadata.key
        if not self._special.mappings:
            # As upstream: other claims were allocated, and the node offers the resources itself.
            raise ClaimBindingError(
                f"nil or empty request mappings, no update of pod {key} ExtendedResourceClaimStatus"
            )
        status = PodExtendedResourceClaimStatus(
            request_mappings=self._special.mappings, resource_claim_name=claim.metadata.name
        )
        try:
            await self._writer.patch_extended_resource_claim_status(self._pod, status)
        except ApiError as error:
            raise ClaimBindingError(
                f"update pod {key} ExtendedResourceClaimStatus: {error}"
            ) from error

    async def _write(
        self, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> ResourceClaim:
        """Write allocation and reservation; after a conflict, retry with the newest version."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_RETRY_SECONDS)
                claim = await self._writer.get(claim.metadata.namespace, claim.metadata.name)
            try:
                return await self._write_once(claim, allocation)
            except ApiError as error:
                conflict = error
        raise conflict

    async def _write_once(
        self, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> ResourceClaim:
        key = claim.metadata.key
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimBindingError(f"claim {key} got deleted in the meantime")
        current = claim.status.allocation
        if allocation is not None:
            if current is not None and _devices_of(current) != _devices_of(allocation):
                raise ClaimBindingError(f"claim {key} got allocated elsewhere in the meantime")
            if FINALIZER not in claim.metadata.finalizers:
                update = self._writer.update(with_finalizer(claim))
                claim = await _worded(f"add finalizer to claim {key}", update)
            current = current or allocation
        if self._binding_conditions:
            if current is None:
                raise ClaimBindingError(f"claim {key} got deallocated elsewhere in the meantime")
            if current.allocation_timestamp is None:
                current = replace(current, allocation_timestamp=self._writer.now())
        users = (*claim.status.reserved_for, consumer_reference(self._pod))
        status = replace(claim.status, allocation=current, reserved_for=users)
        what = "reservation" if allocation is None else "allocation and reservation"
        update = self._writer.update_status(replace(claim, status=status))
        return await _worded(f"add {what} to claim {key}", update)

    # Waiting for devices.

    async def wait(self, timeout_seconds: float) -> None:
        """Wait until all devices are ready. Raises ClaimBindingError on failure or timeout."""
        self._writer.announce_wait(self._pod, self._node_name)
        now = asyncio.get_running_loop().time
        began, status = now(), BindingConditionsStatus.ERROR
        try:
            await self._poll(timeout_seconds)
            status = BindingConditionsStatus.SUCCESS
        except TimeoutError as error:
            status = BindingConditionsStatus.TIMEOUT
            raise ClaimBindingError(f"device binding timeout: {error}") from error
        except BindingFailedError as error:
            status = BindingConditionsStatus.FAILURE
            raise ClaimBindingError(str(error)) from error
        finally:
            self._report_wait(status, now() - began)

    async def _poll(self, timeout_seconds: float) -> None:
        """Look at the claims until all are ready, as no event reports it. Raises TimeoutError.

        As upstream does most of the time, look once more if a look is due at the timeout itself.
        """
        now = asyncio.get_running_loop().time
        began, due = now(), 0.0
        while not self._read_claims(timeout_seconds):
            due += _POLL_SECONDS
            await asyncio.sleep(began + min(due, timeout_seconds) - now())
            if due > timeout_seconds:
                raise TimeoutError("context deadline exceeded")

    def _report_wait(self, status: BindingConditionsStatus, seconds: float) -> None:
        for one in self._claims:
            for result in results_of(one.claim):
                self._observer.binding_conditions_awaited(result.driver, status, seconds)
                if result.binding_conditions:
                    self._observer.binding_conditions_used(result.driver, status)

    def _read_claims(self, timeout_seconds: float) -> bool:
        """Read the claims again; return whether all are ready for binding."""
        for one in self._claims:
            namespace, name = one.claim.metadata.namespace, one.claim.metadata.name
            claim = self._tracker.get(self._objects, namespace, name)
            if claim is None:
                raise ClaimBindingError(f'could not find ResourceClaim "{namespace}/{name}"')
            one.claim = claim
            if not is_ready_for_binding(claim):
                if is_timed_out(claim, timeout_seconds, self._writer.now):
                    raise TimeoutError(f"claim={name}")
                return False
        return True


def _devices_of(allocation: AllocationResult) -> list[tuple[str, ...]]:
    """Return the devices, and shares of devices, of an allocation."""
    return [
        (one.request, one.driver, one.pool, one.device, one.share_id or "")
        for one in allocation.devices.results
    ]


async def _worded(what: str, call: Awaitable[ResourceClaim]) -> ResourceClaim:
    """Await a call; on failure raise ClaimBindingError with `what`, after a conflict ApiError."""
    try:
        return await call
    except ApiError as error:
        if error.reason == _CONFLICT:
            raise
        raise ClaimBindingError(f"{what}: {error}") from error


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim with the finalizer that protects it while it has devices."""
    metadata = claim.metadata
    if FINALIZER in metadata.finalizers:
        return claim
    return replace(claim, metadata=replace(metadata, finalizers=(*metadata.finalizers, FINALIZER)))


def is_timed_out(claim: ResourceClaim, timeout_seconds: float, now: Callable[[], str]) -> bool:
    """Whether the time for the claim's devices to become ready has passed."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    if not has_binding_conditions(claim):
        return False
    deadline = parse_time(allocation.allocation_timestamp) + timeout_seconds * _NANOSECONDS
    # The clock shows whole seconds, so the deadline has passed once it shows that second.
    return deadline <= parse_time(now())
