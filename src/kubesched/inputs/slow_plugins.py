"""Warns users of commands that write no log about slow plugins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

Report = Callable[[str, str], object]
"""Called with `Plugin.method` and the mean time of its calls, such as `0.3s`."""

_LOGGER: Final = "kubesched.framework.plugin_answers"
"""The module's name: to import it would take long, even for `--help`."""


class _Handler(logging.Handler):
    def __init__(self, report: Report) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self._named: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, str] = vars(record)["fields"]
        method = f"{fields['plugin']}.{fields['method']}"
        if method not in self._named:
            self._named.add(method)
            self._report(method, fields["mean"])


@contextmanager
def naming_slow_plugins(report: Report) -> Iterator[None]:
    """Report the slow methods of plugins, each once."""
    handler, log = _Handler(report), logging.getLogger(_LOGGER)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
