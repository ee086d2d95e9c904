from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.keyed_heap import KeyedHeap
from kubesched.testing.builders import make_pod_info

NAMES = ("a", "b", "c", "d")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "change", "delete", "peek"]),
        st.sampled_from(NAMES),
        st.integers(0, 2),
    ),
    max_size=60,
)


def by_timestamp(queued: QueuedPodInfo) -> tuple[float]:
    """Sort by time."""
    return (queued.timestamp,)


def waiting(name: str, timestamp: float = 0.0, arrival: int = 0) -> QueuedPodInfo:
    """Return a pod with a sort key and a number."""
    queued = QueuedPodInfo(make_pod_info(name), timestamp=timestamp)
    queued.arrival = arrival
    return queued


@given(STEPS)
def test_a_heap_equals_a_sorted_list(steps: list[tuple[str, str, int]]) -> None:
    """Equal pods keep the order in which they were added, whatever updates there are."""
    heap = KeyedHeap(by_timestamp)
    twin: list[QueuedPodInfo] = []
    for number, (step, name, timestamp) in enumerate(steps):
        known = next((queued for queued in twin if queued.pod_info.name == name), None)
        first = min(twin, key=by_timestamp, default=None)
        if step == "add":
            queued = waiting(name, timestamp, number)
            heap.add(queued)
            if known is None:
                twin.append(queued)
            else:
                twin[twin.index(known)] = queued
        elif step == "change" and known is not None:
            known.timestamp = timestamp
            heap.add(known)
        elif step == "delete":
            assert known is heap.delete(f"default/{name}")
            twin = [queued for queued in twin if queued is not known]
        elif step == "peek":
            assert first is heap.peek()
        heap.check()
        assert sorted(twin, key=by_timestamp) == heap.pods()
        assert len(twin) == len(heap)
        for queued in twin:
            assert queued is heap.get(queued.pod_info.key)
            assert queued.pod_info.key in heap


def test_stale_entries_are_dropped() -> None:
    """The heap's size is bounded by the number of pods."""
    heap = KeyedHeap(by_timestamp)
    staying = waiting("staying")
    for timestamp in range(1000):
        staying.timestamp = timestamp
        heap.add(staying)
        heap.add(waiting("leaving", timestamp))
        heap.delete("default/leaving")
    assert len(heap._heap) < 100
    assert [staying] == heap.pods()
    heap.check()
