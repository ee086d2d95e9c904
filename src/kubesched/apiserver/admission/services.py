"""Services get an address, and ports on nodes, that no other service has.

Upstream: pkg/registry/core/service/storage/alloc.go, strategy.go (v1.36)
Rejects:  addresses and ports that another service has, or that are in no range.
Differs:  addresses are IPv4 and of one range; the first that is free is taken, not a random one. A
          service that changes its type loses what only the old type has.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import islice
from typing import Any, Final

from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest
from kubesched.apiserver.field_errors import FieldErrors, invalid_status
from kubesched.apiserver.formats import parsed_address
from kubesched.apiserver.plain import Plain

_RANGE: Final = IPv4Network("10.0.0.0/16")
_NODE_PORTS: Final = range(30_000, 32_768)
_OUT_OF_RANGE: Final = (
    "provided port is not in the valid range. The range of valid ports is "
    f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
)
_NONE: Final = "None"
_OF_ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_OF_BALANCERS: Final = ("allocateLoadBalancerNodePorts", "loadBalancerClass")


def admit(request: AdmissionRequest, service: Plain) -> Plain:
    """Return the service with its addresses and ports."""
    if not request.is_for("Service", CREATE, UPDATE):
        return service
    spec = {**service["spec"]}
    before: Plain = (request.old or {}).get("spec", {})
    if before:
        _keep(spec, before)
    errors = FieldErrors()
    _check_address(request, spec, before, errors)
    _check_ports(request, spec, before, errors)
    if errors:
        # Upstream allocates one thing after the other, and gives up at the first that fails.
        raise invalid_status(request.resource, service["metadata"].get("name", ""), errors[:1])
    if _has_address(spec):
        _add_address(request, spec)
    if _has_node_ports(spec) and spec.get("allocateLoadBalancerNodePorts") is not False:
        _add_node_ports(request, spec)
    return {**service, "spec": spec}


def without_fields_of_old_type(new: Plain, old: Plain) -> Plain:
    """Return a changed service without what only its old type had, as far as it is unchanged."""
    spec, before = {**new["spec"]}, old["spec"]
    gone: list[str] = []
    if not _has_address(spec):
        gone += _OF_ADDRESSES
    if spec.get("type") != "LoadBalancer":
        gone += _OF_BALANCERS
    if not _has_node_ports(spec) and not spec.get("externalIPs"):
        gone.append("externalTrafficPolicy")
    if not _has_health_port(spec):
        gone.append("healthCheckNodePort")
    for name in gone if spec.get("type") != before.get("type") else ():
        if name in spec and spec[name] == before.get(name):
            del spec[name]
    if not _has_node_ports(spec) and _node_ports(spec) <= _node_ports(before):
        spec = _without_node_ports(spec)
    status = new["status"]
    if spec.get("type") != "LoadBalancer":
        status = {**status, "loadBalancer": {}}
    return {**new, "spec": spec, "status": status}


def _has_address(spec: Plain) -> bool:
    return spec.get("type") != "ExternalName"


def _has_node_ports(spec: Plain) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort")


def _has_health_port(spec: Plain) -> bool:
    is_local = spec.get("externalTrafficPolicy") == "Local"
    return spec.get("type") == "LoadBalancer" and is_local


def _node_ports(spec: Plain) -> set[Any]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _without_node_ports(spec: Plain) -> Plain:
    ports = [
        {name: one for name, one in port.items() if name != "nodePort"}
        for port in spec.get("ports") or ()
    ]
    return {**spec, "ports": ports} if ports else spec


def _keep(spec: Plain, before: Plain) -> None:
    """Keep addresses and ports of which a change says nothing."""
    if _has_address(before) and _has_address(spec):
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and spec.get("clusterIP") in (None, "", before.get("clusterIP")):
                spec[name] = before.get(name)
    if _has_node_ports(before) and _has_node_ports(spec):
        known = {
            (port.get("protocol"), port["port"]): port["nodePort"]
            for port in before.get("ports") or ()
            if port.get("nodePort")
        }
        used = _node_ports(spec)
        ports = []
        for port in spec.get("ports") or ():
            kept = known.get((port.get("protocol"), port["port"]))
            if not port.get("nodePort") and kept is not None and kept not in used:
                used.add(kept)
                port = {**port, "nodePort": kept}  # noqa: PLW2901  # the port as it is kept
            ports.append(port)
        spec["ports"] = ports
    if _has_health_port(before) and _has_health_port(spec):
        port = spec.get("healthCheckNodePort") or before.get("healthCheckNodePort")
        if port:
            spec["healthCheckNodePort"] = port


def _check_address(
    request: AdmissionRequest, spec: Plain, before: Plain, errors: FieldErrors
) -> None:
    given = spec.get("clusterIPs") or [one for one in (spec.get("clusterIP"),) if one]
    address = parsed_address(given[0]) if given and _has_address(spec) else None
    if address is None or before.get("clusterIP") == given[0]:
        return
    why = ""
    if address not in _RANGE or address in (_RANGE.network_address, _RANGE.broadcast_address):
        why = "the provided network does not match the current range"
    elif given[0] in {one.get("clusterIP") for one in _services(request)}:
        why = "provided IP is already allocated"
    if why:
        errors.invalid("spec.clusterIPs", given, f"failed to allocate IP {given[0]}: {why}")


def _check_ports(
    request: AdmissionRequest, spec: Plain, before: Plain, errors: FieldErrors
) -> None:
    kept = _node_ports(before)
    taken = {port for one in _services(request) for port in _node_ports(one)} - kept
    for index, port in enumerate(spec.get("ports") or () if _has_node_ports(spec) else ()):
        number, path = port.get("nodePort", 0), f"spec.ports[{index}].nodePort"
        if number in taken:
            errors.invalid(path, number, "provided port is already allocated")
        elif number and number not in _NODE_PORTS and number not in kept:
            errors.invalid(path, number, _OUT_OF_RANGE)


def _add_address(request: AdmissionRequest, spec: Plain) -> None:
    if not spec.get("clusterIP"):
        spec["clusterIP"] = next(iter(spec.get("clusterIPs") or ()), None) or _free_address(request)
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    is_anything = spec["clusterIP"] == _NONE and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_anything else "SingleStack")
    families = spec.setdefault("ipFamilies", ["IPv4"])
    if is_anything and len(families) == 1 and spec["ipFamilyPolicy"] != "SingleStack":
        spec["ipFamilies"] = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]


def _services(request: AdmissionRequest) -> Iterator[Plain]:
    for service in request.lookup.items("services"):
        yield service["spec"]


def _free_address(request: AdmissionRequest) -> str:
    taken = {spec.get("clusterIP") for spec in _services(request)}
    # The first address belongs to the API server's own service.
    hosts = (str(address) for address in islice(_RANGE.hosts(), 1, None))
    return next(address for address in hosts if address not in taken)


def _add_node_ports(request: AdmissionRequest, spec: Plain) -> None:
    taken = {port for one in _services(request) for port in _node_ports(one)}
    taken |= {one.get("healthCheckNodePort") for one in _services(request)} | _node_ports(spec)
    free = (port for port in _NODE_PORTS if port not in taken)
    spec["ports"] = [
        port if port.get("nodePort") else {**port, "nodePort": next(free)}
        for port in spec.get("ports") or ()
    ]
    if _has_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = next(free)
