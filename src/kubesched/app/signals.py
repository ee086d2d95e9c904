"""Signals: SIGTERM and SIGINT shut down, at once if repeated; SIGUSR2 logs the cache.

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


def exit_at_once() -> None:
    """End the process without cleaning up, with upstream's exit code."""
    os._exit(1)


@contextmanager
def handled_signals(
    stop: Callable[[], None],
    debug: Callable[[], None],
    leave: Callable[[], None] = exit_at_once,
) -> Iterator[None]:
    """Handle signals on the current loop, within a `with`.

    `stop` is called on the first SIGTERM or SIGINT, `leave`, which must exit, on the second;
    `debug` on each SIGUSR2.
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
