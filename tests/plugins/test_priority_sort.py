from __future__ import annotations

import pytest

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.plugins.priority_sort import PrioritySort
from kubesched.testing.builders import make_pod_info
from kubesched.testing.handle import FakeHandle

PLUGIN = PrioritySort(None, FakeHandle())


def queued(priority: int | None, timestamp: float) -> QueuedPodInfo:
    """A waiting pod."""
    return QueuedPodInfo(make_pod_info(priority=priority), timestamp=timestamp)


@pytest.mark.parametrize(
    ("one", "other", "before"),
    [
        pytest.param(queued(50, 1), queued(100, 0), False, id="lower-priority"),
        pytest.param(queued(100, 1), queued(50, 0), True, id="higher-priority"),
        pytest.param(queued(100, 1), queued(100, 2), True, id="waits-longer"),
        pytest.param(queued(100, 2), queued(100, 1), False, id="came-later"),
        pytest.param(queued(100, 1), queued(100, 1), False, id="equal"),
        pytest.param(queued(None, 1), queued(0, 2), True, id="no-priority-is-0"),
        pytest.param(queued(None, 1), queued(-1, 0), True, id="negative-priority"),
    ],
)
def test_sort_key(one: QueuedPodInfo, other: QueuedPodInfo, before: bool) -> None:
    """Higher priority first, then earlier time."""
    assert before == (PLUGIN.sort_key(one) < PLUGIN.sort_key(other))


def test_registers_nothing() -> None:
    """No event brings back a pod, because none is rejected."""
    assert () == PLUGIN.events_to_register()
