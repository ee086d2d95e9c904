"""Reads traces, tables of nodes and pods in CSV or Parquet: their rows, and the lists of openb.

CSV may be compressed; its line of columns comes first, and blank lines are skipped. Errors name
file, line and column.

openb is a production GPU cluster. Whole GPUs are the extended resource `nvidia.com/gpu`; a pod that
shares a GPU requests a whole one, because extended resources are integers.

Reads:    `sn,cpu_milli,memory_mib,gpu,model` and
          `name,cpu_milli,memory_mib,num_gpu[,gpu_milli][,gpu_spec][,...][,creation_time][,...]`;
          `creation_time`, `scheduled_time` and `deletion_time`, seconds
Rejects:  unknown or missing columns, rows of the wrong length, amounts that are not integers,
          a deletion before the pod was created or bound; in scenarios, names that are there twice.
Differs:  a pod runs for as long after its binding as in the trace; a pod that was never bound
          there, for as long as it existed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
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
from kubesched.api.decode import decompressed
from kubesched.api.meta import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    annotated_number,
)
from kubesched.api.quantity import Quantity
from kubesched.api.times import EPOCH, second_time
from kubesched.api.well_known import HOSTNAME

_AMOUNT_MAX: Final = 10**15
# RFC 3339 times end with the year 9999.
_SECONDS_MAX: Final = 200_000_000_000


def read_file(path: str) -> bytes:
    """Return the content of a file; raises DecodeError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DecodeError(Source(path, 0), f"it cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise DecodeError(Source(path, 0), f"it is not a file name: {error}") from None


def rows_of(data: bytes, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and values of each row; the first has the columns' names.

    Raises DecodeError if `data` is no such table.
    """
    if data.startswith(b"PAR1"):
        yield from _parquet_rows(data, file)
        return
    try:
        text = decompressed(data, file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8: {error.reason} (byte {error.start})"
        raise DecodeError(Source(file, 0), problem) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for values in reader:
            if values:
                yield reader.line_num, [value.strip() for value in values]
    except csv.Error as error:
        raise DecodeError(LineSource(file, reader.line_num), str(error)) from None


def _parquet_rows(data: bytes, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the columns' names, then the rows, with the values as they are written in CSV."""
    try:
        import polars  # noqa: ICN001, PLC0415 - optional, and only for these files
    except ImportError:
        words = "Parquet needs polars; run: pip install 'kubesched[sweep]', or write CSV"
        raise DecodeError(Source(file, 0), words) from None
    try:
        table = polars.read_parquet(io.BytesIO(data))
    except (polars.exceptions.PolarsError, OSError) as error:
        raise DecodeError(Source(file, 0), f"it is not a Parquet file: {error}") from None
    yield 1, table.columns
    for line, values in enumerate(table.iter_rows(), 2):
        yield line, [_value_text(value) for value in values]


def _value_text(value: object) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def check_columns(
    header: Sequence[str], required: Sequence[str], known: Sequence[str], file: str, expected: str
) -> None:
    """Raise DecodeError if columns are missing, unknown or there twice; `expected` names all."""
    missing = [name for name in required if name not in header]
    unknown = [repr(name[:40]) for name in header if name not in known]
    twice = sorted({name for name in header if header.count(name) > 1})
    for names, words in ((missing, "missing"), (unknown, "unknown"), (twice, "there twice")):
        if names:
            problem = f"column {', '.join(names[:5])} is {words}; {expected}"
            raise DecodeError(LineSource(file, 1), problem)


class LineSource(Source, frozen=True):
    """A line of a file; the document number is the line number."""

    def __str__(self) -> str:
        return f"{self.file}: line {self.document}"


class TraceRecord:
    """One row by column; errors name file, line and column."""

    def __init__(self, file: str, line: int, columns: Sequence[str], values: Sequence[str]) -> None:
        self.source = LineSource(file, line)
        if len(values) != len(columns):
            problem = f"{len(values)} values for {len(columns)} columns"
            raise DecodeError(self.source, problem)
        self._columns = columns
        self.values: Mapping[str, str] = dict(zip(columns, values, strict=True))

    def text(self, column: str) -> str:
        """Return a value; empty if the column is missing."""
        return self.values.get(column, "")

    def name(self, column: str) -> str:
        """Return a name, which must not be empty."""
        found = self.values[column]
        if not found:
            raise self.error(column, "a name is required")
        return found

    def amount(self, column: str) -> int:
        """Return a non-negative integer."""
        text = self.values[column]
        if not (text.isascii() and text.isdigit()) or len(text) > 20:
            raise self.error(column, f"a whole number is required, not {text[:40]!r}")
        found = int(text)
        if found > _AMOUNT_MAX:
            raise self.error(column, f"{text} is more than the largest amount, {_AMOUNT_MAX}")
        return found

    def seconds(self, column: str) -> int:
        """Return a time in seconds; 0 if the column is missing or empty."""
        if not self.text(column):
            return 0
        found = self.amount(column)
        if found > _SECONDS_MAX:
            raise self.error(column, f"{found} seconds are too many")
        return found

    def error(self, column: str, problem: str) -> DecodeError:
        """Return the error of a value."""
        at = self._columns.index(column) + 1
        return DecodeError(self.source, problem, path=f"column {at} ({column})")


def checked_once(records: Iterable[TraceRecord], column: str) -> Iterator[TraceRecord]:
    """Yield the records; raises DecodeError if two have the same name."""
    lines: dict[str, Source] = {}
    for record in records:
        name = record.name(column)
        if name in lines:
            raise record.error(column, f"{name!r} is in {lines[name]} already; remove one")
        lines[name] = record.source
        yield record


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

    Raises DecodeError if it is not an openb list or a value is invalid.
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

    Raises DecodeError if it is not an openb list, or while its rows are read.
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
    created = None
    if record.text("creation_time"):
        created = second_time(EPOCH + timedelta(seconds=record.seconds("creation_time")))
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
            creation_timestamp=created,
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
    """Return the nodes of a trace; raises DecodeError if the file is not a list of nodes."""
    return [_node(record) for record in checked_once(_records(path, Node), "sn")]


def trace_pods(path: str, speed: float = 1.0, count: int | None = None) -> list[TracedPod]:
    """Return the pods of a trace, or the first `count`, in order of arrival.

    `speed` is in seconds of the trace per simulated second. Raises DecodeError if the file cannot
    be read or has other objects.
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


# Run times.

RUN_SECONDS: Final = "simulation/run-seconds"
"""The annotation that sets for how many seconds a pod runs."""


def with_run_seconds(metadata: ObjectMeta, seconds: float) -> ObjectMeta:
    """Return the metadata of a pod that runs for some seconds."""
    return replace(metadata, annotations={**metadata.annotations, RUN_SECONDS: repr(seconds)})


def run_seconds_of(pod: Pod) -> float | None:
    """Return for how long a pod runs, None if until it is deleted."""
    return annotated_number(pod.metadata, RUN_SECONDS)
