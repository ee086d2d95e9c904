"""What a service loses when its type changes, and what it keeps when a change leaves it out.

Upstream: pkg/registry/core/service/strategy.go, storage/storage.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver.plain import Plain


def has_cluster_ip(spec: Plain) -> bool:
    """Whether services of this type have an address."""
    return spec.get("type") != "ExternalName"


def has_node_ports(spec: Plain) -> bool:
    """Whether services of this type have ports on every node."""
    return spec.get("type") in ("LoadBalancer", "NodePort")


def has_health_check_port(spec: Plain) -> bool:
    """Whether services of this type have a port that tells of their health."""
    is_local = spec.get("externalTrafficPolicy") == "Local"
    return spec.get("type") == "LoadBalancer" and is_local


def is_exposed(spec: Plain) -> bool:
    """Whether services of this type can be reached from outside."""
    return has_node_ports(spec) or (
        spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def without_fields_of_old_type(new: Plain, old: Plain) -> Plain:
    """Return a changed service without what only its old type had, as far as it is unchanged."""
    spec, before = {**new["spec"]}, old["spec"]
    if has_cluster_ip(before) and not has_cluster_ip(spec):
        _drop_unchanged(spec, before, "clusterIP", "clusterIPs")
        _drop_unchanged(spec, before, "ipFamilies")
        _drop_unchanged(spec, before, "ipFamilyPolicy")
    if has_node_ports(before) and not has_node_ports(spec):
        spec = _without_node_ports(spec, before)
    if has_health_check_port(before) and not has_health_check_port(spec):
        _drop_unchanged(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts")
        _drop_unchanged(spec, before, "loadBalancerClass")
    if is_exposed(before) and not is_exposed(spec):
        _drop_unchanged(spec, before, "externalTrafficPolicy")
    status = new["status"]
    if spec.get("type") != "LoadBalancer":
        status = {**status, "loadBalancer": {}}
    return {**new, "spec": spec, "status": status}


def _drop_unchanged(spec: Plain, before: Plain, *names: str) -> None:
    if all(spec.get(name) == before.get(name) for name in names):
        for name in names:
            spec.pop(name, None)


def _without_node_ports(spec: Plain, before: Plain) -> Plain:
    if not node_ports(spec) <= node_ports(before):
        return spec
    ports = [
        {name: one for name, one in port.items() if name != "nodePort"}
        for port in spec.get("ports") or ()
    ]
    return {**spec, "ports": ports} if ports else spec


def node_ports(spec: Plain) -> set[Any]:
    """Return the ports on nodes that a service has."""
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def with_kept_values(spec: Plain, before: Plain) -> Plain:
    """Return a changed specification with addresses and ports as they were, if it says nothing."""
    spec = {**spec}
    if has_cluster_ip(before) and has_cluster_ip(spec):
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and spec.get("clusterIP") == before.get("clusterIP"):
            spec["clusterIPs"] = before.get("clusterIPs")
    if has_node_ports(before) and has_node_ports(spec):
        _keep_node_ports(spec, before)
    if has_health_check_port(before) and has_health_check_port(spec):
        port = spec.get("healthCheckNodePort") or before.get("healthCheckNodePort")
        if port:
            spec["healthCheckNodePort"] = port
    return spec


def _keep_node_ports(spec: Plain, before: Plain) -> None:
    used = node_ports(spec)
    known = {
        (port.get("protocol"), port["port"]): port["nodePort"]
        for port in before.get("ports") or ()
        if port.get("nodePort")
    }
    ports = []
    for port in spec.get("ports") or ():
        kept = known.get((port.get("protocol"), port["port"]))
        if not port.get("nodePort") and kept is not None and kept not in used:
            used.add(kept)
            ports.append({**port, "nodePort": kept})
        else:
            ports.append(port)
    if ports:
        spec["ports"] = ports
