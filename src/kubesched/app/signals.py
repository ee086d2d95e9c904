"""Signals: SIGTERM and SIGINT shut down, at once if repeated; SIGUSR2 logs the cache.

Upstream: staging/src/k8s.io/apiserver/pkg/server/signal.go,
          pkg/scheduler/backend/cache/debugger/debugger.go (v1.36)
Differs:  a process whose event loop does not get to the shutdown in time, because a plugin blocks
          it, exits at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

log: Final = logging.getLogger(__name__)

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
# Kubernetes kills a container 30 seconds after SIGTERM.
_BLOCKED_SECONDS_MAX: Final = 20.0
_CALLS_SHOWN: Final = 5


def exit_at_once() -> None:
    """End the process without cleaning up, with upstream's exit code."""
    os._exit(1)


@contextmanager
def handled_signals(
    stop: Callable[[], object],
    debug: Callable[[], None] = lambda: None,
    leave: Callable[[], None] = exit_at_once,
    patience_seconds: float = _BLOCKED_SECONDS_MAX,
) -> Iterator[None]:
    """Handle signals on the current loop, within a `with`.

    `stop` is called on the first SIGTERM or SIGINT, `leave`, which must exit, on the second, or if
    the loop is blocked for `patience_seconds` after the first; `debug` on each SIGUSR2.
    """
    loop, main = asyncio.get_running_loop(), threading.get_ident()
    asked = False

    def give_up() -> None:
        frame = sys._current_frames()[main]  # noqa: SLF001 - documented, and the only way
        where = "".join(traceback.format_stack(frame)[-_CALLS_SHOWN:])
        log.error("Blocked for %g seconds after a signal, exiting:\n%s", patience_seconds, where)
        leave()

    blocked = threading.Timer(patience_seconds, give_up)
    blocked.daemon = True

    def begin() -> None:
        blocked.cancel()
        stop()

    # Python calls it in the main thread also while a plugin blocks the loop.
    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            leave()
        else:
            asked = True
            blocked.start()
            loop.call_soon_threadsafe(begin)

    before = {number: signal.signal(number, ask) for number in STOPPING}
    loop.add_signal_handler(signal.SIGUSR2, debug)
    try:
        yield
    finally:
        blocked.cancel()
        loop.remove_signal_handler(signal.SIGUSR2)
        for number, handler in before.items():
            signal.signal(number, handler)
