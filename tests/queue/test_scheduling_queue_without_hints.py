"""The queue as it was before there were queueing hints."""

from __future__ import annotations

import pytest

from kubesched.framework.cluster_event import CSI_NODE, Action, ClusterEvent
from kubesched.queue.moves import Place
from kubesched.queue.queue_options import ProfileRules, QueueOptions
from kubesched.queue.registrations import Registration
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.testing.builders import make_pod_info

from .scene import NODE_ADD, NODE_LABEL, PROFILE, Scene, priority_sort

ACTIVE, BACKOFF, UNSCHEDULABLE = Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE
OPTIONS = QueueOptions(queueing_hints=False, pops_from_backoff=False)


@pytest.fixture
def scene() -> Scene:
    """A queue with nothing in it, and hints that say no."""
    return Scene(OPTIONS)


@pytest.mark.parametrize(
    ("plugins", "moves_at", "expected"),
    [
        pytest.param("Fit", None, UNSCHEDULABLE, id="nothing-moved"),
        pytest.param("Fit", "before", UNSCHEDULABLE, id="moved-before-the-cycle"),
        pytest.param("Fit", "during", BACKOFF, id="moved-during-the-cycle"),
        pytest.param("", None, BACKOFF, id="error"),
    ],
)
def test_move_request_cycle(
    scene: Scene, plugins: str, moves_at: str | None, expected: Place
) -> None:
    """A pod backs off if anything was moved in or after its cycle, or it met an error."""
    scene.add("p")
    if moves_at == "before":
        scene.event(NODE_LABEL)
    scene.pop()
    cycle = scene.queue.scheduling_cycle
    if moves_at == "during":
        scene.event(NODE_LABEL)
    assert not scene.fail("p", *plugins.split(), cycle=cycle)
    assert expected is scene.place_of("p")


def test_activate_counts_as_a_move(scene: Scene) -> None:
    """Activating a pod in flight brings back whoever is tried in that cycle."""
    scene.add("p")
    scene.pop()
    scene.activate("p")
    scene.fail("p", "Fit")
    assert BACKOFF is scene.place_of("p")


def test_an_event_nobody_registered_is_no_move(scene: Scene) -> None:
    """It changes nothing."""
    scene.add("p")
    scene.pop()
    scene.event(ClusterEvent(CSI_NODE, Action.ADD))
    scene.fail("p", "Fit")
    assert UNSCHEDULABLE is scene.place_of("p")


def test_nothing_is_remembered_of_pods_in_flight(scene: Scene) -> None:
    """Pods in flight are not known, so one that changes is taken for a new one."""
    scene.add("p")
    scene.pop()
    scene.event(NODE_ADD)
    assert 0 == scene.queue.statistics().in_flight
    assert scene.update("p", labels={"a": "b"})
    assert ACTIVE is scene.place_of("p")


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(NODE_ADD, True, id="registered"),
        pytest.param(NODE_LABEL, False, id="not-by-its-rejector"),
    ],
)
def test_a_registered_event_moves(event: ClusterEvent, expected: bool) -> None:
    """Without a hint, an event that the rejecting plugin registered is enough."""
    rules = {
        PROFILE: ProfileRules(
            {}, [Registration("Fit", NODE_ADD), Registration("Spread", NODE_LABEL)]
        )
    }
    queue = SchedulingQueue(priority_sort, rules, OPTIONS)
    queue.add(make_pod_info("p"), 0.0)
    queued = queue.pop(0.0)
    assert queued is not None
    queued.unschedulable_plugins = frozenset({"Fit"})
    queue.add_unschedulable_if_not_present(queued, 0.0)
    assert expected == queue.move_all(event, None, None, 5.0)
    assert expected == (queue.pods(ACTIVE) == [queued])


@pytest.mark.parametrize(
    ("fields", "now", "expected"),
    [
        pytest.param({}, 0.5, UNSCHEDULABLE, id="nothing-changed"),
        pytest.param({"status": {"phase": "Pending"}}, 0.5, UNSCHEDULABLE, id="status"),
        pytest.param({"labels": {"a": "b"}}, 0.5, BACKOFF, id="backs-off"),
        pytest.param({"labels": {"a": "b"}}, 5.0, ACTIVE, id="backed-off"),
    ],
)
def test_update(scene: Scene, fields: dict[str, object], now: float, expected: Place) -> None:
    """Any change of the pod that may matter moves it."""
    scene.to_unschedulable("p", "Fit")
    scene.now = now
    assert (expected is ACTIVE) == scene.update("p", **fields)
    assert expected is scene.place_of("p")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"scheduling_gates": ["b"]}, UNSCHEDULABLE, id="another-gate"),
        pytest.param({}, ACTIVE, id="no-gate"),
    ],
)
def test_update_of_a_gated_pod(scene: Scene, fields: dict[str, object], expected: Place) -> None:
    """The gate is asked again."""
    scene.add("p", scheduling_gates=["a"])
    assert (expected is ACTIVE) == scene.update("p", **fields)
    assert expected is scene.place_of("p")


def test_no_backoff_still_passes_through_backoff(scene: Scene) -> None:
    """A failed pod goes to backoffQ even if it need not wait there; the next flush takes it."""
    scene = Scene(QueueOptions(queueing_hints=False, max_backoff_seconds=0))
    scene.add("p")
    scene.pop()
    assert scene.fail("p")
    assert BACKOFF is scene.place_of("p")
    assert scene.queue.flush_backoff(scene.now)
    assert ACTIVE is scene.place_of("p")
