"""Where failed pods are put, for every kind of failure that the queue distinguishes."""

from __future__ import annotations

import pytest

from kubesched.queue.backoff_queue import QueueOptions
from kubesched.queue.moves import QueuePlace

from .scene import ASSIGNED_DELETE, CLAIM_ADD, NODE_ADD, NODE_LABEL, OTHER_PROFILE, Scene

ACTIVE, BACKOFF, UNSCHEDULABLE = QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("plugins", "pending", "expected"),
    [
        pytest.param("", "", BACKOFF, id="error"),
        pytest.param("Fit", "", UNSCHEDULABLE, id="one-reason"),
        pytest.param("Fit Spread", "", UNSCHEDULABLE, id="two-reasons"),
        pytest.param("", "Volumes", UNSCHEDULABLE, id="pending"),
    ],
)
def test_a_failure_without_events(
    scene: Scene, plugins: str, pending: str, expected: QueuePlace
) -> None:
    """After an error a pod backs off; after a rejection it is unschedulable."""
    scene.attempt("p")
    scene.now = 2.0
    woke = scene.fail("p", *plugins.split(), pending=pending.split())
    assert expected is scene.place_of("p")
    assert (expected is BACKOFF) == woke
    assert "" == scene.pop()
    assert "ScheduleAttemptFailure" == scene.moves[-1].event
    assert [] == scene.names(QueuePlace.IN_FLIGHT)
    queued = scene.waiting("p")
    is_error = expected is BACKOFF
    assert (int(not is_error), int(is_error)) == (
        queued.unschedulable_count,
        queued.consecutive_errors_count,
    )
    assert 2.0 == queued.timestamp


@pytest.mark.parametrize(
    ("events", "plugins", "pending", "helps", "expected"),
    [
        pytest.param([NODE_ADD], "Fit", "", "Fit", BACKOFF, id="helped"),
        pytest.param([NODE_ADD], "Fit", "", "", UNSCHEDULABLE, id="hint-skips"),
        pytest.param([NODE_LABEL], "Fit", "", "Fit", UNSCHEDULABLE, id="not-registered"),
        pytest.param([NODE_LABEL, NODE_ADD], "Fit", "", "Fit", BACKOFF, id="second-helps"),
        pytest.param([NODE_ADD], "", "", "", BACKOFF, id="an-error-needs-no-help"),
        pytest.param([CLAIM_ADD], "", "Volumes", "Volumes", ACTIVE, id="pending-was-waiting"),
        pytest.param([CLAIM_ADD], "Fit", "Volumes", "Volumes", ACTIVE, id="pending-of-two"),
        pytest.param(
            [NODE_ADD, CLAIM_ADD], "Fit", "Volumes", "Fit Volumes", ACTIVE, id="the-best-wins"
        ),
        pytest.param([NODE_ADD, CLAIM_ADD], "Fit", "Volumes", "Fit", BACKOFF, id="the-other-wins"),
    ],
)
def test_events_while_in_flight(
    scene: Scene, events: list[object], plugins: str, pending: str, helps: str, expected: QueuePlace
) -> None:
    """Events during the attempt are considered when the pod is put back."""
    scene.attempt("p")
    for event in events:
        scene.event(event)  # type: ignore[arg-type] # a table's column
    scene.answers.helped = set(helps.split())
    assert (expected is not UNSCHEDULABLE) == scene.fail(
        "p", *plugins.split(), pending=pending.split()
    )
    assert expected is scene.place_of("p")


def test_events_before_the_attempt_do_not_count(scene: Scene) -> None:
    """The pod was popped after them."""
    for name in ("p", "q"):
        scene.add(name)
    scene.pop()
    scene.event(NODE_ADD)
    scene.pop()
    scene.answers.helped = {"Fit"}
    scene.fail("q", "Fit")
    scene.fail("p", "Fit")
    assert UNSCHEDULABLE is scene.place_of("q")
    assert BACKOFF is scene.place_of("p")


def test_backoff_grows_with_each_rejection(scene: Scene) -> None:
    """1, 2, 4, 8, 10, 10 seconds; errors are counted separately."""
    scene.add("p")
    waits = []
    for plugins in ("Fit", "Fit", "", "", "Fit", "Fit", "Fit", "Fit"):
        scene.pop_specific("p")
        scene.fail("p", *plugins.split())
        scene.event(NODE_ADD, helps=["Fit"])
        assert BACKOFF is scene.place_of("p")
        start = scene.now
        while not scene.queue.flush_backoff(scene.now):
            scene.now += 1
        waits.append(scene.now - start - 1)
    assert [1, 2, 1, 2, 4, 8, 10, 10] == waits


def test_without_backoff_a_failed_pod_is_active_at_once() -> None:
    """A maximum of 0 disables backoff after errors, too."""
    scene = Scene(QueueOptions(max_backoff_seconds=0))
    scene.attempt("p")
    assert scene.fail("p")
    assert ACTIVE is scene.place_of("p")


def test_a_failed_pod_may_be_gated(scene: Scene) -> None:
    """A preemptor is gated until its victims are gone, instead of backing off."""
    scene.attempt("p")
    scene.answers.closed["Preemption"] = {"p"}
    scene.event(NODE_ADD)
    scene.answers.helped = {"Fit"}
    assert not scene.fail("p", "Fit")
    assert UNSCHEDULABLE is scene.place_of("p")
    assert "Preemption" == scene.waiting("p").gating_plugin
    assert {"Fit", "Preemption"} == scene.waiting("p").unschedulable_plugins


def test_a_gated_pod_after_an_error_counts_as_rejected(scene: Scene) -> None:
    """The gating plugin is a rejecting plugin, so the pod is in that heap afterwards."""
    scene.attempt("p")
    scene.answers.closed["Preemption"] = {"p"}
    scene.fail("p")
    assert UNSCHEDULABLE is scene.place_of("p")
    scene.answers.closed["Preemption"] = set()
    scene.event(ASSIGNED_DELETE, helps=["Preemption"])
    assert BACKOFF is scene.place_of("p")
    assert "p" == scene.pop()


def test_a_pod_that_is_not_in_flight_backs_off(scene: Scene) -> None:
    """The caller has a bug then, but the pod must not be lost."""
    scene.attempt("p")
    scene.queue.done("default/p", scene.now)
    scene.fail("p", "Fit")
    assert BACKOFF is scene.place_of("p")


@pytest.mark.parametrize(
    ("gate", "group", "expected"),
    [
        pytest.param(True, True, BACKOFF, id="member"),
        pytest.param(True, False, UNSCHEDULABLE, id="no-member"),
        pytest.param(False, True, UNSCHEDULABLE, id="gate-off"),
    ],
)
def test_members_of_pod_groups(gate: bool, group: bool, expected: QueuePlace) -> None:
    """They are retried after backoff alone, whatever plugins rejected them."""
    scene = Scene(QueueOptions(generic_workload=gate))
    spec = {"schedulingGroup": {"podGroupName": "g"}} if group else {}
    scene.attempt("p", spec=spec)
    scene.fail("p", "Fit")
    assert expected is scene.place_of("p")


def test_a_woken_member_of_a_pod_group_does_not_back_off() -> None:
    """An idle scheduler pops it at once when the victims of its group are gone."""
    scene = Scene(QueueOptions(generic_workload=True))
    scene.attempt("p", spec={"schedulingGroup": {"podGroupName": "g"}})
    scene.answers.closed["Preemption"] = {"p"}
    scene.fail("p", "Fit")
    assert UNSCHEDULABLE is scene.place_of("p")
    scene.answers.closed["Preemption"] = set()
    scene.event(ASSIGNED_DELETE, helps=["Fit"])
    assert BACKOFF is scene.place_of("p")
    assert "p" == scene.pop()
    scene.fail("p", "Fit")
    assert BACKOFF is scene.place_of("p")
    assert not scene.pop()


def test_a_deleted_or_bound_pod_is_done(scene: Scene) -> None:
    """The failure handler does not put it back; its part of the log is dropped."""
    scene.attempt("p")
    scene.event(NODE_ADD)
    scene.delete("p")
    scene.done("p")
    assert QueuePlace.NOWHERE is scene.place_of("p")
    assert [0, 0] == [count for _, count in scene.queue.statistics().in_flight_events]


def test_the_gauge_counts_rejected_pods(scene: Scene) -> None:
    """They count from the failure to the next attempt."""
    series = []
    for name, scheduler in (("p", "default-scheduler"), ("q", OTHER_PROFILE)):
        scene.to_unschedulable(name, "Fit", spec={"schedulerName": scheduler})
        series.append(scene.queue.statistics().unschedulable_plugins)
    scene.activate("p")
    series.append(scene.queue.statistics().unschedulable_plugins)
    scene.pop()
    series.append(scene.queue.statistics().unschedulable_plugins)
    mine, other = ("Fit", "default-scheduler"), ("Fit", OTHER_PROFILE)
    assert [
        ((*mine, 1),),
        ((*other, 1), (*mine, 1)),
        ((*other, 1), (*mine, 1)),
        ((*other, 1), (*mine, 0)),
    ] == series
