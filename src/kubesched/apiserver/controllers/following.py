"""Following is what controllers have in common that follow kinds and work through a queue.

Upstream: none; each controller of pkg/controller begins and ends in its own words (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.apiserver.controllers.work_queue import WorkQueue
from kubesched.apiserver.follower import Follower


class Following:
    """A controller, from `start` to `stop`; who inherits sets what is followed and the queue."""

    _followers: Sequence[Follower]
    _queue: WorkQueue

    def start(self) -> None:
        """Look at all there is, and follow from now on."""
        for follower in self._followers:
            follower.start()

    def stop(self) -> None:
        """Do nothing more."""
        for follower in self._followers:
            follower.stop()
        self._queue.stop()
