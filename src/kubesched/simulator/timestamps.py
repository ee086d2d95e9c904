"""Timestamps of virtual time, as Kubernetes writes them.

Invariants: second 0 is the beginning of a fixed year, so that the same seed gives the same texts.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS_MAX: Final = 86_400.0 * 365 * 100


def timestamp(seconds: float) -> str:
    """Return the RFC 3339 time of a virtual second, in whole seconds as metav1.Time."""
    return (EPOCH + timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")
