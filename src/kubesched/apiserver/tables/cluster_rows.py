"""The rows of nodes, namespaces, events, services and other objects of the core.

Upstream: pkg/printers/internalversion/printers.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubesched.apiserver.event_forms import EVENTS_GROUP, to_core
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.tables.texts import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    label_text,
    name_of,
    since,
)

__all__ = [
    "config_map_cells",
    "endpoint_slice_cells",
    "endpoints_cells",
    "event_cells",
    "lease_cells",
    "namespace_cells",
    "node_cells",
    "priority_class_cells",
    "quota_cells",
    "runtime_class_cells",
    "secret_cells",
    "service_cells",
]

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"
_LISTED_MAX: Final = 3


def node_cells(node: Plain, now: datetime) -> list[Any]:
    """Return the cells of a node."""
    machine = get(node, "status", "nodeInfo") or {}
    kernel = machine.get("kernelVersion") or UNKNOWN
    if machine.get("architecture"):
        kernel += f" ({machine['architecture']})"
    return [
        name_of(node),
        _node_status(node),
        ",".join(_roles(node)) or NONE,
        age(node, now),
        machine.get("kubeletVersion", ""),
        _node_address(node, "InternalIP"),
        _node_address(node, "ExternalIP"),
        machine.get("osImage") or UNKNOWN,
        kernel,
        machine.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: Plain) -> str:
    conditions = get(node, "status", "conditions") or ()
    status = {one.get("type"): one.get("status") for one in conditions}
    ready = "Unknown"
    if "Ready" in status:
        ready = "Ready" if status["Ready"] == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if get(node, "spec", "unschedulable") else ready


def _roles(node: Plain) -> list[str]:
    roles: dict[str, None] = {}
    for key, value in (get(node, "metadata", "labels") or {}).items():
        role = key.removeprefix(_ROLE_PREFIX) if key.startswith(_ROLE_PREFIX) else ""
        if key == _ROLE_LABEL:
            role = value
        if role:
            roles[role] = None
    return sorted(roles)


def _node_address(node: Plain, kind: str) -> str:
    for address in get(node, "status", "addresses") or ():
        if address.get("type") == kind:
            return str(address.get("address", ""))
    return NONE


def namespace_cells(namespace: Plain, now: datetime) -> list[Any]:
    """Return the cells of a namespace."""
    phase = get(namespace, "status", "phase") or ""
    return [name_of(namespace), phase, age(namespace, now)]


def event_cells(event: Plain, now: datetime) -> list[Any]:
    """Return the cells of an event of either group."""
    if str(event.get("apiVersion", "")).startswith(EVENTS_GROUP):
        event = to_core(event)
    first = since(event.get("firstTimestamp") or event.get("eventTime"), now)
    last = since(event["lastTimestamp"], now) if event.get("lastTimestamp") else first
    # An event that happened once has no count in the newer form.
    count = event.get("count") or 1
    if series := event.get("series"):
        last = since(series.get("lastObservedTime"), now)
        count = series.get("count") or 0
    about = event.get("involvedObject") or {}
    kind = about.get("kind", "").lower()
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        _event_source(event),
        event.get("message", "").strip(),
        first,
        count,
        name_of(event),
    ]


def _event_source(event: Plain) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def lease_cells(lease: Plain, now: datetime) -> list[Any]:
    """Return the cells of a lease."""
    return [name_of(lease), get(lease, "spec", "holderIdentity") or "", age(lease, now)]


def config_map_cells(config_map: Plain, now: datetime) -> list[Any]:
    """Return the cells of a config map."""
    data = config_map.get("data") or {}
    binary = config_map.get("binaryData") or {}
    return [name_of(config_map), len(data) + len(binary), age(config_map, now)]


def secret_cells(secret: Plain, now: datetime) -> list[Any]:
    """Return the cells of a secret."""
    count = len(secret.get("data") or {})
    return [name_of(secret), secret.get("type", ""), count, age(secret, now)]


def priority_class_cells(priority_class: Plain, now: datetime) -> list[Any]:
    """Return the cells of a priority class."""
    return [
        name_of(priority_class),
        priority_class.get("value") or 0,
        bool(priority_class.get("globalDefault")),
        age(priority_class, now),
        priority_class.get("preemptionPolicy", ""),
    ]


def runtime_class_cells(runtime_class: Plain, now: datetime) -> list[Any]:
    """Return the cells of a runtime class."""
    return [name_of(runtime_class), runtime_class.get("handler", ""), age(runtime_class, now)]


def quota_cells(quota: Plain, now: datetime) -> list[Any]:
    """Return the cells of a resource quota."""
    hard, used = get(quota, "status", "hard") or {}, get(quota, "status", "used") or {}
    texts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in texts.items() if name.startswith("limits.")]
    requests = [text for name, text in texts.items() if not name.startswith("limits.")]
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age(quota, now)]


def service_cells(service: Plain, now: datetime) -> list[Any]:
    """Return the cells of a service."""
    spec = service.get("spec") or {}
    ports = ",".join(map(_service_port, spec.get("ports") or ()))
    return [
        name_of(service),
        spec.get("type", ""),
        next(iter(spec.get("clusterIPs") or ()), NONE),
        _external_address(service),
        ports or NONE,
        age(service, now),
        label_text(spec.get("selector")),
    ]


def _service_port(port: Plain) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}"


def _external_address(service: Plain) -> str:
    spec = service.get("spec") or {}
    external = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            ingress = get(service, "status", "loadBalancer", "ingress") or ()
            found = {one.get("ip") or one.get("hostname", ""): None for one in ingress}
            return ",".join([*sorted(filter(None, found)), *external]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return UNKNOWN


def endpoints_cells(endpoints: Plain, now: datetime) -> list[Any]:
    """Return the cells of endpoints."""
    subsets = endpoints.get("subsets") or ()
    listed = [text for subset in subsets for text in _subset_texts(subset)]
    shown = _shortened(listed) if subsets else NONE
    return [name_of(endpoints), shown, age(endpoints, now)]


def _subset_texts(subset: Plain) -> list[str]:
    addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
    ports = subset.get("ports")
    if not ports:
        return addresses
    return [
        f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"
        for port in ports
        for address in addresses
    ]


def _shortened(texts: list[str]) -> str:
    shown = ",".join(texts[:_LISTED_MAX])
    rest = len(texts) - _LISTED_MAX
    return f"{shown} + {rest} more..." if rest > 0 else shown


def endpoint_slice_cells(endpoint_slice: Plain, now: datetime) -> list[Any]:
    """Return the cells of an endpoint slice."""
    ports = [
        str(port.get("port") or port.get("name") or "*")
        for port in endpoint_slice.get("ports") or ()
    ]
    addresses = [
        address
        for endpoint in endpoint_slice.get("endpoints") or ()
        for address in endpoint.get("addresses") or ()
    ]
    return [
        name_of(endpoint_slice),
        endpoint_slice.get("addressType", ""),
        _shortened(ports) or UNSET,
        _shortened(addresses) or UNSET,
        age(endpoint_slice, now),
    ]
