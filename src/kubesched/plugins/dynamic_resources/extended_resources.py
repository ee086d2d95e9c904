"""Extended resources backed by devices: the special claim of a pod that requests them.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go (v1.36)
Reads:    pod requests, DeviceClasses, ResourceClaims of earlier attempts; nodes.allocatable
Differs:  until the claim is created, its uid is derived from the pod's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kubesched.api.core import Container, ContainerExtendedResourceRequest, Node, Pod, PodSpec
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.quantity import NANO, nano_value, value
from kubesched.api.resource import (
    EXACT_COUNT,
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubesched.framework.dra.devices import DeviceClasses, is_dra_extended_resource_name
from kubesched.framework.status import Status, unresolvable
from kubesched.snapshot.node_table import NodeTable

_LEFTOVER: Final = unresolvable("cannot schedule extended resource claim")
_CANNOT_FIT: Final = unresolvable("cannot fit resource")

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


NO_CLAIM: Final = NodeClaim()


@dataclass(frozen=True, slots=True)
class ExtendedResources:
    """The extended resources that a pod requests, which a node offers or its devices provide.

    Attributes:
        pod: The pod.
        names: The requested resources, sorted.
        classes: The device classes, of which one at least backs one of the resources.
        claim: The special claim; with requests if it was created in an earlier attempt.
    """

    pod: Pod
    names: Sequence[str]
    classes: DeviceClasses
    claim: ResourceClaim

    def of_devices(self, node: Node) -> tuple[str, ...] | Status:
        """Return the resources that devices must provide, or the node's final status."""
        if self.claim.spec.devices.requests:
            return _LEFTOVER
        backed: list[str] = []
        for name in self.names:
            offered = node.status.allocatable.get(name)
            if self.classes.backs(name) and (offered is None or value(offered) == 0):
                backed.append(name)
            elif offered is None:
                return _CANNOT_FIT
        return tuple(backed)

    def usually_of_devices(self) -> tuple[str, ...] | None:
        """Return the resources that devices must provide on most nodes; None if no node fits.

        Most nodes offer none of the resources that devices back, and all of the others.
        """
        if self.claim.spec.devices.requests:
            return None
        return tuple(filter(self.classes.backs, self.names))

    def is_unusual(self, nodes: NodeTable) -> NDArray[np.bool_]:
        """Return, as bool per row, whether other resources are needed than on most nodes."""
        found = np.zeros(len(nodes), np.bool_)
        for name in self.names:
            offers = nodes.allocatable_of(name) != 0
            found |= offers if self.classes.backs(name) else ~offers
        return found

    def not_offered_on(self, node: Node) -> list[str]:
        """Return the resources that neither the node nor a device class offers."""
        offered = node.status.allocatable
        return [name for name in self.names if name not in offered and not self.classes.backs(name)]

    def claim_for(self, resources: Sequence[str]) -> NodeClaim:
        """Return the special claim for nodes on which devices must provide `resources`."""
        requests: list[DeviceRequest] = []
        mappings: list[ContainerExtendedResourceRequest] = []
        for resource in resources:
            class_name = self.classes.by_resource[resource].metadata.name
            _add_requests(self.pod.spec, resource, class_name, requests, mappings)
        requests.sort(key=lambda request: request.name)
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
        return NodeClaim(replace(self.claim, spec=spec), tuple(mappings))


def requested_resources(requests: Mapping[str, int]) -> list[str]:
    """Return the requested resources that devices could back, sorted."""
    return sorted(
        name
        for name, amount in requests.items()
        if amount != 0 and is_dra_extended_resource_name(name)
    )


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
    # Container -> its request for the pod's whole life.
    lasting: dict[int, DeviceRequest] = {}
    # Requests until a container ends, with their counts.
    passing: list[tuple[int, DeviceRequest]] = []
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
                missing -= wanted[later]
                uses.append((at, reusable.name))
        if missing > 0:
            passing.append((missing, request(at, missing)))
    # The largest of the passing requests suffices for all of them.
    largest = [max(passing, key=itemgetter(0))[1]] if passing else []
    shared = {each.name: largest[0].name for _, each in passing}
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
