"""RunningEvictions tells which preemptions are under way, to the plugin that decided them."""

from __future__ import annotations

from typing import Protocol


class RunningEvictions(Protocol):
    """What a handle that evicts offers as `evictions`."""

    def is_running(self, uid: str) -> bool:
        """Whether the preemption for the pod (or group) with this uid is not finished yet."""
        ...
