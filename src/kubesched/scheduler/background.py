"""Waits for tasks that run in the background.

Upstream: nothing like it; goroutines are not waited for (v1.36)
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection


async def drain(tasks: Collection[asyncio.Task[object]]) -> None:
    """Wait until all tasks are done, including those that are added meanwhile."""
    while running := [task for task in tasks if not task.done()]:
        await asyncio.wait(running)
