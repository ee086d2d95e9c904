"""Subresources that are objects of their own: the binding and the eviction of a pod, and scales.

A pod gets its node once. It is evicted if its disruption budget allows that. The scale of a
workload is its number of replicas.

Upstream: pkg/registry/{apps,core}/*/storage (BindingREST, EvictionREST, ScaleREST),
          plugin/pkg/admission/podtopologylabels, pkg/apis/core/validation (ValidatePodBinding),
          pkg/apis/autoscaling/validation (v1.36)
Rejects:  bindings of pods that are bound, gated or being deleted; the node is not checked;
          evictions that a budget does not allow, or that more than one budget covers; negative
          numbers of replicas.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kubesched.api.core import Pod
from kubesched.api.field_errors import aggregate
from kubesched.api.meta import LabelSelector
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.selectors import compile_label_selector
from kubesched.apiserver.admission.pods import topology_labels
from kubesched.apiserver.deletion import check_preconditions, delete, options_of
from kubesched.apiserver.plain import Plain, get, only
from kubesched.apiserver.registry import ObjectRegistry, precondition_failed
from kubesched.apiserver.request import Operation
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import (
    FieldErrors,
    StatusError,
    bad_request,
    conflict,
    details_of,
    internal,
    invalid_kind,
)
from kubesched.cluster.eviction import BrokenBudgetError, NotAllowedError, grant, plain_status
from kubesched.cluster.server import with_condition
from kubesched.cluster.store import Key

# Bindings.


def bind(registry: ObjectRegistry, operation: Operation, binding: Plain) -> None:
    """Give a pod the node of a binding; raises StatusError if it cannot have it."""
    metadata = binding.get("metadata", {})
    name = operation.name or metadata.get("name", "")
    _check(binding, name)
    pods = registry.resources.find_kind("v1", "Pod")
    assert pods is not None, "pods are always served"
    on_pod = operation._replace(resource=pods, name=name)
    found = registry.get(on_pod)
    before = found.plain["metadata"]
    for what, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        wanted = metadata.get(field)
        if wanted and wanted != before[field]:
            raise precondition_failed(on_pod, what, wanted, before[field])
    _check_pod(found.plain)
    if operation.is_dry_run:
        return
    labels, target = dict(metadata.get("labels") or {}), binding["target"]
    # Elsewhere, a target without a kind is a node, too.
    if target.get("kind") == "Node":
        labels |= topology_labels(target["name"], registry.lookup)
    bound = _bound(found.plain, binding, labels, registry.clock.timestamp())
    registry.write(on_pod.key, bound)


def _check(binding: Plain, name: str) -> None:
    if binding.get("metadata", {}).get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target, errors = binding.get("target", {}), FieldErrors()
    kind = target.get("kind", "")
    if kind not in ("", "Node"):
        errors.not_supported("target.kind", kind, ("Node", "<empty>"))
    if not target.get("name"):
        errors.required("target.name")
    if errors:
        raise internal(aggregate(map(str, errors)))


def _check_pod(pod: Plain) -> None:
    metadata, spec = pod["metadata"], pod["spec"]
    name = metadata["name"]
    if metadata.get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")


def _refused(name: str, why: str) -> StatusError:
    return conflict("", "pods/binding", name, why)


def _bound(pod: Plain, binding: Plain, labels: Plain, now: str) -> Plain:
    metadata = dict(pod["metadata"])
    if annotations := binding.get("metadata", {}).get("annotations"):
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    if labels:
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
    condition = {"type": "PodScheduled", "status": "True"}
    status = with_condition(pod.get("status", {}), condition, now)
    status.pop("nominatedNodeName", None)
    spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}


# Evictions.

_BUDGETS: Final = "poddisruptionbudgets.policy"
_EVICTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def evict(registry: ObjectRegistry, operation: Operation, eviction: Plain) -> None:
    """Delete the pod of a request; raises StatusError if its budget does not allow that."""
    if eviction.get("metadata", {}).get("name", "") != operation.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = options_of(eviction.get("deleteOptions") or {})
    if operation.is_dry_run and not options.dry_run:
        options = msgspec.structs.replace(options, dry_run=("All",))
    pod = registry.get(operation)
    charged = _charged_budget(registry, pod.typed(Pod))
    check_preconditions(operation.resource, pod.plain["metadata"], options)
    # They are checked once: writing the reason below gives the pod another version.
    options = msgspec.structs.replace(options, preconditions=None)
    if not options.dry_run:
        if charged is not None:
            _count_disruption(registry, charged)
        before, now = pod.plain.get("status", {}), registry.clock.timestamp()
        if (status := with_condition(before, _EVICTED, now)) != before:
            registry.write(operation.key, {**pod.plain, "status": status})
    delete(registry, operation._replace(subresource=""), options)


def _charged_budget(registry: ObjectRegistry, pod: Pod) -> PodDisruptionBudget | None:
    """Return the budget that an eviction charges; raises StatusError if it does not allow that."""
    stored = registry.store.list(_BUDGETS, pod.metadata.namespace)
    budgets = (one.typed(PodDisruptionBudget) for one in stored)
    try:
        return grant(pod, budgets, registry.clock.timestamp())
    except NotAllowedError as error:
        details: Plain = {"causes": [{"reason": "DisruptionBudget", "message": error.why}]}
        if error.retry_after_seconds is not None:
            details["retryAfterSeconds"] = error.retry_after_seconds
        raise StatusError(error.code, error.reason, error.message, details) from None
    except BrokenBudgetError as error:
        details = details_of("policy", "poddisruptionbudget", error.budget)
        raise StatusError(error.code, error.reason, error.message, details) from None


def _count_disruption(registry: ObjectRegistry, budget: PodDisruptionBudget) -> None:
    """Store a budget's status with one disruption less."""
    key = Key(_BUDGETS, budget.metadata.namespace, budget.metadata.name)
    found = registry.store.find(key)
    assert found is not None, "just listed"
    registry.write(key, {**found.plain, "status": plain_status(budget.status)})


# Scales.

_GROUP: Final = "autoscaling"
_API_VERSION: Final = f"{_GROUP}/v1"
# The path is the same in scales and in all that can be scaled.
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_SCALE_PATHS: Final = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}


def scale_of(resource: Resource, workload: Plain) -> Plain:
    """Return the scale of a workload."""
    paths = _scale_paths(resource)
    replicas = get(workload, *paths["specReplicasPath"])
    shown: Plain = {"replicas": get(workload, *paths["statusReplicasPath"]) or 0}
    selector_path = paths["labelSelectorPath"]
    if selector_path and (selector := get(workload, *selector_path)):
        if resource.built_in_kind == "ReplicationController":
            selector = {"matchLabels": selector}
        if resource.definition is None:
            selector = str(compile_label_selector(msgspec.convert(selector, LabelSelector)))
        shown["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": _API_VERSION,
        "metadata": only(workload["metadata"], *_METADATA),
        "spec": {"replicas": replicas} if replicas else {},
        "status": shown,
    }


def _scale_paths(resource: Resource) -> Mapping[str, Sequence[str]]:
    """Return the paths of the fields that a scale shows; a CustomResourceDefinition has its own."""
    paths = _SCALE_PATHS
    if resource.definition is not None:
        paths = {"labelSelectorPath": "", **resource.defined_version["subresources"]["scale"]}
    return {name: list(filter(None, path.split("."))) for name, path in paths.items()}


def check_scale(resource: Resource, workload: Plain, scale: Plain) -> None:
    """Raise StatusError if a scale belongs to another workload."""
    uid, found = scale.get("metadata", {}).get("uid"), workload["metadata"]["uid"]
    if uid and uid != found:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        name = workload["metadata"]["name"]
        raise conflict(resource.group, f"{resource.plural}/scale", name, why)


def scaled(resource: Resource, workload: Plain, scale: Plain) -> Plain:
    """Return a workload with the replicas of a scale; raises StatusError for a negative number."""
    metadata = scale.get("metadata", {})
    replicas = scale.get("spec", {}).get("replicas", 0)
    if replicas < 0:
        errors = FieldErrors()
        errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_kind(_GROUP, "Scale", workload["metadata"]["name"], errors)
    # The scale's version and uid are preconditions on the workload.
    given = {name: metadata[name] for name in ("uid", "resourceVersion") if metadata.get(name)}
    changed = _with_value(workload, _scale_paths(resource)["specReplicasPath"], replicas)
    return changed | {"metadata": {**workload["metadata"], **given}}


def _with_value(obj: Plain, path: Sequence[str], value: Any) -> Plain:
    name, *below = path
    return {**obj, name: _with_value(obj.get(name) or {}, below, value) if below else value}
