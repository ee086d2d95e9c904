"""Formatters for log lines in the forms of Kubernetes: klog's text, or JSON.

In text, a line with fields is a quoted message and `key=value`; a line without is the bare text.

    I1121 14:57:41.542810   22803 loop.go:100] "Successfully bound pod to node" pod="ns/name"
    {"ts":1795275156739.9478,"caller":"scheduler/loop.go:100","msg":"Successfully ...","v":2}

Upstream: k8s.io/klog/v2, staging/src/k8s.io/component-base/logs/json (v1.36)
Differs:  stack traces follow their line (text), or are a field `stacktrace` (JSON).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Final

from kubesched.api.go_text import go_quote
from kubesched.framework.structured_log import FIELDS, ObjectRef, verbosity_of

_SEVERITIES: Final = (
    (logging.CRITICAL, "F"),
    (logging.ERROR, "E"),
    (logging.WARNING, "W"),
)


class TextFormatter(logging.Formatter):
    """Formats klog's text, in local time."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, or lines, of a record."""
        fields = fields_of(record)
        message = record.getMessage()
        text = header_of(record) + (message if fields is None else go_quote(message))
        text += "".join(f" {name}{_text_value(value)}" for name, value in (fields or {}).items())
        return text + _stack_of(self, record)


class JsonFormatter(logging.Formatter):
    """Formats one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, object] = {
            "ts": round(record.created * 1000, 4),
            "caller": f"{PurePath(record.pathname).parent.name}/{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            line["v"] = verbosity_of(record.levelno)
        for name, value in (fields_of(record) or {}).items():
            line[name] = _json_value(value)
        stack = _stack_of(self, record).strip()
        if stack:
            line["stacktrace"] = stack
        return _compact(line)


def header_of(record: logging.LogRecord) -> str:
    """Return klog's header: severity, time, process and source location."""
    moment = datetime.fromtimestamp(record.created).astimezone()
    severity = next((letter for level, letter in _SEVERITIES if record.levelno >= level), "I")
    process = record.process or 0
    return f"{severity}{moment:%m%d %H:%M:%S.%f} {process:7d} {record.filename}:{record.lineno}] "


def fields_of(record: logging.LogRecord) -> Mapping[str, object] | None:
    """Return the fields of a record, the exception first; None for a bare text."""
    fields: Mapping[str, object] | None = getattr(record, FIELDS, None)
    raised = record.exc_info[1] if record.exc_info else None
    if raised is None:
        return fields
    return {"err": raised, **(fields or {})}


def _text_value(value: object) -> str:
    if isinstance(value, ObjectRef | BaseException):
        value = str(value)
    if isinstance(value, str):
        return _block(value) if "\n" in value else "=" + go_quote(value)
    return "=" + _compact(_json_value(value))


def _block(text: str) -> str:
    """Return a multi-line text as klog writes it: indented, between `<` and `>`."""
    lines = text.removesuffix("\n").split("\n")
    return "=<\n" + "".join(f"\t{line}\n" for line in lines) + " >"


def _json_value(value: object) -> object:
    if isinstance(value, ObjectRef):
        named = {"name": value.name}
        return {**named, "namespace": value.namespace} if value.namespace else named
    if isinstance(value, BaseException):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _json_value(item) for name, item in value.items()}
    if isinstance(value, set | frozenset):
        return {str(name): {} for name in sorted(value, key=str)}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_json_value(item) for item in value]
    return value


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def _stack_of(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    stack = formatter.formatException(record.exc_info) if record.exc_info else ""
    return f"\n{stack}" if stack else ""
