"""Simulations of crowded clusters, tried small."""

from __future__ import annotations

from benchmarks.overload import OVER, measure


def test_pods_pile_up() -> None:
    """There are more pods than room, and each end of a pod wakes those that are pending."""
    found = measure(2, OVER, hours=1)
    assert found.pods == found.bound + found.pending
    assert found.pending > 0
    assert found.attempts > 5 * found.pods
