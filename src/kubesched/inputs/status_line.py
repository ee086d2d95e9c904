"""A status line on stderr, redrawn during long work; on a terminal only, after a second."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Self

_PATIENCE_SECONDS: Final = 1.0
_RENEWAL_SECONDS: Final = 0.2
_CLEAR: Final = "\r\x1b[K"


class StatusLine:
    """The line, which is not shown before its first text is due."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._due = time.perf_counter() + _PATIENCE_SECONDS
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            _write(_CLEAR)

    def show_before(self, text: str) -> None:
        """Show a text at once, before work that shows nothing for a while."""
        self._due = 0.0
        self.show(lambda: text)

    def show(self, text: Callable[[], str]) -> None:
        """Show a text if the line is due; call it often."""
        if self._is_watched and (now := time.perf_counter()) >= self._due:
            self._due = now + _RENEWAL_SECONDS
            self._is_shown = True
            width = shutil.get_terminal_size().columns - 1
            _write(_CLEAR + text()[:width])

    def counting(self, text: str) -> Callable[..., None]:
        """Return a function that shows numbers in a text such as `{:,} of {:,} nodes drained`."""

        def show(*numbers: int) -> None:
            self.show(lambda: text.format(*numbers))

        return show


@asynccontextmanager
async def showing(text: Callable[[], str]) -> AsyncIterator[None]:
    """Keep a text up to date on a status line while the event loop is at work."""

    async def show() -> None:
        with StatusLine() as status:
            while True:
                status.show(text)
                await asyncio.sleep(_RENEWAL_SECONDS)

    shown = asyncio.create_task(show(), name="progress")
    try:
        yield
    finally:
        shown.cancel()
        await asyncio.wait((shown,))


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
