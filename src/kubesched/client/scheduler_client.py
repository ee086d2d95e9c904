"""SchedulerClient is all that the scheduler writes to an API server: pods, pod groups and events.

Upstream: pkg/scheduler/scheduler.go, the clientset (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kubesched.client.event_recorder import Occurrence
from kubesched.client.pod_client import PodClient
from kubesched.client.requests import Rest


class Recorder(Protocol):
    """An `EventRecorder`, or a `CoreEventRecorder` for old servers."""

    def record_event(self, event: Occurrence) -> None:
        """Queue an event for writing."""
        ...


class SchedulerClient(PodClient):
    """Writes pods and pod groups, and records events; its creator runs the recorder."""

    def __init__(self, rest: Rest, recorder: Recorder, now_ns: Callable[[], int]) -> None:
        """Set up.

        Args:
            rest: Sends the requests.
            recorder: Writes the events.
            now_ns: Returns the time of day in nanoseconds since the epoch.
        """
        super().__init__(rest, now_ns)
        self._recorder = recorder

    def record_event(self, event: Occurrence) -> None:
        """Queue an event for writing; returns at once."""
        self._recorder.record_event(event)
