"""Signals end the process in order, or at once when asked twice; SIGUSR2 has it show its cache.

Upstream: staging/src/k8s.io/apiserver/pkg/server/signal.go,
          pkg/scheduler/backend/cache/debugger/debugger.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
EXIT_AT_ONCE: Final = 1


def exit_at_once() -> None:
    """End the process without another step."""
    os._exit(EXIT_AT_ONCE)


@contextmanager
def handled_signals(
    stop: Callable[[], None],
    debug: Callable[[], None],
    leave: Callable[[], None] = exit_at_once,
) -> Iterator[None]:
    """Handle signals in the running loop, inside of a `with`.

    Args:
        stop: Called at the first SIGTERM or SIGINT.
        debug: Called at each SIGUSR2.
        leave: Called at the second SIGTERM or SIGINT; ends the process.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def ask() -> None:
        nonlocal asked
        if asked:
            leave()
        else:
            asked = True
            stop()

    handlers = {**dict.fromkeys(STOPPING, ask), signal.SIGUSR2: debug}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
