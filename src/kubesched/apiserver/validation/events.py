"""Events, as both groups write them.

Upstream: pkg/apis/core/validation/events.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubesched.api.label_format import label_key_errors
from kubesched.apiserver.field_fault import FieldFault, each, invalid, required
from kubesched.apiserver.names import dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.metadata import (
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)

_NAMES: Final[Mapping[str, str]] = {
    "action": "action",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedSource": "source",
    "eventTime": "eventTime",
    "note": "message",
    "reason": "reason",
    "regarding": "involvedObject",
    "related": "related",
    "reportingController": "reportingController",
    "reportingInstance": "reportingInstance",
    "series": "series",
    "type": "type",
}
"""Names in the newer group, and upstream's names for the same in its messages."""

_REPORTER: Final = {"reportingComponent": "reportingController"}
_LENGTHS: Final = (("action", 128), ("reason", 128))
_NOTE_LENGTH_MAX: Final = 1024
_INSTANCE_LENGTH_MAX: Final = 128
_UNSET: Final = ("firstTimestamp", "lastTimestamp", "count")
_IMMUTABLE: Final = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingController",
    "reportingInstance",
)


def _is_newer(event: Plain) -> bool:
    return bool(event.get("apiVersion", "").startswith("events.k8s.io/"))


def _fields(event: Plain) -> Plain:
    """Return the event's fields by the names that messages have."""
    names = _NAMES if _is_newer(event) else _REPORTER
    return {names.get(name, name): value for name, value in event.items()}


def new_event_faults(event: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new event."""
    yield from _faults(event)
    if not _is_newer(event):
        return
    fields = _fields(event)
    yield from metadata_faults(event["metadata"], True, dns_subdomain)
    yield from _series_faults(fields.get("series"))
    if not fields.get("eventTime"):
        yield required("eventTime")
    if fields.get("type") not in ("Normal", "Warning"):
        yield invalid("type", "", f"has invalid value: {fields.get('type', '')}")
    for name in _UNSET:
        if fields.get(name):
            yield invalid(name, "", "needs to be unset")
    if any((fields.get("source") or {}).values()):
        yield invalid("source", "", "needs to be unset")


def _faults(event: Plain) -> Iterator[FieldFault]:
    fields = _fields(event)
    about: Plain = fields.get("involvedObject") or {}
    other, own = about.get("namespace", ""), event["metadata"].get("namespace", "")
    has_time = bool(fields.get("eventTime"))
    allowed = ("default", "kube-system") if has_time else ("", "default")
    is_foreign = own not in allowed if not other else (own != other and not has_time)
    if is_foreign:
        yield invalid("involvedObject.namespace", other, "does not match event.namespace")
    if has_time:
        reporter = "reportingController" if _is_newer(event) else "reportingComponent"
        yield from _detail_faults(fields, reporter)
    yield from each("namespace", own, dns_subdomain(own))


def _detail_faults(fields: Plain, reporter: str) -> Iterator[FieldFault]:
    controller = fields.get("reportingController", "")
    if not controller:
        yield required(reporter)
    yield from each(reporter, controller, label_key_errors(controller))
    instance = fields.get("reportingInstance", "")
    if not instance:
        yield required("reportingInstance")
    if len(instance.encode()) > _INSTANCE_LENGTH_MAX:
        yield _length_fault("reportingInstance", _INSTANCE_LENGTH_MAX)
    for name, length_max in _LENGTHS:
        text = fields.get(name, "")
        if not text:
            yield required(name)
        if len(text.encode()) > length_max:
            yield _length_fault(name, length_max)
    if len(fields.get("message", "").encode()) > _NOTE_LENGTH_MAX:
        yield _length_fault("message", _NOTE_LENGTH_MAX)


def _length_fault(name: str, length_max: int) -> FieldFault:
    return invalid(name, "", f"can have at most {length_max} characters")


def _series_faults(series: Plain | None) -> Iterator[FieldFault]:
    if series is None:
        return
    if series["count"] < 2:
        yield invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


def event_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of an event."""
    yield from _faults(new)
    if not _is_newer(new):
        return
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    fields, before = _fields(new), _fields(old)
    if fields.get("series") != before.get("series"):
        yield from _series_faults(fields.get("series"))
    for name in _IMMUTABLE:
        yield from immutable_faults(_value(fields, name), _value(before, name), name)


def _value(fields: Plain, name: str) -> Any:
    value = fields.get(name)
    return value or None if isinstance(value, int | dict) else value
