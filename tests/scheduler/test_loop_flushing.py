"""Timers of the queue: only for the times at which a flush moves a pod."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.loop import Flushing
from kubesched.simulator.virtual_loop import run


class Queue(SchedulingQueue):
    """Has the times of flushes, and records when they happen."""

    def __init__(self) -> None:
        super().__init__(lambda queued: (queued.timestamp,), {})
        self.backoff_ends: list[float] = []
        self.late: list[float] = []
        self.flushes: list[tuple[str, float]] = []

    def next_backoff_flush(self, now: float) -> float | None:
        """Return the earliest end."""
        return min(self.backoff_ends, default=None)

    def flush_backoff(self, now: float) -> bool:
        """Drop the pods whose backoff has ended."""
        self.flushes.append(("backoff", now))
        self.backoff_ends = [end for end in self.backoff_ends if end > now]
        return True

    def late_after(self) -> float | None:
        """Return when the first pod has waited too long."""
        return min(self.late, default=None)

    def flush_unschedulable(self, now: float) -> bool:
        """Drop the pods that have waited too long."""
        self.flushes.append(("unschedulable", now))
        self.late = [late for late in self.late if late >= now]
        return True


def _flushes(story: Callable[[Queue], None], until: float, start: float = 0.0) -> Queue:
    async def main() -> Queue:
        queue = Queue()
        flushing = Flushing(queue, lambda: None)
        flushing.start()
        story(queue)
        await asyncio.sleep(until)
        flushing.stop()
        queue.on_backoff()
        queue.on_unschedulable(0.0)
        await asyncio.sleep(1000)
        return queue

    return run(main(), start)


def test_an_empty_queue_has_no_timer() -> None:
    """Nothing is flushed."""
    assert [] == _flushes(lambda _: None, 1000).flushes


def test_the_timer_is_for_the_earliest_backoff() -> None:
    """An earlier end moves it; a later one needs the next timer."""

    def story(queue: Queue) -> None:
        for end in (5.0, 3.0, 9.0):
            queue.backoff_ends.append(end)
            queue.on_backoff()

    assert [("backoff", 3.0), ("backoff", 5.0), ("backoff", 9.0)] == _flushes(story, 20).flushes


@pytest.mark.parametrize(
    ("start", "late", "expected"),
    [
        pytest.param(0.0, 299.0, 300.0, id="at-the-next-round"),
        pytest.param(0.0, 300.0, 330.0, id="exactly-is-not-over"),
        pytest.param(7.0, 299.0, 307.0, id="rounds-begin-with-the-run"),
        pytest.param(400.0, 299.0, 430.0, id="never-in-the-past"),
    ],
)
def test_unschedulable_pods_are_flushed_every_thirty_seconds(
    start: float, late: float, expected: float
) -> None:
    """In the first round after the first pod has waited too long."""

    def story(queue: Queue) -> None:
        for moment in (late + 1000, late):
            queue.late.append(moment)
            queue.on_unschedulable(moment)

    flushes = _flushes(story, 400, start).flushes
    assert ("unschedulable", expected) == flushes[0]


def test_no_timer_after_the_end() -> None:
    """Planned flushes are dropped."""

    def story(queue: Queue) -> None:
        queue.backoff_ends.append(50.0)
        queue.on_backoff()
        queue.late.append(50.0)
        queue.on_unschedulable(50.0)

    assert [] == _flushes(story, 10).flushes
