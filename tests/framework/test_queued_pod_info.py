"""A pod in the queue with its attempts."""

from __future__ import annotations

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.testing.builders import make_pod_info


def test_gated() -> None:
    """A pod is gated while it has a gating plugin."""
    assert QueuedPodInfo(make_pod_info(), gating_plugin="SchedulingGates").is_gated
    assert not QueuedPodInfo(make_pod_info()).is_gated


def test_rejecting_plugins() -> None:
    """Plugins that rejected it and plugins that wait for something both count."""
    queued = QueuedPodInfo(
        make_pod_info(),
        unschedulable_plugins=frozenset({"A", "B"}),
        pending_plugins=frozenset({"B", "C"}),
    )
    assert frozenset({"A", "B", "C"}) == queued.rejecting_plugins


def test_identity() -> None:
    """Two entries of one pod are two entries."""
    info = make_pod_info()
    assert QueuedPodInfo(info) != QueuedPodInfo(info)
