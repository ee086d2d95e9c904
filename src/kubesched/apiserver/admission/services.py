"""Services get an address, and ports on nodes, that no other service has.

Upstream: pkg/registry/core/service/storage/alloc.go (v1.36), where it is a part of storing
Differs:  addresses are IPv4, of one range; the first that is free is taken, not a random one;
          an address or port that another service has is not refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import islice
from typing import Final

from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest
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
_NONE: Final = "None"


def admit(request: AdmissionRequest, service: Plain) -> Plain:
    """Return the service with its addresses and ports."""
    if not request.is_for("Service", CREATE, UPDATE):
        return service
    spec = {**service["spec"]}
    if request.old is not None:
        spec = with_kept_values(spec, request.old["spec"])
    if has_cluster_ip(spec):
        _add_address(request, spec)
    if has_node_ports(spec) and spec.get("allocateLoadBalancerNodePorts") is not False:
        _add_node_ports(request, spec)
    return {**service, "spec": spec}


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
