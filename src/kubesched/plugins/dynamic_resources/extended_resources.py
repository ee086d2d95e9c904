"""Extended resources backed by devices: the special claim of a pod that requests them.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go (v1.36)
Reads:    pod requests, DeviceClasses, ResourceClaims of earlier attempts; nodes.allocatable
Differs:  until the claim is created, its uid is derived from the pod's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.core import Container, ContainerExtendedResourceRequest, Pod
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.quantity import NANO, nano_value
from kubesched.api.resource import (
    EXACT_COUNT,
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubesched.framework.dra import DeviceClasses, is_dra_extended_resource_name

IN_MEMORY_NAME = "<extended-resources>"
"""The special claim's name until it is created; not a valid object name."""


@dataclass(frozen=True, slots=True)
class NodeRequests:
    """The requests for resources that a node's allocatable amounts lack.

    Attributes:
        requests: The requests of the special claim.
        mappings: Which request provides which container's resource.
    """

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def requested_scalars(requests: Mapping[str, int]) -> dict[str, int]:
    """Return the requests above 0 that devices could back."""
    return {
        name: amount
        for name, amount in requests.items()
        if amount != 0 and is_dra_extended_resource_name(name)
    }


def special_claim(
    pod: Pod, scalars: Iterable[str], classes: DeviceClasses, claims: Iterable[ResourceClaim]
) -> ResourceClaim | None:
    """Return the pod's special claim, existing or new; None if the pod needs none."""
    if not any(classes.backs(name) for name in scalars):
        return None
    for claim in claims:
        if _is_special_claim_of(claim, pod):
            return claim
    return _new_special_claim(pod)


def _is_special_claim_of(claim: ResourceClaim, pod: Pod) -> bool:
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
        return False
    return any(
        owner.controller and owner.name == pod.metadata.name and owner.uid == pod.metadata.uid
        for owner in claim.metadata.owner_references
    )


def _new_special_claim(pod: Pod) -> ResourceClaim:
    metadata = pod.metadata
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid, controller=True
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace=metadata.namespace,
            name=IN_MEMORY_NAME,
            uid=f"{metadata.uid}{IN_MEMORY_NAME}",
            generate_name=f"{metadata.name}-extended-resources-",
            owner_references=(owner,),
            annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
        )
    )


def is_in_memory(claim: ResourceClaim) -> bool:
    """Whether the special claim has not been created yet."""
    return claim.metadata.name == IN_MEMORY_NAME


def with_requests(claim: ResourceClaim, requests: tuple[DeviceRequest, ...]) -> ResourceClaim:
    """Return the special claim with the requests for a node."""
    return replace(claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)))


def node_requests(pod: Pod, resources: Iterable[str], classes: DeviceClasses) -> NodeRequests:
    """Return the requests with which devices provide `resources` to the pod's containers."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    init_count = len(pod.spec.init_containers)
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = classes.by_resource.get(resource)
        if device_class is not None:
            one = _Resource(containers, init_count, resource, device_class.metadata.name)
            requests += one.requests()
            mappings += one.mappings
    requests.sort(key=lambda request: request.name)
    return NodeRequests(tuple(requests), tuple(mappings))


class _Resource:
    """The requests for one resource.

    Containers that run for the pod's whole life get devices of their own. Init containers run
    before, one after another, so they use the devices of later containers and share the rest.
    """

    def __init__(
        self, containers: Sequence[Container], init_count: int, resource: str, class_name: str
    ) -> None:
        self._containers = containers
        self._resource = resource
        self._class_name = class_name
        self._long_lived = [
            at >= init_count or container.restart_policy == "Always"
            for at, container in enumerate(containers)
        ]
        self.mappings: list[ContainerExtendedResourceRequest] = []

    def requests(self) -> list[DeviceRequest]:
        """Return the requests, and fill `mappings`."""
        long_lived: list[DeviceRequest | None] = [None] * len(self._containers)
        for at, is_long_lived in enumerate(self._long_lived):
            if is_long_lived:
                long_lived[at], mapped = self._request(at, ())
                self.mappings += mapped
        largest, short_mapped = self._short_lived(long_lived)
        self.mappings += short_mapped
        return [one for one in (largest, *long_lived) if one is not None]

    def _short_lived(
        self, long_lived: Sequence[DeviceRequest | None]
    ) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
        """Return the largest of the init containers' requests, which suffices for all."""
        largest: DeviceRequest | None = None
        names: set[str] = set()
        mapped: list[ContainerExtendedResourceRequest] = []
        for at, is_long_lived in enumerate(self._long_lived):
            if is_long_lived:
                continue
            request, own = self._request(at, long_lived[at:])
            mapped += own
            if request is not None:
                names.add(request.name)
                if largest is None or _count(largest) < _count(request):
                    largest = request
        if largest is None:
            return None, mapped
        return largest, [
            replace(one, request_name=largest.name) if one.request_name in names else one
            for one in mapped
        ]

    def _request(
        self, at: int, reusable: Sequence[DeviceRequest | None]
    ) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
        """Return a container's request beyond the reusable ones, and the requests it uses."""
        container = self._containers[at]
        wanted = self._whole_amount(container)
        mapped: list[ContainerExtendedResourceRequest] = []
        if wanted == 0:
            return None, mapped
        found = 0
        for request in reusable:
            if request is None:
                continue
            found += _count(request)
            mapped.append(self._mapping(container, request.name))
            if found >= wanted:
                return None, mapped
        position = sorted(container.resources.requests).index(self._resource)
        name = f"container-{at}-request-{position}"
        mapped.append(self._mapping(container, name))
        exactly = ExactDeviceRequest(
            device_class_name=self._class_name,
            allocation_mode=EXACT_COUNT,
            count=wanted - found,
        )
        return DeviceRequest(name=name, exactly=exactly), mapped

    def _whole_amount(self, container: Container) -> int:
        """Return the container's request; 0 if it has none or it is not whole."""
        amount = nano_value(container.resources.requests.get(self._resource, 0))
        return amount // NANO if amount % NANO == 0 else 0

    def _mapping(self, container: Container, request: str) -> ContainerExtendedResourceRequest:
        return ContainerExtendedResourceRequest(
            container_name=container.name, resource_name=self._resource, request_name=request
        )


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
