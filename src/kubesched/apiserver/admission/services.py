"""Services get an address, and ports on nodes, that no other service has.

Upstream: pkg/registry/core/service/storage/alloc.go (v1.36)
Rejects:  addresses and ports that another service has, or that are in no range.
Differs:  addresses are IPv4 and of one range; the first that is free is taken, not a random one. A
          service whose type has no ports on nodes loses them. Nobody checks a service's health.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import islice
from typing import Any, Final

from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest
from kubesched.apiserver.field_errors import FieldErrors, invalid_status
from kubesched.apiserver.formats import parsed_address
from kubesched.apiserver.plain import Plain, without

_RANGE: Final = IPv4Network("10.0.0.0/16")
_NODE_PORTS: Final = range(30_000, 32_768)
_OUT_OF_RANGE: Final = (
    "provided port is not in the valid range. The range of valid ports is "
    f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
)


def admit(request: AdmissionRequest, service: Plain) -> Plain:
    """Return the service with its addresses and ports.

    Raises:
        StatusError: It asks for what it cannot have.
    """
    if not request.is_for("Service", CREATE, UPDATE):
        return service
    before: Plain = (request.old or {}).get("spec", {})
    spec = {**service["spec"]}
    others = [one["spec"] for one in request.lookup.items("services") if one["spec"] != before]
    has_address = spec.get("type") != "ExternalName"
    has_node_ports = spec.get("type") in ("LoadBalancer", "NodePort")
    errors = FieldErrors()
    if has_address:
        _keep_address(spec, before)
        _check_address(spec, before, others, errors)
    if has_node_ports:
        _keep_node_ports(spec, before)
        _check_node_ports(spec, before, others, errors)
    if errors:
        # Upstream allocates one thing after the other, and gives up at the first that fails.
        raise invalid_status(request.resource, service["metadata"].get("name", ""), errors[:1])
    if has_address:
        spec["clusterIP"] = spec.get("clusterIP") or _free_address(others)
        spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("ipFamilies", ["IPv4"])
    if spec.get("ports"):
        wants_ports = has_node_ports and spec.get("allocateLoadBalancerNodePorts") is not False
        free = _free_ports(spec, others) if wants_ports else None
        spec["ports"] = [_with_node_port(port, has_node_ports, free) for port in spec["ports"]]
    return {**service, "spec": spec}


def _keep_address(spec: Plain, before: Plain) -> None:
    """Keep the address of which a change says nothing."""
    if before.get("clusterIP") and spec.get("clusterIP") in (None, "", before["clusterIP"]):
        spec["clusterIP"] = before["clusterIP"]
        spec["clusterIPs"] = spec.get("clusterIPs") or before.get("clusterIPs")
    elif not spec.get("clusterIP") and spec.get("clusterIPs"):
        spec["clusterIP"] = spec["clusterIPs"][0]


def _keep_node_ports(spec: Plain, before: Plain) -> None:
    """Keep the ports on nodes of which a change says nothing."""
    known = {_port_key(port): port.get("nodePort") for port in before.get("ports") or ()}
    ports = []
    for port in spec.get("ports") or ():
        kept = None if port.get("nodePort") else known.get(_port_key(port))
        is_free = kept and kept not in _node_ports(spec)
        ports.append({**port, "nodePort": kept} if is_free else port)
    spec["ports"] = ports


def _port_key(port: Plain) -> tuple[Any, Any]:
    return port.get("protocol"), port["port"]


def _node_ports(spec: Plain) -> set[Any]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _check_address(spec: Plain, before: Plain, others: list[Plain], errors: FieldErrors) -> None:
    given = spec.get("clusterIPs") or [one for one in (spec.get("clusterIP"),) if one]
    address = parsed_address(given[0]) if given else None
    if address is None or before.get("clusterIP") == given[0]:
        return
    why = ""
    if address not in _RANGE or address in (_RANGE.network_address, _RANGE.broadcast_address):
        why = "the provided network does not match the current range"
    elif any(one.get("clusterIP") == given[0] for one in others):
        why = "provided IP is already allocated"
    if why:
        errors.invalid("spec.clusterIPs", given, f"failed to allocate IP {given[0]}: {why}")


def _check_node_ports(spec: Plain, before: Plain, others: list[Plain], errors: FieldErrors) -> None:
    taken = {port for one in others for port in _node_ports(one)}
    for index, port in enumerate(spec["ports"]):
        number, path = port.get("nodePort", 0), f"spec.ports[{index}].nodePort"
        if number in taken:
            errors.invalid(path, number, "provided port is already allocated")
        elif number and number not in _NODE_PORTS and number not in _node_ports(before):
            errors.invalid(path, number, _OUT_OF_RANGE)


def _free_address(others: list[Plain]) -> str:
    taken = {spec.get("clusterIP") for spec in others}
    # The first address belongs to the API server's own service.
    hosts = (str(address) for address in islice(_RANGE.hosts(), 1, None))
    return next(address for address in hosts if address not in taken)


def _free_ports(spec: Plain, others: list[Plain]) -> Iterator[int]:
    taken = {port for one in (spec, *others) for port in _node_ports(one)}
    return (port for port in _NODE_PORTS if port not in taken)


def _with_node_port(port: Plain, has_node_ports: bool, free: Iterator[int] | None) -> Plain:
    if not has_node_ports:
        return without(port, "nodePort")
    return port if port.get("nodePort") or free is None else {**port, "nodePort": next(free)}
