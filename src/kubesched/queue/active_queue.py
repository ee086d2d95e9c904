"""ActiveQueue (activeQ) holds the pods that wait for nothing but their turn.

Upstream: pkg/scheduler/backend/queue/active_queue.go (v1.36)
Invariants: no pod here is gated.
Differs:  pods in flight have a file of their own (`in_flight`); nobody waits here for a pod.
"""

from __future__ import annotations

from kubesched.queue.keyed_heap import KeyedHeap


class ActiveQueue(KeyedHeap):
    """Pods in the order of the first profile's QueueSort plugin."""

    def check(self) -> None:
        """Assert that the heap is sound and holds nobody back."""
        super().check()
        gated = [queued.pod_info.key for queued in self if queued.is_gated]
        assert not gated, f"gated pods are active: {gated}"
