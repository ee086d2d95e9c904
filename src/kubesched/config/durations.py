"""Durations as Go writes them ("1m30s"), kept as seconds.

Upstream: metav1.Duration (v1.36)
Differs:  nothing.
"""

from typing import Annotated

from msgspec import Meta

from kubesched.api.go_text import parse_go_duration

DurationSeconds = Annotated[float, Meta(extra={"go": "duration"})]
"""A number of seconds, written as a Go duration in configuration ("15s", "1m30s")."""


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration. Raises ValueError with Go's message."""
    return parse_go_duration(text) / 10**9
