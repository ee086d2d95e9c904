"""Bindings: a pod gets its node, once.

Upstream: pkg/registry/core/pod/storage (BindingREST), plugin/pkg/admission/podtopologylabels,
          pkg/apis/core/validation (ValidatePodBinding, v1.36)
Rejects:  bindings of pods that are bound, gated, or being deleted; that the node exists is not
          checked.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.admission import topology_labels
from kubesched.apiserver.operation import Operation
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.registry import Registry, precondition_failed
from kubesched.apiserver.status import StatusError, bad_request, conflict_of, internal
from kubesched.apiserver.stored_object import key_of

_TARGET_KINDS: Final = ("", "Node")


def bind(registry: Registry, operation: Operation, binding: Plain) -> None:
    """Give a pod the node of a binding.

    Args:
        registry: Where the pod is.
        operation: The request.
        binding: As it was sent.

    Raises:
        StatusError: The binding makes no sense, or the pod cannot be bound.
    """
    metadata = binding.get("metadata", {})
    name = operation.name or metadata.get("name", "")
    _check(binding, name)
    pods = registry.resources.find_kind("v1", "Pod")
    assert pods is not None, "pods are always served"
    found = registry.get(pods, operation.namespace, name)
    before = found.plain["metadata"]
    for what, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        wanted = metadata.get(field)
        if wanted and wanted != before[field]:
            raise precondition_failed(pods, operation.namespace, name, what, wanted, before[field])
    _check_pod(found.plain)
    if operation.is_dry_run:
        return
    labels = _topology_labels(registry, binding)
    registry.write(
        key_of(pods, operation.namespace, name),
        _bound(found.plain, binding, labels, registry.clock.timestamp()),
    )


def _check(binding: Plain, name: str) -> None:
    if binding.get("metadata", {}).get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target", {})
    errors = []
    kind = target.get("kind", "")
    if kind not in _TARGET_KINDS:
        errors.append(
            f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        )
    if not target.get("name"):
        errors.append("target.name: Required value")
    if errors:
        raise internal(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


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
    return conflict_of("", "pods/binding", name, why)


def _topology_labels(registry: Registry, binding: Plain) -> Plain:
    """Return the labels of a binding, and those that say where its node stands."""
    labels = dict(binding.get("metadata", {}).get("labels") or {})
    target = binding["target"]
    # A target without a kind means a node everywhere but here.
    if target.get("kind") == "Node":
        labels |= topology_labels(target["name"], registry.lookup)
    return labels


def _bound(pod: Plain, binding: Plain, labels: Plain, now: str) -> Plain:
    metadata = dict(pod["metadata"])
    annotations = binding.get("metadata", {}).get("annotations")
    if annotations:
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    if labels:
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
    condition = {"type": "PodScheduled", "status": "True"}
    status = with_condition(pod.get("status", {}), condition, now)
    status.pop("nominatedNodeName", None)
    spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}


def with_condition(status: Plain, condition: Plain, now: str) -> Plain:
    """Return a pod's status with a condition set; its time stays if its status does."""
    conditions = list(status.get("conditions", []))
    whole = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for position, one in enumerate(conditions):
        if one["type"] == condition["type"]:
            if one["status"] == condition["status"]:
                whole["lastTransitionTime"] = one.get("lastTransitionTime")
            conditions[position] = whole
            break
    else:
        conditions.append(whole)
    return {**status, "conditions": conditions}
