"""Durations in Go's notation ("1m30s"), stored in seconds.

Upstream: metav1.Duration (v1.36)
Differs:  nothing.
"""

from typing import Annotated

from msgspec import Meta

from kubesched.api.go_text import parse_go_duration

DURATION_FORMAT = "go-duration"
"""The format of durations in JSON Schemas."""

DurationSeconds = Annotated[
    float, Meta(extra={"go": "duration"}, extra_json_schema={"format": DURATION_FORMAT})
]
"""Seconds, written as a Go duration in configuration files."""


def parse_duration(text: str) -> float:
    """Return a Go duration in seconds; raises ValueError with Go's message."""
    return parse_go_duration(text) / 10**9
