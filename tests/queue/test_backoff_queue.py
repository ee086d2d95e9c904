from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.backoff_queue import BackoffQueue, QueueOptions, note_failure
from kubesched.testing.builders import make_pod_info

from .scene import priority_sort


def failed(
    name: str = "p",
    *,
    timestamp: float = 0.0,
    rejections: int = 0,
    errors: int = 0,
    plugins: frozenset[str] = frozenset({"Fit"}),
    priority: int = 0,
) -> QueuedPodInfo:
    """Return a pod that failed before."""
    return QueuedPodInfo(
        make_pod_info(name, priority=priority),
        timestamp=timestamp,
        unschedulable_count=rejections,
        consecutive_errors_count=errors,
        unschedulable_plugins=plugins,
    )


def names(pods: list[QueuedPodInfo]) -> list[str]:
    """Return the pods' names."""
    return [queued.pod_info.name for queued in pods]


@pytest.mark.parametrize(
    ("initial", "longest", "failures", "expected"),
    [
        pytest.param(1, 10, 0, 0, id="never-failed"),
        pytest.param(1, 10, 1, 1, id="first"),
        pytest.param(1, 10, 2, 2, id="second"),
        pytest.param(1, 10, 3, 4, id="third"),
        pytest.param(1, 10, 4, 8, id="fourth"),
        pytest.param(1, 10, 5, 10, id="capped"),
        pytest.param(1, 10, 64, 10, id="64-bits"),
        pytest.param(1, 10, 10_000, 10, id="beyond-any-float"),
        pytest.param(1, 8, 4, 8, id="exactly-the-longest"),
        pytest.param(20, 10, 1, 10, id="initial-above-longest"),
        pytest.param(3, 100, 3, 12, id="other-initial"),
    ],
)
def test_backoff_doubles_up_to_the_maximum(
    initial: float, longest: float, failures: int, expected: float
) -> None:
    """It starts with the initial backoff."""
    backoff = BackoffQueue(
        priority_sort,
        QueueOptions(initial_backoff_seconds=initial, max_backoff_seconds=longest),
    )
    assert expected == backoff.duration_seconds(failures)


@pytest.mark.parametrize(
    ("rejections", "errors", "timestamp", "aligned", "exact"),
    [
        pytest.param(0, 0, 5.5, -inf, -inf, id="never-failed"),
        pytest.param(1, 0, 5.0, 6.0, 6.0, id="whole-second"),
        pytest.param(1, 0, 5.9, 6.0, 6.9, id="rounded-down"),
        pytest.param(3, 0, 5.5, 9.0, 9.5, id="third-rejection"),
        pytest.param(3, 1, 5.5, 6.0, 6.5, id="errors-count-before-rejections"),
        pytest.param(0, 2, 5.5, 7.0, 7.5, id="errors-only"),
        pytest.param(9, 0, 5.5, 15.0, 15.5, id="longest"),
    ],
)
def test_backoff_starts_when_the_pod_is_put_back(
    rejections: int, errors: int, timestamp: float, aligned: float, exact: float
) -> None:
    """With pop-from-backoff its end is aligned to whole seconds."""
    for expected, pops_from_backoff in ((aligned, True), (exact, False)):
        backoff = BackoffQueue(priority_sort, QueueOptions(pops_from_backoff=pops_from_backoff))
        queued = failed(timestamp=timestamp, rejections=rejections, errors=errors)
        assert expected == backoff.expiration(queued)


def test_a_maximum_of_zero_disables_backoff() -> None:
    """A failed pod can be retried at once."""
    backoff = BackoffQueue(priority_sort, QueueOptions(max_backoff_seconds=0))
    assert -inf == backoff.expiration(failed(rejections=3))
    assert not backoff.is_backing_off(failed(rejections=3), 0.0)


def test_expiration_is_kept_until_the_next_failure() -> None:
    """The expiration is computed once per failure."""
    backoff = BackoffQueue(priority_sort, QueueOptions())
    queued = failed(timestamp=5.0, rejections=1)
    assert 6.0 == backoff.expiration(queued)
    queued.timestamp = 100.0
    assert 6.0 == backoff.expiration(queued)
    note_failure(queued, 100.0)
    assert 102.0 == backoff.expiration(queued)


def test_seconds_begin_with_those_of_the_wall_clock() -> None:
    """It is a quarter of a second ahead here."""
    backoff = BackoffQueue(priority_sort, QueueOptions(wall_clock_ahead_seconds=0.25))
    first = failed("first", rejections=1, timestamp=4.75)
    urgent = failed("urgent", rejections=1, timestamp=5.74, priority=9)
    later = failed("later", rejections=1, timestamp=5.75, priority=9)
    for queued in (later, first, urgent):
        backoff.add(queued)
    assert [5.75, 5.75, 6.75] == [backoff.expiration(one) for one in (first, urgent, later)]
    assert ["urgent", "first", "later"] == names(backoff.pods())
    assert [6.75, 6.75, 7.75] == [backoff.next_completion(now) for now in (5.0, 5.8, 7.0)]
    assert not backoff.pop_completed(6.74)
    assert ["urgent", "first"] == names(backoff.pop_completed(6.75))


@pytest.mark.parametrize(
    ("now", "aligned", "exact"),
    [
        pytest.param(5.5, True, True, id="just-failed"),
        pytest.param(6.0, True, True, id="its-second-begins"),
        pytest.param(6.5, True, True, id="to-the-instant"),
        pytest.param(6.75, True, False, id="its-second-still-counts"),
        pytest.param(7.0, False, False, id="next-second"),
    ],
)
def test_is_backing_off(now: float, aligned: bool, exact: bool) -> None:
    """At its expiration a pod still backs off; when aligned, during the whole second."""
    queued = failed(timestamp=5.5, rejections=1)
    assert aligned == BackoffQueue(priority_sort, QueueOptions()).is_backing_off(queued, now)
    queued.backoff_expiration = None
    plain = BackoffQueue(priority_sort, QueueOptions(pops_from_backoff=False))
    assert exact == plain.is_backing_off(queued, now)


@given(st.floats(0, 1e9), st.integers(1, 12), st.floats(0, 20))
def test_alignment_adds_at_most_a_second(start: float, rejections: int, later: float) -> None:
    """A pod never waits for less than its backoff."""
    backoff = BackoffQueue(priority_sort, QueueOptions())
    queued = failed(timestamp=start, rejections=rejections)
    wait = backoff.duration_seconds(rejections)
    if backoff.is_backing_off(queued, start + later):
        assert later <= wait + 1.001
    else:
        assert later >= wait - 1e-6


@pytest.mark.parametrize(
    ("pops_from_backoff", "expected"),
    [
        pytest.param(True, ["urgent", "first", "late", "error-first", "error-late"], id="aligned"),
        pytest.param(False, ["first", "urgent", "late", "error-first", "error-late"], id="exact"),
    ],
)
def test_order_of_expiration(pops_from_backoff: bool, expected: list[str]) -> None:
    """Within an aligned second, activeQ's order applies, except after errors."""
    backoff = BackoffQueue(priority_sort, QueueOptions(pops_from_backoff=pops_from_backoff))
    nobody = frozenset[str]()
    for queued in (
        failed("late", timestamp=9.0, rejections=1),
        failed("first", timestamp=5.1, rejections=1),
        failed("urgent", timestamp=5.6, rejections=1, priority=7),
        failed("error-late", timestamp=5.7, errors=1, plugins=nobody, priority=7),
        failed("error-first", timestamp=4.2, errors=1, plugins=nobody),
    ):
        backoff.add(queued)
    backoff.check()
    assert expected == names(backoff.pods())
    assert expected == names(backoff.pop_completed(100.0))
    assert [] == backoff.pods()


def test_pop_completed_returns_pods_whose_backoff_has_ended() -> None:
    """They come from both heaps; the others stay."""
    backoff = BackoffQueue(priority_sort, QueueOptions())
    nobody = frozenset[str]()
    backoff.add(failed("soon", timestamp=0.0, rejections=1))
    backoff.add(failed("later", timestamp=0.0, rejections=2))
    backoff.add(failed("error", timestamp=0.5, errors=1, plugins=nobody))
    assert [] == backoff.pop_completed(1.9)
    assert ["soon", "error"] == names(backoff.pop_completed(2.0))
    assert ["later"] == names(backoff.pods())


def test_pods_after_errors_are_not_popped_early() -> None:
    """Only rejected pods are popped early."""
    backoff = BackoffQueue(priority_sort, QueueOptions())
    backoff.add(failed("error", errors=1, plugins=frozenset()))
    assert backoff.peek_rejected() is None
    rejected = failed("rejected", rejections=5)
    backoff.add(rejected)
    assert rejected == backoff.peek_rejected()


def test_a_pod_is_in_one_heap() -> None:
    """A pod that failed for another reason moves to the other heap."""
    backoff = BackoffQueue(priority_sort, QueueOptions())
    queued = failed("p", rejections=1)
    backoff.add(queued)
    queued.unschedulable_plugins = frozenset()
    backoff.add(queued)
    backoff.check()
    assert 1 == len(backoff)
    queued.pending_plugins = frozenset({"Fit"})
    backoff.add(queued)
    backoff.check()
    assert 1 == len(backoff)


def test_reorder_after_a_change() -> None:
    """A pod whose priority changed is reordered in its heap."""
    backoff = BackoffQueue(priority_sort, QueueOptions())
    first, second = failed("first", rejections=1), failed("second", rejections=1)
    error = failed("error", errors=1, plugins=frozenset())
    for queued in (first, second, error):
        backoff.add(queued)
    second.pod_info = make_pod_info("second", priority=9)
    backoff.add(second)
    backoff.add(error)
    backoff.check()
    assert ["second", "first", "error"] == names(backoff.pods())


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(frozenset({"Fit"}), (3, 0), id="rejected"),
        pytest.param(frozenset(), (2, 5), id="error"),
    ],
)
def test_rejections_and_errors_are_counted(
    plugins: frozenset[str], expected: tuple[int, int]
) -> None:
    """A rejection resets the consecutive errors; an error increments them."""
    queued = failed(rejections=2, errors=4, plugins=plugins)
    queued.was_flushed = True
    BackoffQueue(priority_sort, QueueOptions()).expiration(queued)
    note_failure(queued, 7.5)
    assert expected == (queued.unschedulable_count, queued.consecutive_errors_count)
    assert (7.5, False) == (queued.timestamp, queued.was_flushed)
    assert queued.backoff_expiration is None
