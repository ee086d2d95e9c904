"""Services, and the endpoints behind them.

Upstream: pkg/apis/core/validation/validation.go (ValidateService*, ValidateEndpoints*),
          pkg/apis/discovery/validation/validation.go (v1.36)
Differs:  that addresses, families and their policy agree with one another is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.api.label_format import label_key_errors
from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)
from kubesched.apiserver.ip_addresses import address_faults, network_faults, parsed_address
from kubesched.apiserver.names import dns_label, dns_subdomain, valid_port
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.service_strategy import has_health_check_port, is_exposed
from kubesched.apiserver.validation.labels import label_faults
from kubesched.apiserver.validation.metadata import (
    IMMUTABLE,
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.probes import port_faults

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES: Final = ("ClientIP", "None")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_POLICIES: Final = ("Cluster", "Local")
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_SECONDS_MAX: Final = 86_400
_ADDRESSES_MAX: Final = 100
_ENDPOINTS_MAX: Final = 1000


def new_service_faults(service: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new service."""
    yield from metadata_faults(service["metadata"], True, dns_label)
    yield from _service_faults(service)


def service_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a service."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    spec, before = new["spec"], old["spec"]
    old_addresses, addresses = before.get("clusterIPs") or [], spec.get("clusterIPs") or []
    is_kept = "ExternalName" not in (spec.get("type"), before.get("type"))
    if is_kept and old_addresses and addresses and addresses[0] != old_addresses[0]:
        detail = "may not change once set"
        yield invalid("spec.clusterIPs[0]", addresses, detail)
    families, old_families = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    if is_kept and families and old_families and families[0] != old_families[0]:
        yield invalid("spec.ipFamilies[0]", families, "may not change once set")
    is_checked = has_health_check_port(before) and has_health_check_port(spec)
    if is_checked and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
        yield forbidden("spec.healthCheckNodePort", IMMUTABLE)
    yield from _service_faults(new)


def _is_headless(spec: Plain) -> bool:
    addresses: list[str] = spec.get("clusterIPs") or []
    return addresses[:1] == ["None"]


def _service_faults(service: Plain) -> Iterator[FieldFault]:
    spec, ports = service["spec"], service["spec"].get("ports") or ()
    kind = spec.get("type", "")
    if not ports and not _is_headless(spec) and kind != "ExternalName":
        yield required("spec.ports")
    yield from _type_faults(spec, kind)
    names: set[str] = set()
    for index, port in enumerate(ports):
        yield from _port_faults(port, len(ports) > 1, names, f"spec.ports[{index}]")
    yield from label_faults(spec.get("selector"), "spec.selector")
    yield from _affinity_faults(spec)
    yield from _address_faults(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        yield from address_faults(address, path) or endpoint_address_faults(address, path)
    if kind not in _TYPES:
        yield not_supported("spec.type", kind, _TYPES)
    yield from _port_clash_faults(ports, kind)
    yield from _load_balancer_faults(spec, kind)
    yield from _traffic_faults(spec)


def _type_faults(spec: Plain, kind: str) -> Iterator[FieldFault]:
    if kind in ("LoadBalancer", "NodePort") and _is_headless(spec):
        detail = f"may not be set to 'None' for {kind} services"
        yield invalid("spec.clusterIPs[0]", "None", detail)
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden(f"spec.{name}", "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if name:
        yield from each("spec.externalName", name, dns_subdomain(name))
    else:
        yield required("spec.externalName")


def _port_faults(port: Plain, needs_name: bool, names: set[str], path: str) -> Iterator[FieldFault]:
    name = port.get("name", "")
    if name:
        yield from each(f"{path}.name", name, dns_label(name))
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    elif needs_name:
        yield required(f"{path}.name")
    yield from each(f"{path}.port", port["port"], valid_port(port["port"]))
    yield from _protocol_faults(port.get("protocol", ""), path)
    yield from port_faults(port["targetPort"], f"{path}.targetPort")
    protocol = port.get("appProtocol")
    if protocol is not None:
        yield from each(f"{path}.appProtocol", protocol, label_key_errors(protocol))


def _protocol_faults(protocol: str, path: str) -> Iterator[FieldFault]:
    if not protocol:
        yield required(f"{path}.protocol")
    elif protocol not in _PROTOCOLS:
        yield not_supported(f"{path}.protocol", protocol, _PROTOCOLS)


def _affinity_faults(spec: Plain) -> Iterator[FieldFault]:
    affinity, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    if not affinity:
        yield required("spec.sessionAffinity")
    elif affinity not in _AFFINITIES:
        yield not_supported("spec.sessionAffinity", affinity, _AFFINITIES)
    if affinity == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is not None and not 0 < seconds <= _SECONDS_MAX:
            field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield invalid(field, seconds, f"must be greater than 0 and less than {_SECONDS_MAX}")
    elif affinity == "None" and config is not None:
        detail = "must not be set when session affinity is None"
        yield forbidden("spec.sessionAffinityConfig", detail)


def _address_faults(spec: Plain) -> Iterator[FieldFault]:
    one, several = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if one and several and several[0] != one:
        yield invalid("spec.clusterIPs", several, "first value must match `clusterIP`")
    for index, address in enumerate(several):
        if address != "None" and parsed_address(address) is None:
            yield from address_faults(address, f"spec.clusterIPs[{index}]")
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in _FAMILIES:
            yield not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)


def _port_clash_faults(ports: Sequence[Plain], kind: str) -> Iterator[FieldFault]:
    for index, port in enumerate(ports):
        if kind == "ClusterIP" and port.get("nodePort"):
            detail = "may not be used when `type` is 'ClusterIP'"
            yield forbidden(f"spec.ports[{index}].nodePort", detail)
    on_nodes: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("nodePort", 0))
        if key[1] and key in on_nodes:
            yield duplicate(f"spec.ports[{index}].nodePort", key[1])
        on_nodes.add(key)
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port["port"])
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


def _load_balancer_faults(spec: Plain, kind: str) -> Iterator[FieldFault]:
    is_balanced = kind == "LoadBalancer"
    ranges, path = spec.get("loadBalancerSourceRanges") or (), "spec.LoadBalancerSourceRanges"
    if ranges and not is_balanced:
        yield forbidden(path, _ONLY_BALANCED)
    for index, text in enumerate(ranges):
        yield from network_faults(text.strip(), f"{path}[{index}]")
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_balanced:
        yield forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED)
    name, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if name is not None and is_balanced:
        yield from each(path, name, label_key_errors(name))
    elif name is not None:
        yield forbidden(path, _ONLY_BALANCED)


def _traffic_faults(spec: Plain) -> Iterator[FieldFault]:
    policy = spec.get("externalTrafficPolicy", "")
    if not is_exposed(spec):
        if policy:
            detail = "may only be set for externally-accessible services"
            yield invalid("spec.externalTrafficPolicy", policy, detail)
    elif not policy:
        yield required("spec.externalTrafficPolicy")
    elif policy not in _POLICIES:
        yield not_supported("spec.externalTrafficPolicy", policy, _POLICIES)
    if spec.get("healthCheckNodePort") and not has_health_check_port(spec):
        detail = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        yield invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], detail)
    policy = spec.get("internalTrafficPolicy")
    if policy is not None and policy not in _POLICIES:
        yield not_supported("spec.internalTrafficPolicy", policy, _POLICIES)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        yield not_supported("spec.trafficDistribution", distribution, _DISTRIBUTIONS)


def endpoint_address_faults(text: str, path: str) -> list[FieldFault]:
    """Return what is wrong with an address that others are to reach."""
    address = parsed_address(text)
    if address is None:
        return [invalid(path, text, "must be a valid IP address")]
    faults = []
    if address.is_unspecified:
        faults.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        faults.append(invalid(path, text, detail))
    if address.is_link_local:
        detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        faults.append(invalid(path, text, detail))
    if address.is_multicast and str(address).startswith(("224.0.0.", "ff02:")):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        faults.append(invalid(path, text, detail))
    return faults


def endpoints_faults(endpoints: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with the addresses behind a service."""
    yield from metadata_faults(endpoints["metadata"], True, dns_subdomain)
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for name in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(name) or ()):
                yield from _endpoint_faults(address, f"{path}.{name}[{number}]")
        ports = subset.get("ports") or ()
        for number, port in enumerate(ports):
            own_path, name = f"{path}.ports[{number}]", port.get("name", "")
            if name:
                yield from each(f"{own_path}.name", name, dns_label(name))
            elif len(ports) > 1:
                yield required(f"{own_path}.name")
            yield from each(f"{own_path}.port", port["port"], valid_port(port["port"]))
            yield from _protocol_faults(port.get("protocol", ""), own_path)
            protocol = port.get("appProtocol")
            if protocol is not None:
                yield from each(f"{own_path}.appProtocol", protocol, label_key_errors(protocol))


def _endpoint_faults(address: Plain, path: str) -> Iterator[FieldFault]:
    yield from address_faults(address["ip"], f"{path}.ip")
    if address.get("hostname"):
        yield from each(f"{path}.hostname", address["hostname"], dns_label(address["hostname"]))
    if address.get("nodeName") is not None:
        yield from each(f"{path}.nodeName", address["nodeName"], dns_subdomain(address["nodeName"]))
    yield from endpoint_address_faults(address["ip"], f"{path}.ip")


def endpoints_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of the addresses behind a service."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from endpoints_faults(new)


def endpoint_slice_faults(piece: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a part of the addresses behind a service."""
    yield from metadata_faults(piece["metadata"], True, dns_subdomain)
    kind, endpoints = piece["addressType"], piece.get("endpoints") or ()
    if not kind:
        yield required("addressType")
    elif kind not in _ADDRESS_TYPES:
        yield not_supported("addressType", kind, _ADDRESS_TYPES)
    yield from _slice_port_faults(piece.get("ports") or ())
    if len(endpoints) > _ENDPOINTS_MAX:
        yield too_many("endpoints", len(endpoints), _ENDPOINTS_MAX)
        return
    for index, endpoint in enumerate(endpoints):
        path, addresses = f"endpoints[{index}]", endpoint.get("addresses") or ()
        if not addresses:
            yield required(f"{path}.addresses", "must contain at least 1 address")
        elif len(addresses) > _ADDRESSES_MAX:
            yield too_many(f"{path}.addresses", len(addresses), _ADDRESSES_MAX)
        if kind in _FAMILIES:
            for number, address in enumerate(addresses):
                yield from _slice_address_faults(address, kind, f"{path}.addresses", number)


def _slice_address_faults(address: str, kind: str, path: str, number: int) -> Iterator[FieldFault]:
    own_path = f"{path}[{number}]"
    faults = address_faults(address, own_path)
    yield from faults
    if faults:
        return
    found = parsed_address(address)
    if found is not None and f"IPv{found.version}" != kind:
        yield invalid(path, address, f"must be an {kind} address")
    yield from endpoint_address_faults(address, own_path)


def _slice_port_faults(ports: Sequence[Plain]) -> Iterator[FieldFault]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            yield from each(f"{path}.name", name, dns_label(name))
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        yield from _protocol_faults(port.get("protocol") or "", path)


def endpoint_slice_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a part of the addresses behind a service."""
    yield from endpoint_slice_faults(new)
    yield from immutable_faults(new["addressType"], old["addressType"], "addressType")
