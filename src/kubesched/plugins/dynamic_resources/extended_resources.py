"""Extended resources backed by devices: the special claim of a pod that requests them.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go (v1.36)
Reads:    pod requests, DeviceClasses, ResourceClaims of earlier attempts; nodes.allocatable
Differs:  until the claim is created, its uid is derived from the pod's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.core import Container, ContainerExtendedResourceRequest, Pod, PodSpec
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
class NodeClaim:
    """The special claim as some nodes need it.

    Attributes:
        claim: The claim, with the requests that devices must satisfy; None if there is none.
        mappings: Which request provides which container's resource.
    """

    claim: ResourceClaim | None = None
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


def requested_scalars(requests: Mapping[str, int]) -> dict[str, int]:
    """Return the requests above 0 that devices could back."""
    return {
        name: amount
        for name, amount in requests.items()
        if amount != 0 and is_dra_extended_resource_name(name)
    }


def new_special_claim(pod: Pod) -> ResourceClaim:
    """Return the pod's special claim before it is created."""
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


def claim_on_node(
    special: ResourceClaim, pod: Pod, resources: Iterable[str], classes: DeviceClasses
) -> NodeClaim:
    """Return the special claim for nodes on which devices must provide `resources`."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = classes.by_resource.get(resource)
        if device_class is not None:
            _add_requests(pod.spec, resource, device_class.metadata.name, requests, mappings)
    requests.sort(key=lambda request: request.name)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return NodeClaim(replace(special, spec=spec), tuple(mappings))


def _add_requests(
    spec: PodSpec,
    resource: str,
    class_name: str,
    requests: list[DeviceRequest],
    mappings: list[ContainerExtendedResourceRequest],
) -> None:
    """Add the requests for one resource, and which of them provides it to which container.

    Containers that run for the pod's whole life get devices of their own. Init containers run
    before, one after another, so they use the devices of later containers and share the rest.
    """
    containers = (*spec.init_containers, *spec.containers)
    wanted = [_whole_amount(container, resource) for container in containers]
    # Container -> its request: for the pod's whole life, and until the container ends.
    lasting: dict[int, DeviceRequest] = {}
    passing: dict[int, DeviceRequest] = {}
    uses: list[tuple[int, str]] = []

    def request(at: int, count: int) -> DeviceRequest:
        position = sorted(containers[at].resources.requests).index(resource)
        name = f"container-{at}-request-{position}"
        uses.append((at, name))
        exactly = ExactDeviceRequest(
            device_class_name=class_name, allocation_mode=EXACT_COUNT, count=count
        )
        return DeviceRequest(name=name, exactly=exactly)

    starting = [
        at for at, each in enumerate(spec.init_containers) if each.restart_policy != "Always"
    ]
    for at, count in enumerate(wanted):
        if count and at not in starting:
            lasting[at] = request(at, count)
    for at in starting:
        missing = wanted[at]
        for later, reusable in lasting.items():
            if later > at and missing > 0:
                missing -= _count(reusable)
                uses.append((at, reusable.name))
        if missing > 0:
            passing[at] = request(at, missing)
    # The largest of the passing requests suffices for all of them.
    largest = [max(passing.values(), key=_count)] if passing else []
    shared = {each.name: largest[0].name for each in passing.values()}
    requests += (*largest, *lasting.values())
    mappings += (
        ContainerExtendedResourceRequest(
            container_name=containers[at].name,
            resource_name=resource,
            request_name=shared.get(name, name),
        )
        for at, name in uses
    )


def _whole_amount(container: Container, resource: str) -> int:
    """Return the container's request; 0 if it has none or it is not whole."""
    amount = nano_value(container.resources.requests.get(resource, 0))
    return amount // NANO if amount % NANO == 0 else 0


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
