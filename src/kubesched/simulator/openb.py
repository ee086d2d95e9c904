"""Reads openb traces: lists of the nodes and pods of a production GPU cluster, CSV or Parquet.

Whole GPUs are the extended resource `nvidia.com/gpu`. A pod that shares a GPU requests a whole one,
because extended resources are integers.

Reads:    `sn,cpu_milli,memory_mib,gpu,model` and
          `name,cpu_milli,memory_mib,num_gpu[,gpu_milli][,gpu_spec][,...][,creation_time][,...]`;
          `creation_time`, `scheduled_time` and `deletion_time`, seconds
Rejects:  unknown or missing columns, rows of the wrong length, amounts that are not integers,
          a deletion before the pod was created or bound; in scenarios, names that are there twice.
Differs:  a pod runs for as long after its binding as in the trace; a pod that was never bound
          there, for as long as it existed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubesched.api.codec import DecodeError, Loaded, Source
from kubesched.api.core import (
    Affinity,
    Container,
    Node,
    NodeAffinity,
    NodeStatus,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from kubesched.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from kubesched.api.quantity import Quantity
from kubesched.api.times import EPOCH, second_time
from kubesched.api.well_known import HOSTNAME
from kubesched.simulator.run_seconds import with_run_seconds
from kubesched.simulator.trace_records import (
    TraceRecord,
    check_columns,
    checked_once,
    read_file,
    rows_of,
)

NAMESPACE: Final = "openb"
GPU: Final = "nvidia.com/gpu"
MODEL_LABEL: Final = "alibabacloud.com/gpu-card-model"
_PODS_PER_NODE: Final = 1001

_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu")
_POD_COLUMNS_MORE: Final = (
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
_EXPECTED: Final = f"an openb list begins {','.join(_NODE_COLUMNS)} or {','.join(_POD_COLUMNS)},..."


def is_openb(head: bytes) -> bool:
    """Whether a file is an openb list; `head` is its decompressed beginning."""
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return first.startswith((b"sn,cpu_milli,", b"name,cpu_milli,"))


def read_openb(data: bytes, file: str) -> list[Loaded]:
    """Return the nodes or pods of a list, compressed or not; pods in order of creation, then name.

    Raises:
        DecodeError: if it is not an openb list or a value is invalid.
    """
    kind, records = read_records(data, file)
    if kind is Node:
        return [Loaded(_node(record), record.source) for record in records]
    return [Loaded(pod, record.source) for record, pod in _pods(records)]


def _pods(records: Iterable[TraceRecord]) -> list[tuple[TraceRecord, Pod]]:
    """Return the pods of a list with their rows, in order of creation, then name."""
    found = [(record.seconds("creation_time"), record.name("name"), record) for record in records]
    found.sort(key=lambda entry: entry[:2])
    templates: dict[tuple[str, ...], PodSpec] = {}
    return [(record, _pod(record, templates)) for *_, record in found]


def read_records(data: bytes, file: str) -> tuple[type[Node | Pod], Iterator[TraceRecord]]:
    """Return what a list describes, and yield its rows; the list may be compressed.

    Raises:
        DecodeError: if it is not an openb list, or while its rows are read.
    """
    rows = rows_of(data, file)
    header = next(rows, None)
    if header is None:
        raise DecodeError(Source(file, 0), "it is empty; an openb list begins with its columns")
    kind = _kind(header[1], file)
    return kind, (TraceRecord(file, line, header[1], values) for line, values in rows)


def _kind(header: Sequence[str], file: str) -> type[Node | Pod]:
    if "sn" in header:
        check_columns(header, _NODE_COLUMNS[:4], _NODE_COLUMNS, file, _EXPECTED)
        return Node
    check_columns(header, _POD_COLUMNS, _POD_COLUMNS + _POD_COLUMNS_MORE, file, _EXPECTED)
    return Pod


def _amounts(record: TraceRecord, gpus: str) -> dict[str, Quantity]:
    """Return the amounts of a node or pod, with the number of GPUs that is in a column."""
    amounts: dict[str, Quantity] = {
        "cpu": f"{record.amount('cpu_milli')}m",
        "memory": f"{record.amount('memory_mib')}Mi",
    }
    if record.amount(gpus):
        amounts[GPU] = str(record.amount(gpus))
    return amounts


def _node(record: TraceRecord) -> Node:
    name = record.name("sn")
    amounts = {**_amounts(record, "gpu"), "pods": str(_PODS_PER_NODE)}
    labels = {HOSTNAME: name}
    if model := record.text("model"):
        labels[MODEL_LABEL] = model
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels=labels),
        status=NodeStatus(capacity=amounts, allocatable=amounts),
    )


def _pod(record: TraceRecord, templates: dict[tuple[str, ...], PodSpec]) -> Pod:
    name = record.name("name")
    created = record.text("creation_time") and EPOCH + timedelta(
        seconds=record.seconds("creation_time")
    )
    key = tuple(map(record.text, ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")))
    spec = templates.get(key)
    if spec is None:
        spec = templates[key] = _spec(record)
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"{NAMESPACE}/{name}",
            creation_timestamp=second_time(created) if created else None,
        ),
        spec=spec,
    )


def _spec(record: TraceRecord) -> PodSpec:
    amounts = _amounts(record, "num_gpu")
    resources = ResourceRequirements(requests=amounts, limits=amounts)
    models = tuple(model for model in record.text("gpu_spec").split("|") if model)
    return PodSpec(
        containers=(Container(name="main", resources=resources),),
        affinity=affinity_to_models(models) if models else None,
    )


def affinity_to_models(models: tuple[str, ...]) -> Affinity:
    """Return the affinity of a pod that runs on some models of GPU only."""
    requirement = NodeSelectorRequirement(key=MODEL_LABEL, operator="In", values=models)
    selector = NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),)
    )
    return Affinity(
        node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
    )


class TracedPod(NamedTuple):
    """A pod and its arrival, in seconds after the first pod."""

    at: float
    pod: Pod


def trace_nodes(path: str) -> list[Node]:
    """Return the nodes of a trace.

    Raises:
        DecodeError: if the file cannot be read or has other objects.
    """
    return [_node(record) for record in checked_once(_records(path, Node), "sn")]


def trace_pods(path: str, speed: float = 1.0, count: int | None = None) -> list[TracedPod]:
    """Return the pods of a trace, or the first `count`, in order of arrival.

    `speed` is in seconds of the trace per simulated second.

    Raises:
        DecodeError: if the file cannot be read or has other objects.
    """
    pods = _pods(checked_once(_records(path, Pod), "name"))[:count]
    begin = pods[0][0].seconds("creation_time") if pods else 0
    return [
        TracedPod((record.seconds("creation_time") - begin) / speed, _running(pod, record, speed))
        for record, pod in pods
    ]


def _records(path: str, kind: type[Node | Pod]) -> Iterator[TraceRecord]:
    found, records = read_records(read_file(path), path)
    if found is not kind:
        listed, expected = (f"{each.__name__.lower()}s" for each in (found, kind))
        raise DecodeError(Source(path, 0), f"this is a list of {listed}; expected {expected}")
    return records


def _running(pod: Pod, record: TraceRecord, speed: float) -> Pod:
    """Return the pod to create: without a uid, annotated with its run time."""
    metadata = replace(pod.metadata, uid="", creation_timestamp=None)
    if record.text("deletion_time"):
        began = "scheduled_time" if record.text("scheduled_time") else "creation_time"
        lived = float(record.seconds("deletion_time") - record.seconds(began))
        if lived < 0:
            raise record.error("deletion_time", f"it is before the {began}")
        metadata = with_run_seconds(metadata, lived / speed)
    return replace(pod, metadata=metadata)
