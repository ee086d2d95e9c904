"""LiveApi is the scheduler's way to a real API server: pod writes, and events.

Upstream: pkg/scheduler/scheduler.go, New; client-go/tools/events (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from kubesched.client.pod_writer import PodWriter
from kubesched.scheduler.api_client import EventRecord


class LiveApi(PodWriter):
    """An `ApiClient` over a connection."""

    def record_event(self, event: EventRecord) -> None:
        """Write an event some time soon."""
