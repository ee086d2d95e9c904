"""The event loop of a process that talks to an API server.

Upstream: none; goroutines need no loop.
"""

from __future__ import annotations

import asyncio
import importlib
from importlib.util import find_spec


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: uvloop's if it is installed, else asyncio's."""
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
    return loop
