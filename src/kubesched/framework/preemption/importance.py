"""Importance: the order in which pods are kept when not all can stay.

Upstream: pkg/scheduler/util/utils.go (v1.36)
Reads:    pod.spec.priority, pod.status.startTime
Differs:  pods that started at the same time stay in order of arrival; upstream's sort is unstable
          for more than twelve pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.snapshot.pod_info import PodInfo

NOT_STARTED: Final = (1 << 63) - 1
"""The start time, in nanoseconds, of pods that have not started: the largest int64."""


def start_time_nanoseconds(pod: PodInfo) -> int:
    """Return when the pod started, in nanoseconds since the epoch; as int64, so by 2262."""
    started = pod.start_time
    return NOT_STARTED if started is None else max(-NOT_STARTED, min(started, NOT_STARTED))


def by_importance(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return the pods with the most important first: higher priority, then earlier start.

    Of pods that have not started, the last to arrive is the most important.
    """
    started: list[PodInfo] = []
    waiting: list[PodInfo] = []
    for pod in pods:
        (waiting if pod.start_time is None else started).append(pod)
    # Upstream takes the current time for a missing start time and reads the clock again for each
    # pod that it compares. So of two such pods the one it looks at first, the later one, is older.
    waiting.reverse()
    return sorted(started + waiting, key=lambda pod: (-pod.priority, start_time_nanoseconds(pod)))
