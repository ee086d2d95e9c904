"""Services get an address and node ports that no other service has.

Upstream: pkg/registry/core/service/storage/alloc.go (v1.36)
Rejects:  addresses and ports that another service has, or that are in no range.
Differs:  addresses are IPv4 and of one range; the first that is free is taken, not a random one. A
          service whose type has no ports on nodes loses them. Nobody checks a service's health.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import islice
from typing import Final

from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest
from kubesched.apiserver.formats import parsed_address
from kubesched.apiserver.plain import Plain, without
from kubesched.apiserver.status import FieldErrors, invalid_status

# The first address belongs to the API server's own service.
_RANGE: Final = IPv4Network("10.0.0.0/16")
_NODE_PORTS: Final = range(30_000, 32_768)
_OUT_OF_RANGE: Final = (
    "provided port is not in the valid range. The range of valid ports is "
    f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
)
_HEADLESS: Final = "None"


def admit(request: AdmissionRequest, service: Plain) -> Plain:
    """Return the service with its addresses and ports.

    Raises:
        StatusError: It requests an address or a port that it cannot have.
    """
    if not request.is_for("Service", CREATE, UPDATE):
        return service
    before: Plain = (request.old or {}).get("spec", {})
    spec = {**service["spec"]}
    others = [one["spec"] for one in request.lookup.items("services") if one["spec"] != before]
    errors = FieldErrors()
    if spec.get("type") != "ExternalName":
        spec |= _addresses(spec, before, others, errors)
    if spec.get("ports"):
        spec["ports"] = _ports(spec, before, others, errors)
    if errors:
        # Upstream allocates one thing after the other, and gives up at the first that fails.
        raise invalid_status(request.resource, service["metadata"].get("name", ""), errors[:1])
    return {**service, "spec": spec}


def _addresses(spec: Plain, before: Plain, others: list[Plain], errors: FieldErrors) -> Plain:
    """Return the address fields of a service: as requested, as before, or newly allocated."""
    taken = {one.get("clusterIP") for one in others}
    given = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
    address = given or before.get("clusterIP")
    if not address:
        hosts = map(str, islice(_RANGE.hosts(), 1, None))
        address = next(host for host in hosts if host not in taken)
    elif address not in (_HEADLESS, before.get("clusterIP")):
        parsed, why = parsed_address(address), ""
        if address in taken:
            why = "provided IP is already allocated"
        elif parsed is not None and parsed not in _RANGE:
            why = "the provided network does not match the current range"
        if why:
            errors.invalid("spec.clusterIPs", [address], f"failed to allocate IP {address}: {why}")
    kept: Plain = {name: spec[name] for name in ("ipFamilyPolicy", "ipFamilies") if name in spec}
    return {
        "clusterIP": address,
        "clusterIPs": spec.get("clusterIPs") or [address],
        "ipFamilyPolicy": "SingleStack",
        "ipFamilies": ["IPv4"],
        **kept,
    }


def _ports(spec: Plain, before: Plain, others: list[Plain], errors: FieldErrors) -> list[Plain]:
    """Return a service's ports with node ports: as requested, as before, or newly allocated."""
    if spec.get("type") not in ("LoadBalancer", "NodePort"):
        return [without(port, "nodePort") for port in spec["ports"]]
    known = {_key(port): port.get("nodePort") for port in before.get("ports") or ()}
    taken = {port.get("nodePort") for one in others for port in one.get("ports") or ()}
    asked = {port.get("nodePort") for port in spec["ports"]}
    free = (number for number in _NODE_PORTS if number not in taken | asked)
    wants_ports = spec.get("allocateLoadBalancerNodePorts") is not False
    ports = []
    for index, port in enumerate(spec["ports"]):
        number, path = port.get("nodePort"), f"spec.ports[{index}].nodePort"
        if not number and known.get(_key(port)) not in asked:
            number = known.get(_key(port))
        elif number in taken - {None}:
            errors.invalid(path, number, "provided port is already allocated")
        elif number and number not in (*_NODE_PORTS, *known.values()):
            errors.invalid(path, number, _OUT_OF_RANGE)
        if not number and wants_ports:
            number = next(free)
        ports.append({**port, "nodePort": number} if number else port)
    return ports


def _key(port: Plain) -> tuple[str, int]:
    return port.get("protocol", ""), port["port"]
