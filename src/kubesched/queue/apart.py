"""The places of a scheduling queue are apart: no pod is in two of them."""

from __future__ import annotations

from kubesched.queue.active_queue import ActiveQueue
from kubesched.queue.backoff_queue import BackoffQueue
from kubesched.queue.in_flight import InFlight
from kubesched.queue.unschedulable_pods import UnschedulablePods


def holder_of(
    key: str, active: ActiveQueue, backoff: BackoffQueue, unschedulable: UnschedulablePods
) -> str:
    """Return the name of the place where a pod waits; "" if it does not."""
    if key in unschedulable:
        return "unschedulable"
    if key in active:
        return "active"
    return "backoff" if key in backoff else ""


def check_apart(
    active: ActiveQueue,
    backoff: BackoffQueue,
    unschedulable: UnschedulablePods,
    in_flight: InFlight,
) -> None:
    """Assert that no pod waits twice, or waits and is in flight."""
    off, rejected = backoff.keys(), unschedulable.keys()
    twice = (off & rejected) | (active.keys() & (off | rejected))
    assert not twice, f"{sorted(twice)} wait twice"
    for queued in in_flight.pods():
        key, uid = queued.pod_info.key, queued.pod_info.uid
        waiting = unschedulable.get(key) or backoff.get(key) or active.get(key)
        assert waiting is None or waiting.pod_info.uid != uid, f"{key} waits and is in flight"
