"""The benchmark of overloaded clusters, with few nodes."""

from __future__ import annotations

from benchmarks.overload import OVER, measure


def test_more_pods_than_room() -> None:
    """Each pod that ends requeues the pending ones."""
    found = measure(2, OVER, hours=1)
    assert found.pods == found.bound + found.pending
    assert found.pending > 0
    assert found.attempts > 5 * found.pods
