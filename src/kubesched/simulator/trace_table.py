"""Reads traces in a table of one's own: a row per pod with its arrival, run time and requests.

Reads:    CSV or Parquet with the columns `name` and `arrival`, and any of `duration`,
          `priorityClassName`, `cpu`, `memory`, `ephemeral-storage` and extended resources, such as
          `nvidia.com/gpu`; times are numbers, requests quantities; an empty value is no value
Rejects:  other columns, names that are there twice, negative times and requests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubesched.api.codec import DecodeError, Source
from kubesched.api.core import Pod, PodTemplateSpec
from kubesched.api.quantity import Quantity, QuantityError, nano_value
from kubesched.simulator.openb import TracedPod, trace_pods
from kubesched.simulator.run_seconds import with_run_seconds
from kubesched.simulator.scenario import ScenarioWorkload
from kubesched.simulator.scenario_objects import pod_of_template, template_of
from kubesched.simulator.trace_records import (
    TraceRecord,
    check_columns,
    checked_once,
    read_file,
    rows_of,
)

_REQUIRED: Final = ("name", "arrival")
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_KNOWN: Final = (*_REQUIRED, "duration", "priorityClassName", *_RESOURCES)
_NOT_OF_OPENB: Final = ("requests", "labels", "template")
_EXPECTED: Final = f"a trace has {', '.join(_KNOWN)} and resources such as nvidia.com/gpu"


def pods_of_trace(workload: ScenarioWorkload) -> list[TracedPod]:
    """Return the pods of a workload's trace in order of arrival, of openb's list or a table.

    Raises:
        DecodeError: if the file cannot be read, a column or value is wrong, or the workload sets
            what pods of openb do not take from it.
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
    found = [*_pods(checked_once(records, "name"), workload, trace.speed)]
    found.sort(key=lambda traced: traced.at)
    begin = found[0].at if found else 0.0
    return [TracedPod(at - begin, pod) for at, pod in found[: trace.count]]


def _pods(
    records: Iterator[TraceRecord], workload: ScenarioWorkload, speed: float
) -> Iterator[TracedPod]:
    """Yield the pods of rows, each from the workload's template; at times from 0."""
    template = template_of(workload)
    templates: dict[tuple[str, ...], PodTemplateSpec] = {}
    for record in records:
        own = {
            name: text
            for name, text in record.values.items()
            if text and name not in (*_REQUIRED, "duration")
        }
        key = (*own, *own.values())
        if key not in templates:
            templates[key] = _with(template, record, own)
        pod = pod_of_template(templates[key], record.name("name"), workload.namespace)
        yield TracedPod(_time(record, "arrival") / speed, _running(pod, record, speed))


def _with(template: PodTemplateSpec, record: TraceRecord, own: dict[str, str]) -> PodTemplateSpec:
    """Return the template with a row's requests, and its priority class."""
    spec = template.spec
    requests: dict[str, Quantity] = {
        name: _quantity(record, name) for name in own if name != "priorityClassName"
    }
    first, *others = spec.containers
    resources = replace(first.resources, requests={**first.resources.requests, **requests})
    priority = own.get("priorityClassName", spec.priority_class_name)
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
    return text
