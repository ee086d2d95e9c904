"""The event loop of a process: uvloop's where it is installed, asyncio's otherwise."""

from __future__ import annotations

import asyncio
import importlib
from importlib.util import find_spec


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop."""
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
    return loop
