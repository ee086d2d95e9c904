"""Runs a coroutine on virtual time, and measures how long it took."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from kubesched.simulator import virtual_loop

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Run to the end; return the result and how many virtual seconds have passed."""

    async def timed() -> tuple[T, float]:
        return await work, asyncio.get_running_loop().time()

    return virtual_loop.run(timed())
