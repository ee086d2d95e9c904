"""Tests of the order of pods by importance."""

from __future__ import annotations

from kubesched.framework.preemption.importance import by_importance
from kubesched.testing.builders import make_pod_info

from .cluster import time


def test_importance() -> None:
    """Higher priority first, then older; pods that have not started last, the latest first."""
    pods = [
        make_pod_info("unstarted-1", priority=1),
        make_pod_info("young", priority=1, start_time=time(9)),
        make_pod_info("unstarted-2", priority=1),
        make_pod_info("old", priority=1, start_time=time(3)),
        make_pod_info("high", priority=2, start_time=time(9)),
        make_pod_info("none"),
        make_pod_info("negative", priority=-1, start_time=time(1)),
    ]
    expected = ["high", "old", "young", "unstarted-2", "unstarted-1", "none", "negative"]
    assert expected == [pod.name for pod in by_importance(pods)]
