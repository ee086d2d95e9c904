"""Finds the claims of a pod, and checks whether the pod may use them; the queueing hints for that.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/{resourceclaim,pod}.go;
          pkg/scheduler/framework/plugins/dynamicresources/{claims,dynamicresources}.go (v1.36)
Reads:    pod.spec.resourceClaims, pod.status.resourceClaimStatuses; ResourceClaims
Differs:  the claims of pod groups, an alpha feature, are not supported.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kubesched.api.conditions import find_condition, is_condition_true
from kubesched.api.core import Pod, PodResourceClaim
from kubesched.api.go_text import go_quote
from kubesched.api.meta import Condition, controller_of
from kubesched.api.resource import (
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubesched.framework.cluster_event import Filing

GetClaim = Callable[[str, str], ResourceClaim | None]
"""(namespace, name) -> claim, or None."""


class ClaimsNotReadyError(Exception):
    """The pod cannot be scheduled until its claims change; the text is upstream's."""


class BindingFailedError(Exception):
    """A device of the claim reports that it cannot become ready."""


def pod_resource_claims(pod: Pod, get: GetClaim) -> list[ResourceClaim]:
    """Return the claims of the pod in its order, without those that it does not need.

    Raises ClaimsNotReadyError.
    """
    claims: list[ResourceClaim] = []
    for entry in pod.spec.resource_claims:
        name, is_generated = claim_name(pod, entry)
        if name is None:
            continue
        namespace = pod.metadata.namespace
        claim = get(namespace, name)
        if claim is None:
            raise ClaimsNotReadyError(f'could not find ResourceClaim "{namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimsNotReadyError(f'resourceclaim "{name}" is being deleted')
        if is_generated and not is_owned_by(claim, pod):
            raise ClaimsNotReadyError(
                f"ResourceClaim {namespace}/{name} was not created for Pod {pod.metadata.key}"
                " (Pod is not owner)"
            )
        claims.append(claim)
    return claims


def claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """Return the claim's name (None if no claim is needed), and whether it was generated.

    Raises ClaimsNotReadyError.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise ClaimsNotReadyError(
            f'pod "{pod.metadata.key}", spec.resourceClaim "{entry.name}":'
            " none of the supported fields are set"
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise ClaimsNotReadyError(f'pod "{pod.metadata.key}": ResourceClaim not created yet')


def is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod is the claim's controller."""
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the claim is reserved for the pod."""
    return any(reference.uid == pod.metadata.uid for reference in claim.status.reserved_for)


def can_be_deallocated(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether no other pod uses the claim."""
    users = claim.status.reserved_for
    return not users or (len(users) == 1 and users[0].uid == pod.metadata.uid)


def consumer_reference(pod: Pod) -> ResourceClaimConsumerReference:
    """Return the pod's entry for `status.reservedFor`."""
    return ResourceClaimConsumerReference(
        resource="pods", name=pod.metadata.name, uid=pod.metadata.uid
    )


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Whether a device of the claim has binding conditions."""
    return any(result.binding_conditions for result in results_of(claim))


def is_ready_for_binding(claim: ResourceClaim) -> bool:
    """Whether all devices of the claim are ready.

    Raises BindingFailedError if a device cannot become ready.
    """
    if claim.status.allocation is None:
        return False
    for result in results_of(claim):
        if result.binding_conditions:
            _raise_failure(claim, result)
            if unmet_conditions(claim, result):
                return False
    return True


def unmet_conditions(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> list[str]:
    """Return the binding conditions of a device that its driver has not set to True."""
    found = _conditions_of(claim, result)
    return [name for name in result.binding_conditions if not is_condition_true(found, name)]


def results_of(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    """Return the devices allocated to the claim."""
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results


def _raise_failure(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> None:
    conditions = _conditions_of(claim, result)
    for name in result.binding_failure_conditions:
        found = find_condition(conditions, name)
        if found is not None and found.status == "True":
            raise BindingFailedError(
                f"device binding failed: claim={claim.metadata.name}, reason={found.reason},"
                f" message={go_quote(found.message)}"
            )


def _conditions_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> tuple[Condition, ...]:
    """Return what the driver reports about a device; nothing if it has not reported yet."""
    wanted = (result.driver, result.pool, result.device)
    for one in claim.status.devices:
        if (one.driver, one.pool, one.device) == wanted:
            return one.conditions
    return ()


# Queueing hints.


def after_claim_change(pod: Pod, old: object | None, new: object | None, get: GetClaim) -> bool:
    """Whether a claim was deallocated, or one of the pod's claims is new or changed its status."""
    if not isinstance(new, ResourceClaim):
        return True
    try:
        claims = pod_resource_claims(pod, get)
    except ClaimsNotReadyError:
        return False
    if _is_deallocation(old, new):
        return True
    if not any(claim.metadata.uid == new.metadata.uid for claim in claims):
        return False
    return not isinstance(old, ResourceClaim) or old.status != new.status


def _is_deallocation(old: object | None, new: ResourceClaim) -> bool:
    had_allocation = isinstance(old, ResourceClaim) and old.status.allocation is not None
    return had_allocation and new.status.allocation is None


def _claims_of(pod: Pod) -> Iterator[str]:
    """Yield the names of the pod's claims that are known."""
    for entry in pod.spec.resource_claims:
        try:
            name, _ = claim_name(pod, entry)
        except ClaimsNotReadyError:
            continue
        if name is not None:
            yield f"{pod.metadata.namespace}/{name}"


def _claim_of(old: object | None, new: object | None) -> Iterable[str] | None:
    """Return the name of the changed claim; None if it was deallocated, which may help any pod."""
    if not isinstance(new, ResourceClaim) or _is_deallocation(old, new):
        return None
    return (new.metadata.key,)


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
