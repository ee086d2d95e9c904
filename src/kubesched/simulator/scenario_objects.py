"""Converts a scenario's nodes and workloads to Kubernetes objects.

Rejects:  templates that do not match the Kubernetes types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from msgspec.structs import replace

from kubesched.api.apps import DaemonSet, DaemonSetSpec, ReplicaSet, ReplicaSetSpec
from kubesched.api.codec import decode_object
from kubesched.api.core import Node, Pod, PodTemplateSpec
from kubesched.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubesched.api.scheduling import PriorityClass
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.simulator.scenario import (
    NodeGroup,
    NodeSelection,
    PodSelection,
    PriorityClassSpec,
    ScenarioWorkload,
)

_APP = "app"

Json = dict[str, Any]


def _mapping(raw: Mapping[str, Any], name: str) -> Json:
    found = raw.get(name)
    return dict(found) if isinstance(found, Mapping) else {}


def is_selected(metadata: ObjectMeta, selection: NodeSelection | PodSelection) -> bool:
    """Whether an object has a name and the labels that a selection asks for."""
    name, labels, patterns = metadata.name, metadata.labels, selection.names
    is_named = not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    return is_named and all(labels.get(key) == value for key, value in selection.labels.items())


def nodes_of(group: NodeGroup) -> Iterator[Node]:
    """Yield the nodes of a group that names no trace.

    Raises:
        DecodeError: if the template is not a valid node.
    """
    template = group.template
    metadata, spec, status = (_mapping(template, part) for part in ("metadata", "spec", "status"))
    amounts = {"pods": 110, **_mapping(status, "allocatable"), **group.allocatable}
    for number in range(group.count):
        name = f"{group.name}-{number}"
        labels = {HOSTNAME: name, **_mapping(metadata, "labels"), **group.labels}
        if group.zones:
            labels[ZONE] = group.zones[number % len(group.zones)]
        node: Json = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {**metadata, "name": name, "labels": labels},
            "spec": {**spec, "taints": [*(spec.get("taints") or ()), *group.taints]},
            "status": {**status, "allocatable": amounts, "capacity": amounts},
        }
        yield cast("Node", decode_object(node))


def template_of(workload: ScenarioWorkload) -> PodTemplateSpec:
    """Return the template of a workload's pods.

    Raises:
        DecodeError: if it is not a valid pod template.
    """
    metadata, spec = (_mapping(workload.template, part) for part in ("metadata", "spec"))
    labels = {_APP: workload.name, **_mapping(metadata, "labels"), **workload.labels}
    containers = spec.get("containers") or [{"name": "main", "image": workload.name}]
    if workload.requests and isinstance(containers, list) and isinstance(containers[0], Mapping):
        first = dict(containers[0])
        resources = _mapping(first, "resources")
        requests = {**_mapping(resources, "requests"), **workload.requests}
        first["resources"] = {**resources, "requests": requests}
        containers = [first, *containers[1:]]
    if workload.priority_class_name:
        spec["priorityClassName"] = workload.priority_class_name
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": workload.name, "labels": labels},
        "spec": {**spec, "containers": containers},
    }
    decoded = cast("Pod", decode_object(pod))
    return PodTemplateSpec(metadata=replace(decoded.metadata, name=""), spec=decoded.spec)


def pod_of_template(
    template: PodTemplateSpec, name: str, namespace: str, owner: OwnerReference | None = None
) -> Pod:
    """Return a pod that is made from a template."""
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=() if owner is None else (owner,),
    )
    return Pod(api_version="v1", kind="Pod", metadata=metadata, spec=template.spec)


def replica_set_of(workload: ScenarioWorkload, template: PodTemplateSpec) -> ReplicaSet:
    """Return the replica set of a workload that is a deployment."""
    deployment = workload.deployment
    assert deployment is not None, "only of deployments"
    return ReplicaSet(
        api_version="apps/v1",
        kind="ReplicaSet",
        metadata=ObjectMeta(name=workload.name, namespace=workload.namespace),
        spec=ReplicaSetSpec(
            replicas=deployment.replicas, selector=_selector(template), template=template
        ),
    )


def daemon_set_of(workload: ScenarioWorkload, template: PodTemplateSpec) -> DaemonSet:
    """Return the daemon set of a workload that is a daemon set."""
    return DaemonSet(
        api_version="apps/v1",
        kind="DaemonSet",
        metadata=ObjectMeta(name=workload.name, namespace=workload.namespace),
        spec=DaemonSetSpec(selector=_selector(template), template=template),
    )


def disruption_budget_of(workload: ScenarioWorkload) -> PodDisruptionBudget | None:
    """Return a workload's disruption budget; None if it has none."""
    budget = workload.disruption_budget
    if budget is None:
        return None
    return PodDisruptionBudget(
        api_version="policy/v1",
        kind="PodDisruptionBudget",
        metadata=ObjectMeta(name=workload.name, namespace=workload.namespace),
        spec=PodDisruptionBudgetSpec(
            min_available=budget.min_available,
            max_unavailable=budget.max_unavailable,
            selector=LabelSelector(match_labels={_APP: workload.name}),
            unhealthy_pod_eviction_policy=budget.unhealthy_pod_eviction_policy,
        ),
    )


def _selector(template: PodTemplateSpec) -> LabelSelector:
    return LabelSelector(match_labels={_APP: template.metadata.labels[_APP]})


def priority_class_of(spec: PriorityClassSpec) -> PriorityClass:
    """Return a priority class."""
    return PriorityClass(
        api_version="scheduling.k8s.io/v1",
        kind="PriorityClass",
        metadata=ObjectMeta(name=spec.name),
        value=spec.value,
        global_default=spec.global_default,
        preemption_policy=spec.preemption_policy or None,
    )
