"""Decorators for tests that are coroutines: in real time, or on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from kubesched.simulator import virtual_loop

P = ParamSpec("P")
Test = Callable[P, Coroutine[Any, Any, None]]


def in_real_time(test: Test[P]) -> Callable[P, None]:
    """Run a test on an event loop of asyncio, for sockets, processes and threads."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def on_virtual_time(test: Test[P]) -> Callable[P, None]:
    """Run a test on virtual time, which passes while nothing else happens."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        virtual_loop.run(test(*args, **kwargs))

    return run
