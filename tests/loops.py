"""Tests as coroutines: in real time, on virtual time, or in a world that a function makes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
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


def as_test(
    story: Callable[..., Awaitable[object]],
    play: Callable[[Callable[..., Awaitable[object]]], object],
    given: int = 1,
) -> Callable[..., None]:
    """Return a coroutine as a test: `play` runs it and passes the first `given` arguments."""

    @wraps(story)
    def test(**parameters: object) -> None:
        play(lambda *arguments: story(*arguments, **parameters))

    signature = inspect.signature(story)
    others = list(signature.parameters.values())[given:]
    vars(test)["__signature__"] = signature.replace(parameters=others)
    return test
