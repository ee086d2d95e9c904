"""The scale of a workload: its number of replicas, seen as an object of its own.

Upstream: pkg/registry/{apps,core}/*/storage (ScaleREST), pkg/apis/autoscaling/validation (v1.36)
Rejects:  negative numbers of replicas.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any, Final

from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resource import Resource
from kubesched.apiserver.status import cause, invalid

_GROUP: Final = "autoscaling"
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def scale_of(resource: Resource, workload: Plain) -> Plain:
    """Return the scale of a workload."""
    metadata = workload["metadata"]
    spec, status = workload.get("spec", {}), workload.get("status", {})
    replicas = spec.get("replicas")
    shown: Plain = {"replicas": status.get("replicas", 0)}
    selector = _selector_text(resource, spec.get("selector"))
    if selector:
        shown["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {name: metadata[name] for name in _METADATA if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": shown,
    }


def _selector_text(resource: Resource, selector: Any) -> str:
    if not selector:
        return ""
    if resource.kind == "ReplicationController":
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    terms = [(key, f"{key}={value}") for key, value in selector.get("matchLabels", {}).items()]
    terms += [(one["key"], _expression_text(one)) for one in selector.get("matchExpressions", ())]
    return ",".join(text for _, text in sorted(terms))


def _expression_text(expression: Plain) -> str:
    key, operator = expression["key"], expression["operator"]
    if operator in _OPERATORS:
        values = ",".join(sorted(expression.get("values", ())))
        return f"{key} {_OPERATORS[operator]} ({values})"
    return key if operator == "Exists" else f"!{key}"


def scaled(workload: Plain, scale: Plain) -> Plain:
    """Return a workload with the replicas of a scale.

    Raises:
        StatusError: The number is negative.
    """
    metadata = scale.get("metadata", {})
    replicas = scale.get("spec", {}).get("replicas", 0)
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        fault = cause("FieldValueInvalid", "spec.replicas", message)
        raise invalid(_GROUP, "Scale", workload["metadata"]["name"], [fault])
    kept = dict(workload["metadata"])
    # The scale's version and identity say which workload is meant.
    kept.pop("resourceVersion", None)
    for name in ("uid", "resourceVersion"):
        if metadata.get(name):
            kept[name] = metadata[name]
    return {
        **workload,
        "metadata": kept,
        "spec": {**workload.get("spec", {}), "replicas": replicas},
    }
