"""Defaults of the core group that depend on other fields.

Upstream: pkg/apis/core/v1/defaults.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.apiserver.defaults.older_fields import drop_old_annotations
from kubesched.apiserver.image_name import is_latest
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resource_amounts import (
    is_huge_page,
    is_pod_level,
    is_shared,
    of_containers,
)

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_CLIENT_IP_SECONDS: Final = 10_800


def _pod(pod: Plain) -> None:
    spec: Plain = pod["spec"]
    drop_old_annotations(pod)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for container in containers:
        _requests_from_limits(container["resources"])
    if spec.get("resources") is not None:
        _fill_in_huge_page_limits(spec)
        _fill_in_pod_requests(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        for container in containers:
            for port in container.get("ports") or ():
                port["hostPort"] = port.get("hostPort") or port["containerPort"]


def _requests_from_limits(resources: Plain) -> None:
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests") or {}
        resources["requests"] = {**limits, **requests}


def _fill_in_huge_page_limits(spec: Plain) -> None:
    """Sum the containers' limits of huge pages up for a pod that has resources of its own."""
    resources = spec["resources"]
    if not resources.get("limits") and not resources.get("requests"):
        return
    limits = dict(resources.get("limits") or {})
    for name, amount in of_containers(spec, "limits").items():
        is_asked_for = name in (resources.get("requests") or {})
        if is_huge_page(name) and name not in limits and not is_asked_for:
            limits[name] = str(amount)
    if limits:
        resources["limits"] = limits


def _fill_in_pod_requests(spec: Plain) -> None:
    """Requests of a pod that has limits: those of its containers, or else the limits."""
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in of_containers(spec, "requests").items():
        if is_shared(name):
            requests.setdefault(name, str(amount))
    for name, amount in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def _container(container: Plain) -> None:
    if not container.get("imagePullPolicy"):
        latest = is_latest(container.get("image", ""))
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"


def _volume(volume: Plain) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        latest = is_latest(image.get("reference", ""))
        image["pullPolicy"] = "Always" if latest else "IfNotPresent"


def _service(service: Plain) -> None:
    spec: Plain = service["spec"]
    kind = spec.get("type") or "ClusterIP"
    _session_affinity(spec)
    for port in spec.get("ports") or ():
        port["targetPort"] = port["targetPort"] or port["port"]
    is_exposed = kind in ("LoadBalancer", "NodePort") or (
        kind == "ClusterIP" and bool(spec.get("externalIPs"))
    )
    if is_exposed and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if kind in ("ClusterIP", "LoadBalancer", "NodePort"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in service["status"]["loadBalancer"].get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def _session_affinity(spec: Plain) -> None:
    if spec.get("sessionAffinity") == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _CLIENT_IP_SECONDS}}
    elif spec.get("sessionAffinity", "None") == "None":
        spec.pop("sessionAffinityConfig", None)


def _namespace(namespace: Plain) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**metadata.get("labels", {}), _NAME_LABEL: metadata["name"]}


def _node_status(status: Plain) -> None:
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])


def _replication_controller(controller: Plain) -> None:
    template = controller["spec"].get("template") or {}
    labels = template.get("metadata", {}).get("labels")
    if labels:
        controller["spec"].setdefault("selector", dict(labels))
        controller["metadata"].setdefault("labels", dict(labels))


def _limit_range_item(item: Plain) -> None:
    if item["type"] != "Container":
        return
    default = {**item.get("max", {}), **item.get("default", {})}
    request = {**item.get("min", {}), **default, **item.get("defaultRequest", {})}
    if default:
        item["default"] = default
    if request:
        item["defaultRequest"] = request


DEFAULTS: Final[Mapping[str, Callable[[Plain], None]]] = {
    "core_v1/Container": _container,
    "core_v1/EphemeralContainer": _container,
    "core_v1/LimitRangeItem": _limit_range_item,
    "core_v1/Namespace": _namespace,
    "core_v1/NodeStatus": _node_status,
    "core_v1/Pod": _pod,
    "core_v1/ReplicationController": _replication_controller,
    "core_v1/Service": _service,
    "core_v1/Volume": _volume,
}
