"""The scale of a workload: its number of replicas, seen as an object of its own.

Upstream: pkg/registry/{apps,core}/*/storage (ScaleREST), pkg/apis/autoscaling/validation (v1.36)
Rejects:  negative numbers of replicas.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any, Final

from kubesched.apiserver.field_errors import FieldErrors, invalid_kind
from kubesched.apiserver.managed_fields import Managers, Ownership, decode, with_managers
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import conflict_of

_GROUP: Final = "autoscaling"
_API_VERSION: Final = f"{_GROUP}/v1"
# The path is the same in scales and in all that can be scaled.
_REPLICAS: Final = frozenset({("f:spec", "f:replicas")})
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
        "apiVersion": _API_VERSION,
        "metadata": {name: metadata[name] for name in _METADATA if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": shown,
    }


def managed_scale_of(resource: Resource, workload: Plain) -> Plain:
    """Return the scale of a workload with the managers of its number of replicas."""
    managers: Managers = {
        owner._replace(api_version=owner.api_version and _API_VERSION): Ownership(
            _REPLICAS, _API_VERSION, ownership.time
        )
        for owner, ownership in decode(workload).items()
        if ownership.fields >= _REPLICAS
    }
    return with_managers(scale_of(resource, workload), managers)


def with_managers_of_scale(resource: Resource, workload: Plain, scale: Plain) -> Plain:
    """Return a workload whose number of replicas is managed as a scale says."""
    of_scale = {
        owner._replace(api_version=owner.api_version and resource.api_version)
        for owner, ownership in decode(scale).items()
        if ownership.fields >= _REPLICAS
    }
    managers: Managers = {}
    for owner, ownership in decode(workload).items():
        if owner in of_scale or not ownership.fields >= _REPLICAS:
            managers[owner] = ownership
        elif left := ownership.fields - _REPLICAS:
            managers[owner] = Ownership(left, ownership.api_version, ownership.time)
    for owner in of_scale - managers.keys():
        managers[owner] = Ownership(_REPLICAS, resource.api_version)
    return with_managers(workload, managers)


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


def check_scale(resource: Resource, workload: Plain, scale: Plain) -> None:
    """Check that a scale is that of a workload.

    Raises:
        StatusError: It has another identity.
    """
    uid, found = scale.get("metadata", {}).get("uid"), workload["metadata"]["uid"]
    if uid and uid != found:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        name = workload["metadata"]["name"]
        raise conflict_of(resource.group, f"{resource.plural}/scale", name, why)


def scaled(workload: Plain, scale: Plain) -> Plain:
    """Return a workload with the replicas of a scale.

    Raises:
        StatusError: The number is negative.
    """
    metadata = scale.get("metadata", {})
    replicas = scale.get("spec", {}).get("replicas", 0)
    if replicas < 0:
        errors = FieldErrors()
        errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_kind(_GROUP, "Scale", workload["metadata"]["name"], errors)
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
