from __future__ import annotations

import pytest

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.active_queue import ActiveQueue
from kubesched.testing.builders import make_pod_info

from .scene import priority_sort


def test_check_finds_a_gated_pod() -> None:
    """No pod that a gate holds back may be active."""
    active = ActiveQueue(priority_sort)
    queued = QueuedPodInfo(make_pod_info("p"))
    active.add(queued)
    active.check()
    queued.gating_plugin = "Gates"
    with pytest.raises(AssertionError, match="default/p"):
        active.check()


def test_order() -> None:
    """Higher priority first, then who has waited longer, then who came first."""
    active = ActiveQueue(priority_sort)
    for name, priority, timestamp in (
        ("late", 0, 2.0),
        ("early", 0, 1.0),
        ("urgent", 9, 3.0),
        ("early-too", 0, 1.0),
    ):
        active.add(QueuedPodInfo(make_pod_info(name, priority=priority), timestamp=timestamp))
    names = [queued.pod_info.name for queued in iter(active.pop, None)]
    assert ["urgent", "early", "early-too", "late"] == names
