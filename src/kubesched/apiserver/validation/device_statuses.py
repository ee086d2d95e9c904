"""What the status of a pod says of devices: those it was given for resources, and how they are.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodStatusUpdate, v1.36)
Differs:  messages about the health of devices are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.names import dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain

_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
_CLAIM: Final = "claim:"
_NO_CLAIM: Final = (
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' "
    "or 'claim:<claimName>' if request is empty"
)
_NO_REQUEST: Final = "must match one of the container's resource requests"
_NO_CONTAINER: Final = (
    "must match the name of an entry in spec.initContainers.name or spec.containers.name"
)
_NO_RESOURCE: Final = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests "
    "or spec.containers.resources.requests"
)


def extended_claim_faults(status: Plain | None, spec: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with the claim that was made for a pod's extended resources."""
    if status is None:
        return
    path, mappings = "status.extendedResourceClaimStatus", status.get("requestMappings") or ()
    if not mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    containers = {
        one["name"]: one["resources"].get("requests") or {}
        for kind in ("initContainers", "containers")
        for one in spec.get(kind) or ()
    }
    names = ("containerName", "resourceName", "requestName")
    seen = []
    for index, mapping in enumerate(mappings):
        own_path = f"{path}.requestMappings[{index}]"
        container, resource, request = key = [mapping.get(name, "") for name in names]
        if container not in containers:
            yield invalid(f"{own_path}.containerName", container, _NO_CONTAINER)
        elif resource not in containers[container]:
            yield invalid(f"{own_path}.resourceName", resource, _NO_RESOURCE)
        yield from each(f"{path}.requestName", request, dns_label(request))
        if key in seen:
            for name, value in zip(names, key, strict=True):
                yield duplicate(f"{own_path}.{name}", value)
        seen.append(key)
    name = status.get("resourceClaimName", "")
    if name:
        yield from each(f"{path}.resourceClaimName", name, dns_subdomain(name))
    else:
        yield required(f"{path}.resourceClaimName")


def health_faults(status: Plain, spec: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with what containers say of the devices they were given."""
    for name, kind in (
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
    ):
        containers = {one["name"]: one["resources"] for one in spec.get(kind) or ()}
        for index, container in enumerate(status.get(name) or ()):
            resources = containers.get(container["name"])
            for number, device in enumerate(container.get("allocatedResourcesStatus") or ()):
                path = f"status.{name}[{index}].allocatedResourcesStatus[{number}]"
                if resources is not None:
                    yield from _name_faults(device["name"], resources, f"{path}.name")
                yield from _device_faults(device.get("resources") or (), f"{path}.resources")
    name = "ephemeralContainerStatuses"
    for index, container in enumerate(status.get(name) or ()):
        if container.get("allocatedResourcesStatus"):
            detail = "must not be specified in container status"
            yield forbidden(f"status.{name}[{index}].allocatedResourcesStatus", detail)


def _name_faults(name: str, resources: Plain, path: str) -> Iterator[FieldFault]:
    if not name.startswith(_CLAIM):
        if name not in (resources.get("requests") or {}):
            yield invalid(path, name, _NO_REQUEST)
        return
    claims = resources.get("claims") or ()
    parts = ((claim["name"], claim.get("request", "")) for claim in claims)
    if name not in [f"{_CLAIM}{'/'.join(filter(None, pair))}" for pair in parts]:
        yield invalid(path, name, _NO_CLAIM)


def _device_faults(devices: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    seen: set[str] = set()
    for index, device in enumerate(devices):
        health, identity = device.get("health", ""), device["resourceID"]
        if health not in _HEALTH:
            yield not_supported(f"{path}[{index}].health", health, _HEALTH)
        if identity in seen:
            yield duplicate(f"{path}[{index}].resourceID", identity)
        seen.add(identity)
