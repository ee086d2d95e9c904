"""The benchmark of asynchronous preemption, with few nodes."""

from __future__ import annotations

from benchmarks.preemption import PODS_PER_NODE, measure


def test_every_preemptor_is_bound() -> None:
    """Each evicts one pod, as its budget allows, and takes its place."""
    found = measure(nodes=20, preemptors=10)
    assert (20 * PODS_PER_NODE, 10, 10) == (found.pods, found.bound, found.evicted)
