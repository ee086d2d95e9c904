"""Ctrl-C ends a simulation between two steps, so that its report is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether the user pressed Ctrl-C; the second time it ends the program at once."""

    def __init__(self) -> None:
        self.came = False

    def note(self, _signal: int, _frame: FrameType | None) -> None:
        """Take note of a signal."""
        if self.came:
            raise KeyboardInterrupt
        self.came = True


@contextmanager
def noted_interruption() -> Iterator[Interruption]:
    """Note Ctrl-C instead of raising in the midst of a step."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may say what a signal does.
        yield interruption
        return
    before = signal.signal(signal.SIGINT, interruption.note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
