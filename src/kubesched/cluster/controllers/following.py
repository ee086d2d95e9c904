"""Following is the base of controllers that watch kinds and work through a queue.

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
        """List all objects, and watch them from now on."""
        for subscription in self._followed:
            subscription.start()

    def stop(self) -> None:
        """Stop."""
        for subscription in self._followed:
            subscription.stop()
        self._queue.stop()
