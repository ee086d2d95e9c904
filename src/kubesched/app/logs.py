"""Logs configures the loggers of the process: streams, format and verbosity.

Upstream: staging/src/k8s.io/component-base/logs, k8s.io/klog/v2 (v1.36)
Rejects:  verbosities that are not numbers, and `--vmodule` patterns without name or number.
Differs:  nothing is buffered, so nothing is flushed periodically; a `--vmodule` pattern applies
          to the loggers that exist when it is read.
"""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

import msgspec

from kubesched.api.errors import SetupError
from kubesched.api.go_text import go_quote
from kubesched.app.log_format import JsonFormatter, TextFormatter
from kubesched.framework.structured_log import level_of

ROOT: Final = "kubesched"

_UINT32_MAX: Final = 2**32 - 1
_INT32_MAX: Final = 2**31 - 1


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of logs.

    Attributes:
        verbosity: `-v`.
        modules: `--vmodule`, as `(pattern, verbosity)`; a pattern matches a module's last name,
            or with a slash or dot its whole name, and may contain `*` and `?`.
        logging_format: `text` or `json`.
        splits_stream: Whether lines below errors go to stdout.
    """

    verbosity: int = 0
    modules: tuple[tuple[str, int], ...] = ()
    logging_format: str = "text"
    splits_stream: bool = False


class Logs:
    """The loggers of the process, from `start` to `stop`."""

    def __init__(self, options: LogOptions, stream: TextIO, information: TextIO) -> None:
        """Set up.

        Args:
            options: The flags.
            stream: For all lines; stderr.
            information: For lines below errors if streams are split; stdout.
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
        self.flush()

    def flush(self) -> None:
        """Flush all handlers."""
        for handler in self._handlers:
            handler.flush()

    def set_verbosity(self, text: str) -> str:
        """Change the verbosity while running; return a message.

        Raises:
            ValueError: The text is not a number, or the number is too large.
        """
        verbosity = _parse_verbosity(text)
        self._set(logging.getLogger(ROOT), level_of(verbosity))
        return f"successfully set klog.logging.verbosity to {text}"

    def _set(self, logger: logging.Logger, level: int) -> None:
        self._levels.setdefault(logger, logger.level)
        logger.setLevel(level)


def parse_modules(texts: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return the patterns of `--vmodule`, such as `loop=5,cache*=3`.

    Raises:
        SetupError: A pattern has no name or no number.
    """
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
    if not (number.isascii() and number.isdigit()) or int(number) > _INT32_MAX:
        raise SetupError(
            f"--vmodule: parsing verbosity in {go_quote(clause)}:"
            f" strconv.ParseUint: parsing {go_quote(number)}: invalid syntax"
        )
    return pattern, int(number)


def _parse_verbosity(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {go_quote(text)}: invalid syntax")
    if int(text) > _UINT32_MAX:
        raise ValueError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    if int(text) > _INT32_MAX:
        raise ValueError(
            f"failed set klog.logging.verbosity {text}:"
            f" strconv.ParseInt: parsing {go_quote(text)}: value out of range"
        )
    return int(text)


def _loggers() -> Iterable[logging.Logger]:
    names = sorted(logging.root.manager.loggerDict)
    return [logging.getLogger(name) for name in names if f"{name}.".startswith(f"{ROOT}.")]
