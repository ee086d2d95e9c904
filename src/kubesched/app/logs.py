"""Logs: the loggers of the process, their streams, verbosity and formats.

Lines have the forms of Kubernetes: klog's text, or JSON. In text, a line with fields is a quoted
message and `key=value`; a line without is the bare text.

    I1121 14:57:41.542810   22803 loop.go:100] "Successfully bound pod to node" pod="ns/name"
    {"ts":1795275156739.9478,"caller":"scheduler/loop.go:100","msg":"Successfully ...","v":2}

Upstream: k8s.io/klog/v2, staging/src/k8s.io/component-base/logs (v1.36)
Rejects:  verbosities that are not numbers, and `--vmodule` patterns without name or number.
Differs:  stack traces follow their line (text), or are a field `stacktrace` (JSON). Nothing is
          buffered, so nothing is flushed periodically; a `--vmodule` pattern applies to the loggers
          that exist when it is read.
"""

from __future__ import annotations

import fnmatch
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Final, TextIO

import msgspec

from kubesched.api.errors import SetupError
from kubesched.api.go_text import go_quote
from kubesched.framework.structured_log import FIELDS, ObjectRef, level_of, verbosity_of

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


# Setting up.

ROOT: Final = "kubesched"

_INT32_MAX: Final = 2**31 - 1


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of logs; with `splits_stream`, lines below errors go to stdout.

    `modules` are those of `--vmodule`, as `(pattern, verbosity)`; a pattern matches a module's last
    name, or with a slash or dot its whole name, and may contain `*` and `?`.
    """

    verbosity: int = 0
    modules: tuple[tuple[str, int], ...] = ()
    logging_format: str = "text"
    splits_stream: bool = False


class Logs:
    """The loggers of the process, from `start` to `stop`."""

    def __init__(self, options: LogOptions, stream: TextIO, information: TextIO) -> None:
        """Set up; all lines go to `stream`, stderr.

        If streams are split, lines below errors go to `information`, stdout.
        """
        self._options = options
        self._handlers = [logging.StreamHandler(stream)]
        if options.splits_stream:
            self._handlers[0].setLevel(logging.ERROR)
            self._handlers.append(logging.StreamHandler(information))
            self._handlers[1].addFilter(lambda record: record.levelno < logging.ERROR)
        is_json = options.logging_format == "json"
        for handler in self._handlers:
            handler.setFormatter(JsonFormatter() if is_json else TextFormatter())
        self._levels: dict[logging.Logger, int] = {}

    def start(self) -> None:
        """Start logging: kubesched at the configured verbosity, libraries from warnings on."""
        for handler in self._handlers:
            logging.getLogger().addHandler(handler)
        self._set(logging.getLogger(ROOT), level_of(self._options.verbosity))
        for logger in _loggers():
            name = logger.name
            wanted = (level for pattern, level in self._options.modules if matches(pattern, name))
            verbosity = next(wanted, None)
            if verbosity is not None:
                self._set(logger, level_of(verbosity))

    def stop(self) -> None:
        """Stop logging, and restore the loggers."""
        for handler in self._handlers:
            logging.getLogger().removeHandler(handler)
        for logger, level in self._levels.items():
            logger.setLevel(level)
        self._levels.clear()

    def set_verbosity(self, text: str) -> str:
        """Change the verbosity while running, and return a message; raises ValueError."""
        verbosity = _parse_verbosity(text)
        self._set(logging.getLogger(ROOT), level_of(verbosity))
        return f"successfully set klog.logging.verbosity to {text}"

    def _set(self, logger: logging.Logger, level: int) -> None:
        self._levels.setdefault(logger, logger.level)
        logger.setLevel(level)


def parse_modules(texts: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return the patterns of `--vmodule`, such as `loop=5,cache*=3`; raises SetupError."""
    clauses = [clause for text in texts for clause in text.split(",") if clause]
    return tuple(_parse_module(clause) for clause in clauses)


def matches(pattern: str, logger_name: str) -> bool:
    """Whether a pattern of `--vmodule` matches a logger."""
    dotted = pattern.replace("/", ".")
    name = logger_name if "." in dotted else logger_name.rpartition(".")[2]
    return fnmatch.fnmatchcase(name, dotted)


def _parse_module(clause: str) -> tuple[str, int]:
    pattern, equals, number = clause.partition("=")
    if not pattern or not equals:
        raise SetupError(f"--vmodule: {go_quote(clause)} does not have the pattern=N format")
    try:
        return pattern, _parse_verbosity(number)
    except ValueError as error:
        raise SetupError(f"--vmodule: parsing verbosity in {go_quote(clause)}: {error}") from None


def _parse_verbosity(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > _INT32_MAX:
        raise ValueError(f"{go_quote(text)} is not a number from 0 to {_INT32_MAX}")
    return int(text)


def _loggers() -> Iterable[logging.Logger]:
    names = sorted(logging.root.manager.loggerDict)
    return [logging.getLogger(name) for name in names if f"{name}.".startswith(f"{ROOT}.")]
