"""ParsedRequest: an exact request of a claim, or one alternative of a prioritized list.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go, requestAccessor (v1.36)
Reads:    claim.spec.devices.requests
Differs:  a missing mode or count gets the API server's default, ExactCount and 1.
"""

from dataclasses import dataclass

from kubesched.api.resource import (
    ALL,
    EXACT_COUNT,
    CapacityRequirements,
    DeviceRequest,
    DeviceSelector,
    DevicesOfClass,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubesched.api.tolerations import find_untolerated


@dataclass(frozen=True, slots=True, eq=False)
class ParsedRequest:
    """A request, or one alternative of a request.

    Attributes:
        name: The name; for an alternative, without that of its request.
        parent_name: The request's name if this is an alternative, else "".
        device_class_name: The class of the devices.
        mode: ExactCount or All.
        count: The number of devices, with mode ExactCount.
        admin_access: Whether devices in use may be allocated.
        selectors: Conditions on devices, besides those of the class.
        tolerations: Tolerations of device taints.
        capacity: The capacity to use of devices that allow several allocations.
    """

    name: str
    parent_name: str
    device_class_name: str
    mode: str
    count: int
    admin_access: bool
    selectors: tuple[DeviceSelector, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: CapacityRequirements | None

    @property
    def full_name(self) -> str:
        """`request`, or `request/alternative`."""
        return f"{self.parent_name}/{self.name}" if self.parent_name else self.name

    @property
    def base_name(self) -> str:
        """The name of the request in the claim, without alternative."""
        return self.parent_name or self.name

    def tolerates(self, taints: tuple[DeviceTaint, ...]) -> bool:
        """Whether the request tolerates the taints."""
        return find_untolerated(taints, self.tolerations) is None


def requests_of(claim: ResourceClaim) -> list[tuple[ParsedRequest, ...]]:
    """Return, per request of the claim, its alternatives in order; an exact request has one."""
    return [_alternatives(request) for request in claim.spec.devices.requests]


def _alternatives(request: DeviceRequest) -> tuple[ParsedRequest, ...]:
    if request.first_available:
        return tuple(_of(sub, sub.name, request.name) for sub in request.first_available)
    assert request.exactly is not None, "PreFilter rejects requests of unknown types"
    return (_of(request.exactly, request.name, ""),)


def _of(spec: DevicesOfClass, name: str, parent_name: str) -> ParsedRequest:
    mode = spec.allocation_mode or EXACT_COUNT
    return ParsedRequest(
        name=name,
        parent_name=parent_name,
        device_class_name=spec.device_class_name,
        mode=mode,
        count=spec.count or (0 if mode == ALL else 1),
        admin_access=isinstance(spec, ExactDeviceRequest) and bool(spec.admin_access),
        selectors=spec.selectors,
        tolerations=spec.tolerations,
        capacity=spec.capacity,
    )
