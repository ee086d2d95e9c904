"""Reports of a dry run go to stdout, a line of JSON each, for as long as somebody reads them."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable
from typing import Any, TextIO

import msgspec


class Reports:
    """Writes reports until that fails.

    Attributes:
        on_failure: Called when nothing can be written any more. Nothing is raised then: the plugin
            whose decision it was is not to blame.
    """

    def __init__(self, output: TextIO) -> None:
        """Take where to write."""
        self.on_failure: Callable[[], None] = _nothing
        self._output = output
        self._failure: OSError | None = None

    def write(self, report: dict[str, Any]) -> None:
        """Write a line."""
        if self._failure is not None:
            return
        try:
            self._output.write(msgspec.json.encode(report).decode() + "\n")
            self._output.flush()
        except OSError as error:
            self._fail(error)

    def follow_reader(self) -> None:
        """Notice when the reader of a pipe goes, also while there is nothing to report."""
        try:
            pipe = self._output.fileno()
        except OSError:
            return
        if stat.S_ISFIFO(os.fstat(pipe).st_mode):
            loop = asyncio.get_running_loop()

            def gone() -> None:
                loop.remove_reader(pipe)
                self._fail(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))

            # A pipe without a reader is in error, which counts as having something to read.
            loop.add_reader(pipe, gone)

    def check(self) -> None:
        """Check that all was written.

        Raises:
            OSError: It was not; BrokenPipeError if nobody reads on.
        """
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: OSError) -> None:
        self._failure = error
        self.on_failure()


def _nothing() -> None:
    pass
