"""Services get an address, and ports on nodes, that no other service has.

Upstream: pkg/registry/core/service/storage/alloc.go (v1.36), where it is a part of storing
Rejects:  addresses and ports that another service has, or that are in no range; IPv6.
Differs:  addresses are of one range; the first that is free is taken, not a random one; a range of
          ports holds in a dry run too.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import islice
from typing import Final

from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest
from kubesched.apiserver.field_fault import FieldFault, invalid, invalid_status
from kubesched.apiserver.ip_addresses import parsed_address
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.service_strategy import (
    has_cluster_ip,
    has_health_check_port,
    has_node_ports,
    node_ports,
    with_kept_values,
)

_RANGE: Final = IPv4Network("10.0.0.0/16")
_NODE_PORTS: Final = range(30_000, 32_768)
_OUT_OF_RANGE: Final = (
    "provided port is not in the valid range. The range of valid ports is "
    f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
)
_NONE: Final = "None"


def admit(request: AdmissionRequest, service: Plain) -> Plain:
    """Return the service with its addresses and ports."""
    if not request.is_for("Service", CREATE, UPDATE):
        return service
    spec = {**service["spec"]}
    if request.old is not None:
        spec = with_kept_values(spec, request.old["spec"])
    faults = [*_address_faults(request, spec), *_port_faults(request, spec)]
    if faults:
        # Upstream allocates one thing after the other, and gives up at the first that fails.
        raise invalid_status(request.resource, service["metadata"].get("name", ""), faults[:1])
    if has_cluster_ip(spec):
        _add_address(request, spec)
    if has_node_ports(spec) and spec.get("allocateLoadBalancerNodePorts") is not False:
        _add_node_ports(request, spec)
    return {**service, "spec": spec}


def _address_faults(request: AdmissionRequest, spec: Plain) -> Iterator[FieldFault]:
    given = spec.get("clusterIPs") or [one for one in (spec.get("clusterIP"),) if one]
    if not has_cluster_ip(spec) or (given[:1] == [_NONE] and not spec.get("selector")):
        return
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        yield invalid("spec.ipFamilyPolicy", "RequireDualStack", detail)
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family == "IPv6":
            yield invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
    address = parsed_address(given[0]) if given else None
    if address is None or (request.old or {}).get("spec", {}).get("clusterIP") == given[0]:
        return
    if address.version != _RANGE.version:
        yield invalid("spec.clusterIPs[0]", given, "IPv6 is not configured on this cluster")
    why = ""
    if address not in _RANGE or address in (_RANGE.network_address, _RANGE.broadcast_address):
        why = "the provided network does not match the current range"
    elif given[0] in {one.get("clusterIP") for one in _services(request)}:
        why = "provided IP is already allocated"
    if why:
        yield invalid("spec.clusterIPs", given, f"failed to allocate IP {given[0]}: {why}")


def _port_faults(request: AdmissionRequest, spec: Plain) -> Iterator[FieldFault]:
    if not has_node_ports(spec):
        return
    kept = node_ports((request.old or {}).get("spec", {}))
    taken = {port for one in _services(request) for port in node_ports(one)} - kept
    for index, port in enumerate(spec.get("ports") or ()):
        number, path = port.get("nodePort", 0), f"spec.ports[{index}].nodePort"
        if number in taken:
            yield invalid(path, number, "provided port is already allocated")
        elif number and number not in _NODE_PORTS and number not in kept:
            yield invalid(path, number, _OUT_OF_RANGE)


def _add_address(request: AdmissionRequest, spec: Plain) -> None:
    if not spec.get("clusterIP"):
        spec["clusterIP"] = next(iter(spec.get("clusterIPs") or ()), None) or _free_address(request)
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    is_anything = spec["clusterIP"] == _NONE and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_anything else "SingleStack")
    families = spec.setdefault("ipFamilies", ["IPv4"])
    if is_anything and len(families) == 1 and spec["ipFamilyPolicy"] != "SingleStack":
        other = "IPv6" if families[0] == "IPv4" else "IPv4"
        spec["ipFamilies"] = [*families, other]


def _services(request: AdmissionRequest) -> Iterator[Plain]:
    for service in request.lookup.items("services"):
        yield service["spec"]


def _free_address(request: AdmissionRequest) -> str:
    taken = {spec.get("clusterIP") for spec in _services(request)}
    # The first address belongs to the API server's own service.
    hosts = (str(address) for address in islice(_RANGE.hosts(), 1, None))
    return next(address for address in hosts if address not in taken)


def _add_node_ports(request: AdmissionRequest, spec: Plain) -> None:
    taken = {port for one in _services(request) for port in node_ports(one)}
    taken |= {one.get("healthCheckNodePort") for one in _services(request)} | node_ports(spec)
    free = (port for port in _NODE_PORTS if port not in taken)
    ports = [
        port if port.get("nodePort") else {**port, "nodePort": next(free)}
        for port in spec.get("ports") or ()
    ]
    if ports:
        spec["ports"] = ports
    if has_health_check_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = next(free)
