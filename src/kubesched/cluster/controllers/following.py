"""Following is what controllers have in common that follow kinds and work through a queue.

Upstream: none; each controller of pkg/controller starts and stops on its own (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.cluster.controllers.work_queue import WorkQueue
from kubesched.cluster.server import Subscription


class Following:
    """A controller, from `start` to `stop`; subclasses set what is followed and the queue."""

    _followed: Sequence[Subscription]
    _queue: WorkQueue

    def start(self) -> None:
        """Look at all objects, and follow them from now on."""
        for subscription in self._followed:
            subscription.start()

    def stop(self) -> None:
        """Do nothing more."""
        for subscription in self._followed:
            subscription.stop()
        self._queue.stop()
