"""Defaults: what the server fills in when an object is created, changed or read.

Most of them are in the tables of types, next to their fields; those that depend on other fields
are functions here, by type, and so are fields that have two names and are kept in step.

Upstream: pkg/apis/*/*/defaults.go, zz_generated.defaults.go (v1.36)
Differs:  the time of a device taint is neither filled in nor updated when its effect changes;
          autoscalers get the number of replicas only. Services keep a configuration of affinity
          that is incomplete or of no use, and addresses in their statuses get no mode.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubesched.api.pod_requests import is_pod_level_resource
from kubesched.api.well_known import NAMESPACE_NAME
from kubesched.apiserver.amounts import SHARED_RESOURCES, of_containers
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import ObjectType, decoded, objects_in
from kubesched.apiserver.status import StatusError, bad_request
from kubesched.apiserver.values import SchemaError


def with_defaults(resource: Resource, obj: Plain) -> Plain:
    """Return an object as the server writes it, with its defaults; unknown fields are dropped.

    Raises StatusError if a value does not fit.
    """
    try:
        return completed(resource.type, obj)[0]
    except SchemaError as error:
        raise unfit(resource, str(error)) from None


def unfit(resource: Resource, why: str) -> StatusError:
    """Return the error for an object that cannot be one of its kind."""
    kind = resource.kind
    return bad_request(
        f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
    )


def completed(object_type: ObjectType, value: Any) -> tuple[Plain, list[str]]:
    """Return a body as `schema.decoded` does, with its defaults."""
    read, problems = decoded(object_type, value)
    _fill_in(object_type, read)
    return read, problems


def _fill_in(object_type: ObjectType, obj: Plain) -> None:
    if (function := _FUNCTIONS.get(object_type.name)) is not None:
        function(obj)
    for field in object_type.defaulted:
        value, condition = obj.get(field.name), field.default_if
        is_wanted = not condition or obj.get(condition[0]) in condition[1:]
        if is_wanted and (value is None or (not value and not field.is_pointer)):
            obj[field.name] = deep_copy(field.default)
    for name, value in obj.items():
        known = object_type.fields.get(name)
        if known is not None and known.inner is not None and value is not None:
            for one in objects_in(value, known.type):
                _fill_in(known.inner, one)


# The core group.


def _pod(pod: Plain) -> None:
    spec: Plain = pod["spec"]
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for container in containers:
        resources = container["resources"]
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
    if spec.get("resources") is not None:
        _fill_in_pod_requests(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        for container in containers:
            for port in container.get("ports") or ():
                port["hostPort"] = port.get("hostPort") or port["containerPort"]


def _fill_in_pod_requests(spec: Plain) -> None:
    """Fill in the requests of a pod that has limits, from its containers or else its limits."""
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in of_containers(spec, "requests").items():
        if name in SHARED_RESOURCES:
            requests.setdefault(name, str(amount))
    for name, amount in limits.items():
        if is_pod_level_resource(name):
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
    for port in spec.get("ports") or ():
        port["targetPort"] = port["targetPort"] or port["port"]
    if spec.get("externalIPs") and spec.get("type", "ClusterIP") == "ClusterIP":
        spec.setdefault("externalTrafficPolicy", "Cluster")


def _namespace(namespace: Plain) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**metadata.get("labels", {}), NAMESPACE_NAME: metadata["name"]}


def _node_status(status: Plain) -> None:
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])


def _replication_controller(controller: Plain) -> None:
    template = controller["spec"].get("template") or {}
    if labels := template.get("metadata", {}).get("labels"):
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


# Fields with two names, kept in step for older and newer clients.


def _pod_spec(spec: Plain) -> None:
    if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _pod_status(status: Plain) -> None:
    one, several = status.get("podIP"), status.get("podIPs")
    if one and (not several or several[0].get("ip") != one):
        status["podIPs"] = [{"ip": one}]
    elif several and several[0].get("ip"):
        status["podIP"] = several[0]["ip"]


def _node_spec(spec: Plain) -> None:
    one, several = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not several or several[0] != one):
        spec["podCIDRs"] = [one]
    elif several and several[0]:
        spec["podCIDR"] = several[0]


def _secret(secret: Plain) -> None:
    texts: Mapping[str, str] = secret.pop("stringData", {})
    if texts:
        added = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        secret["data"] = {**secret.get("data", {}), **added}


def _stateful_set_spec(spec: Plain) -> None:
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}


# Workloads.


def _stateful_set_strategy(strategy: Plain) -> None:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})


def _job(job: Plain) -> None:
    spec: Plain = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", 2**31 - 1 if per_index else 6)
    if labels := spec["template"]["metadata"].get("labels"):
        job["metadata"].setdefault("labels", dict(labels))
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    has_policy = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if has_policy else "TerminatingOrFailed")


# Other groups.


def _network_policy_spec(spec: Plain) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _custom_resource(definition: Plain) -> None:
    spec, status = definition["spec"], definition["status"]
    names = spec["names"]
    if not names.get("singular"):
        names["singular"] = names["kind"].lower()
    if not names.get("listKind") and names["kind"]:
        names["listKind"] = f"{names['kind']}List"
    spec.setdefault("conversion", {"strategy": "None"})
    if not status.get("storedVersions"):
        stored = (one["name"] for one in spec["versions"] or () if one["storage"])
        status["storedVersions"] = list(stored)[:1] or None


_IDENTIFIER: Final = re.compile("[a-f0-9]{64}")
_COMPONENT: Final = re.compile("[a-z0-9]+(?:(?:[.]|_{1,2}|-+)[a-z0-9]+)*")


def is_latest(image: str) -> bool:
    """Return whether an image is the latest one: it has neither another tag nor a digest.

    False for a malformed name.
    """
    if "@" in image or _IDENTIFIER.fullmatch(image):
        return False
    name, _, tag = image.rpartition("/")[2].partition(":")
    return tag in ("", "latest") and _COMPONENT.fullmatch(name) is not None


_FUNCTIONS: Final[Mapping[str, Callable[[Plain], None]]] = {
    "apiextensions_v1/CustomResourceDefinition": _custom_resource,
    "apps_v1/StatefulSetSpec": _stateful_set_spec,
    "apps_v1/StatefulSetUpdateStrategy": _stateful_set_strategy,
    "batch_v1/Job": _job,
    "core_v1/Container": _container,
    "core_v1/EphemeralContainer": _container,
    "core_v1/LimitRangeItem": _limit_range_item,
    "core_v1/Namespace": _namespace,
    "core_v1/NodeSpec": _node_spec,
    "core_v1/NodeStatus": _node_status,
    "core_v1/Pod": _pod,
    "core_v1/PodSpec": _pod_spec,
    "core_v1/PodStatus": _pod_status,
    "core_v1/ReplicationController": _replication_controller,
    "core_v1/Secret": _secret,
    "core_v1/Service": _service,
    "core_v1/Volume": _volume,
    "networking_v1/NetworkPolicySpec": _network_policy_spec,
}
"""What depends on other fields, by type of objects."""
