"""Importance: the order in which pods are kept when not all can stay.

Upstream: pkg/scheduler/util/utils.go (v1.36)
Reads:    pod.spec.priority, pod.status.startTime
Differs:  a pod that has not started is younger than every pod that has; upstream uses the current
          time instead, read at each comparison. Equal pods stay in order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.snapshot.pod_info import PodInfo

NOT_STARTED: Final = 1 << 63
"""The start time, in nanoseconds, of pods that have not started."""


def start_time_nanoseconds(pod: PodInfo) -> int:
    """Return when the pod started, in nanoseconds since the epoch."""
    started = pod.start_time
    return NOT_STARTED if started is None else started


def by_importance(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return the pods with the most important first: higher priority, then earlier start."""
    return sorted(pods, key=lambda pod: (-pod.priority, start_time_nanoseconds(pod)))
