"""Converts a scenario's nodes and workloads to Kubernetes objects, and the rows of a trace to pods.

Reads:    templates; traces of openb, and tables in CSV or Parquet with the columns `name` and
          `arrival`, and any of `duration`, `priorityClassName`, `cpu`, `memory`,
          `ephemeral-storage` and extended resources, such as `nvidia.com/gpu`; times are numbers,
          requests quantities; an empty value is not a value
Rejects:  templates that do not match the Kubernetes types; of tables other columns, names that are
          there twice, negative times and requests.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from msgspec.structs import replace

from kubesched.api.apps import DaemonSet, DaemonSetSpec, ReplicaSet, ReplicaSetSpec
from kubesched.api.codec import DecodeError, Source, decode_object
from kubesched.api.core import Node, Pod, PodTemplateSpec
from kubesched.api.field_errors import FieldError, child, not_supported
from kubesched.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubesched.api.quantity import NANO, Quantity, QuantityError, nano_value
from kubesched.api.scheduling import PriorityClass
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.simulator.scenario import (
    NodeGroup,
    NodeSelection,
    PodSelection,
    PriorityClassSpec,
    ScenarioWorkload,
)
from kubesched.simulator.traces import (
    TracedPod,
    TraceRecord,
    check_columns,
    checked_once,
    read_file,
    rows_of,
    trace_pods,
    with_run_seconds,
)

_APP = "app"

Json = dict[str, Any]


def _mapping(raw: Mapping[str, Any], name: str) -> Json:
    found = raw.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise DecodeError(Source("", 0), "must be a mapping", path=name)
    return dict(found)


def is_selected(metadata: ObjectMeta, selection: NodeSelection | PodSelection) -> bool:
    """Whether an object has a name and the labels that a selection asks for."""
    name, labels, patterns = metadata.name, metadata.labels, selection.names
    is_named = not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    return is_named and all(labels.get(key) == value for key, value in selection.labels.items())


def node_names(group: NodeGroup) -> list[str]:
    """Return the names of the nodes of a group without a trace."""
    return [f"{group.name}-{number}" for number in range(group.count)]


def nodes_of(group: NodeGroup) -> Iterator[Node]:
    """Yield the nodes of a group without a trace; raises DecodeError if they are invalid."""
    template = group.template
    metadata, spec, status = (_mapping(template, part) for part in ("metadata", "spec", "status"))
    amounts = {"pods": 110, **_mapping(status, "allocatable"), **group.allocatable}
    for number, name in enumerate(node_names(group)):
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
    """Return the template of a workload's pods; raises DecodeError if it is invalid."""
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


def disruption_budget_of(
    workload: ScenarioWorkload, template: PodTemplateSpec
) -> PodDisruptionBudget | None:
    """Return the disruption budget of a workload's pods; None if it has none."""
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
            # All labels: workloads of one application often share the label `app`.
            selector=LabelSelector(match_labels=template.metadata.labels),
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


def unknown_classes(
    workloads: Sequence[ScenarioWorkload], known: Collection[str]
) -> Iterator[FieldError]:
    """Yield an error for every workload of a priority class that does not exist."""
    for i, workload in enumerate(workloads):
        own = workload.priority_class_name
        spec = workload.template.get("spec")
        name = own or (isinstance(spec, Mapping) and spec.get("priorityClassName"))
        if name and name not in known:
            path = "priorityClassName" if own else "template.spec.priorityClassName"
            yield not_supported(child("workloads", i, path), name, sorted(known))


# Pods of traces.

_REQUIRED: Final = ("name", "arrival")
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_KNOWN: Final = (*_REQUIRED, "duration", "priorityClassName", *_RESOURCES)
_NOT_OF_OPENB: Final = ("requests", "labels", "template")
_EXPECTED: Final = f"a trace has {', '.join(_KNOWN)} and resources such as nvidia.com/gpu"


def pods_of_trace(workload: ScenarioWorkload, classes: Collection[str]) -> list[TracedPod]:
    """Return the pods of a workload's trace in order of arrival, of openb's list or a table.

    `classes` are the names of all priority classes. Raises DecodeError if the file cannot be read,
    a column or value is wrong, or the workload sets what pods of openb do not take from it.
    """
    trace = workload.trace
    assert trace is not None, "only of workloads with a trace"
    rows = rows_of(read_file(trace.pods), trace.pods)
    _, header = next(rows, (0, ()))
    if "cpu_milli" in header:
        ignored = [name for name in _NOT_OF_OPENB if getattr(workload, name)]
        if ignored:
            fields = " and ".join(ignored)
            raise DecodeError(
                Source(trace.pods, 0),
                f"pods of openb do not take {fields} of workload {workload.name}; leave that out",
            )
        return trace_pods(trace.pods, trace.speed, trace.count)
    known = (*_KNOWN, *(name for name in header if "/" in name))
    check_columns(header, _REQUIRED, known, trace.pods, _EXPECTED)
    records = (TraceRecord(trace.pods, line, header, values) for line, values in rows)
    found = [*_pods(checked_once(records, "name"), workload, classes)]
    found.sort(key=lambda traced: traced.at)
    begin = found[0].at if found else 0.0
    return [TracedPod(at - begin, pod) for at, pod in found[: trace.count]]


def _pods(
    records: Iterator[TraceRecord], workload: ScenarioWorkload, classes: Collection[str]
) -> Iterator[TracedPod]:
    """Yield the pods of rows, each from the workload's template; at times from 0."""
    assert workload.trace is not None, "only of workloads with a trace"
    template, speed = template_of(workload), workload.trace.speed
    templates: dict[tuple[str, ...], PodTemplateSpec] = {}
    for record in records:
        own = {
            name: text
            for name, text in record.values.items()
            if text and name not in (*_REQUIRED, "duration")
        }
        key = (*own, *own.values())
        if key not in templates:
            templates[key] = _with(template, record, own, classes)
        pod = pod_of_template(templates[key], record.name("name"), workload.namespace)
        yield TracedPod(_time(record, "arrival") / speed, _running(pod, record, speed))


def _with(
    template: PodTemplateSpec,
    record: TraceRecord,
    own: dict[str, str],
    classes: Collection[str],
) -> PodTemplateSpec:
    """Return the template with a row's requests, and its priority class."""
    spec = template.spec
    requests: dict[str, Quantity] = {
        name: _quantity(record, name) for name in own if name != "priorityClassName"
    }
    first, *others = spec.containers
    resources = replace(first.resources, requests={**first.resources.requests, **requests})
    priority = own.get("priorityClassName", spec.priority_class_name)
    if priority and priority not in classes:
        known = ", ".join(sorted(classes))
        raise record.error(
            "priorityClassName", f"there is no class {priority!r}; there are {known}"
        )
    containers = (replace(first, resources=resources), *others)
    return replace(
        template, spec=replace(spec, containers=containers, priority_class_name=priority)
    )


def _running(pod: Pod, record: TraceRecord, speed: float) -> Pod:
    """Return the pod with its run time; without one, it runs for ever."""
    if not record.text("duration"):
        return pod
    seconds = _time(record, "duration") / speed
    return replace(pod, metadata=with_run_seconds(pod.metadata, seconds))


def _time(record: TraceRecord, column: str) -> float:
    text = record.text(column)
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        remedy = "a number that is not negative is required; `speed` sets its unit"
        raise record.error(column, f"{remedy}, not {text[:40]!r}")
    return found


def _quantity(record: TraceRecord, column: str) -> str:
    text = record.text(column)
    try:
        amount = nano_value(text)
    except QuantityError as error:
        raise record.error(column, f"a quantity such as 500m or 2Gi is required: {error}") from None
    if amount < 0:
        raise record.error(column, f"an amount must not be negative, not {text}")
    if "/" in column and amount % NANO:
        raise record.error(column, f"a whole number is required, not {text}")
    return text
