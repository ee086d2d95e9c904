"""Every operation of the queue, row by row of the specification's table."""

from __future__ import annotations

import pytest

from kubesched.framework.cluster_event import CSI_NODE, Action, ClusterEvent
from kubesched.queue.backoff_queue import QueueOptions
from kubesched.queue.gates import ProfileRules
from kubesched.queue.moves import QueuePlace
from kubesched.queue.registrations import Registration
from kubesched.queue.scheduling_queue import QueueError, SchedulingQueue
from kubesched.testing.builders import make_pod_info

from .scene import (
    ASSIGNED_ADD,
    ASSIGNED_DELETE,
    CLAIM_ADD,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    OTHER_PROFILE,
    PROFILE,
    Scene,
    priority_sort,
)

ACTIVE, BACKOFF, UNSCHEDULABLE = QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE
IN_FLIGHT, NOWHERE = QueuePlace.IN_FLIGHT, QueuePlace.NOWHERE
NO_EARLY_POPS = QueueOptions(pops_from_backoff=False)
TOLERATION = {"key": "k", "operator": "Exists"}


# Add.


def test_a_new_pod_is_active(scene: Scene) -> None:
    """The time of its first entry never changes."""
    scene.now = 3.5
    assert scene.add("p")
    assert ACTIVE is scene.place_of("p")
    queued = scene.waiting("p")
    assert (3.5, 3.5, 0) == (queued.timestamp, queued.initial_attempt_timestamp, queued.attempts)
    scene.pop()
    scene.now = 9.0
    scene.fail("p")
    scene.now = 20.0
    scene.queue.flush_backoff(scene.now)
    assert (9.0, 3.5) == (queued.timestamp, queued.initial_attempt_timestamp)


def test_a_gated_pod_is_unschedulable(scene: Scene) -> None:
    """It wakes no consumer and has no attempts."""
    assert not scene.add("p", scheduling_gates=["wait"])
    assert UNSCHEDULABLE is scene.place_of("p")
    queued = scene.waiting("p")
    assert "Gates" == queued.gating_plugin
    assert {"Gates"} == queued.unschedulable_plugins
    assert queued.initial_attempt_timestamp is None
    assert 1 == scene.queue.statistics().gated
    assert 0 == scene.queue.statistics().unschedulable


@pytest.mark.parametrize(
    ("gates", "expected"),
    [pytest.param((), "n", id="active"), pytest.param(("wait",), "", id="gated")],
)
def test_add_nominates(scene: Scene, gates: tuple[str, ...], expected: str) -> None:
    """A pod with a nominated node in its status is nominated when it becomes active."""
    scene.add("p", nominated_node_name="n", scheduling_gates=gates)
    assert expected == scene.queue.nominator.node_of("default/p")


# Pop.


def test_pods_are_popped_by_priority_then_time(scene: Scene) -> None:
    """Pods of all profiles are in one order."""
    for name, priority in (("a", 0), ("b", 5), ("c", 0)):
        spec = {"schedulerName": OTHER_PROFILE if name == "b" else PROFILE}
        scene.add(name, priority=priority, spec=spec)
        scene.now += 1
    assert ["b", "a", "c", ""] == [scene.pop() for _ in range(4)]


def test_a_popped_pod_is_in_flight(scene: Scene) -> None:
    """It counts an attempt and a cycle."""
    scene.add("p")
    assert scene.queue.peek() is not None
    assert "p" == scene.pop()
    assert scene.queue.peek() is None
    assert IN_FLIGHT is scene.place_of("p")
    assert [1] == [queued.attempts for queued in scene.queue.pods(IN_FLIGHT)]
    assert 1 == scene.queue.scheduling_cycle


@pytest.mark.parametrize(
    ("options", "plugins", "expected"),
    [
        pytest.param(None, ["Fit"], "p", id="rejected"),
        pytest.param(None, [], "", id="error"),
        pytest.param(NO_EARLY_POPS, ["Fit"], "", id="gate-off"),
    ],
)
def test_rejected_pods_are_popped_from_backoff_early(
    options: QueueOptions | None, plugins: list[str], expected: str
) -> None:
    """If activeQ is empty; pods after an error are not."""
    scene = Scene(options)
    scene.to_unschedulable("p", *plugins)
    if plugins:
        scene.event(NODE_ADD, helps=["Fit"])
    assert BACKOFF is scene.place_of("p")
    assert bool(expected) == (scene.queue.peek() is not None)
    assert expected == scene.pop()
    if expected:
        assert ["PopFromBackoffQ", "PodPopped"] == [move.event for move in scene.moves[-2:]]


def test_active_pods_are_popped_before_backoff(scene: Scene) -> None:
    """Their priority does not matter."""
    scene.to_unschedulable("urgent", "Fit", priority=9)
    scene.event(NODE_ADD, helps=["Fit"])
    scene.add("p")
    assert ["p", "urgent"] == [scene.pop(), scene.pop()]


def test_a_popped_pod_keeps_its_rejecting_plugins(scene: Scene) -> None:
    """Logs need them; the gauge no longer counts the pod."""
    scene.to_unschedulable("p", "Fit", "Spread")
    scene.event(NODE_ADD, helps=["Fit"])
    assert 1 == dict(gauge(scene))["Fit"]
    scene.pop()
    assert {"Fit", "Spread"} == scene.queue.pods(IN_FLIGHT)[0].unschedulable_plugins
    assert {"Fit": 0, "Spread": 0} == dict(gauge(scene))


def test_pop_discards_a_pod_that_is_in_flight_already(scene: Scene) -> None:
    """The next pod is popped."""
    scene.attempt("p")
    scene.add("p", priority=9)
    scene.add("q")
    assert "q" == scene.pop()
    assert IN_FLIGHT is scene.place_of("p")
    assert 2 == scene.queue.scheduling_cycle
    assert scene.queue.pop_specific_pod(scene.info("p"), scene.now) is None


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param("active", "p", id="active"),
        pytest.param("backoff", "p", id="backoff"),
        pytest.param("unschedulable", "p", id="unschedulable"),
        pytest.param("gated", "", id="gated"),
        pytest.param("in flight", "", id="in-flight"),
        pytest.param("unknown", "", id="unknown"),
    ],
)
def test_pop_a_specific_pod(scene: Scene, start: str, expected: str) -> None:
    """Any queued pod can be popped unless it is gated."""
    put(scene, start)
    before = scene.names(IN_FLIGHT)
    assert expected == scene.pop_specific("p")
    assert before + [expected] * bool(expected) == scene.names(IN_FLIGHT)
    scene.queue.check()


# Update.


@pytest.mark.parametrize("start", ["active", "backoff", "error"])
def test_update_in_place(scene: Scene, start: str) -> None:
    """A pod of activeQ or backoffQ is reordered and stays there."""
    scene.add("other")
    scene.pop_specific("other")
    scene.fail("other", *([] if start == "error" else ["Fit"]))
    put(scene, start)
    scene.event(NODE_ADD, helps=["Fit"])
    place = scene.place_of("p")
    assert not scene.update("p", priority=9, nominated_node_name="n")
    assert place is scene.place_of("p")
    assert 9 == scene.waiting("p").pod_info.priority
    assert "n" == scene.queue.nominator.node_of("default/p")
    scene.queue.check()
    if start != "error":
        assert "p" == scene.pop()


@pytest.mark.parametrize(
    ("plugin", "fields", "helps", "event", "expected"),
    [
        pytest.param("Fit", {}, "", "UnschedulablePodUpdatePodScaleDown", True, id="skips"),
        pytest.param("Fit", {}, "Fit", "UnschedulablePodUpdatePodScaleDown", True, id="queues"),
        pytest.param("Spread", {"labels": {"a": "b"}, "requests": {"cpu": 2}}, "Spread",
                     "UnschedulablePodUpdatePodLabel", True, id="label"),
        pytest.param("Taints", {"tolerations": [TOLERATION], "requests": {"cpu": 2}}, "Taints",
                     "UnschedulablePodUpdatePodToleration", True, id="toleration"),
        pytest.param("Taints", {"labels": {"a": "b"}, "requests": {"cpu": 2}}, "Taints", "", False,
                     id="not-registered"),
        pytest.param("Features", {"priority": 5, "requests": {"cpu": 2}}, "Features",
                     "UnschedulablePodUpdate", True, id="plain-update"),
        pytest.param("Taints", {"tolerations": [TOLERATION], "labels": {"a": "b"}}, "Taints",
                     "UnschedulablePodUpdatePodToleration", True, id="second-event"),
    ],
)  # fmt: skip
def test_update_unschedulable(
    scene: Scene, plugin: str, fields: dict[str, object], helps: str, event: str, expected: bool
) -> None:
    """The pod's own update is an event like others: the hints of rejecting plugins decide."""
    scene.to_unschedulable("p", plugin, requests={"cpu": 2})
    scene.answers.helped = set(helps.split())
    moves = len(scene.moves)
    woke = scene.update("p", **fields)
    wanted = expected and bool(helps)
    assert wanted == woke
    assert (BACKOFF if wanted else UNSCHEDULABLE) is scene.place_of("p")
    assert [event] * wanted == [move.event for move in scene.moves[moves:]]


def test_an_update_after_the_backoff_activates(scene: Scene) -> None:
    """The pod is in activeQ afterwards."""
    scene.to_unschedulable("p", "Taints")
    scene.answers.helped = {"Taints"}
    scene.now = 5.0
    assert scene.update("p", tolerations=[TOLERATION])
    assert ACTIVE is scene.place_of("p")


def test_update_opens_a_gate(scene: Scene) -> None:
    """A pod without its last scheduling gate becomes active for the first time."""
    scene.add("p", scheduling_gates=["a", "b"])
    scene.answers.helped = {"Gates"}
    assert not scene.update("p", scheduling_gates=["a"])
    assert "Gates" == scene.waiting("p").gating_plugin
    assert scene.update("p")
    assert ACTIVE is scene.place_of("p")
    assert "" == scene.waiting("p").gating_plugin
    assert 0 == scene.queue.statistics().gated
    assert "UnschedulablePodUpdatePodSchedulingGatesEliminated" == scene.moves[-1].event


def test_update_stays_behind_another_gate(scene: Scene) -> None:
    """PreEnqueue runs again; another plugin may gate the pod."""
    scene.add("p", scheduling_gates=["a"])
    scene.answers.helped = {"Gates"}
    scene.answers.closed["Preemption"] = {"p"}
    assert not scene.update("p")
    assert "Preemption" == scene.waiting("p").gating_plugin
    assert {"Gates", "Preemption"} == scene.waiting("p").unschedulable_plugins
    assert 1 == scene.queue.statistics().gated


def test_update_in_flight_is_an_event_of_its_own(scene: Scene) -> None:
    """An update during the attempt may requeue the pod at once."""
    scene.attempt("p")
    assert not scene.update("p", tolerations=[TOLERATION], labels={"a": "b"})
    assert IN_FLIGHT is scene.place_of("p")
    counts = dict(scene.queue.statistics().in_flight_events)
    labels = ("UnschedulablePodUpdatePodLabel", "UnschedulablePodUpdatePodToleration", "PodPopped")
    assert dict.fromkeys(labels, 1) == counts
    scene.answers.helped = {"Taints"}
    assert scene.fail("p", "Taints")
    assert BACKOFF is scene.place_of("p")


def test_update_of_an_unknown_pod_adds_it(scene: Scene) -> None:
    """An unknown pod becomes active."""
    scene.observe("p")
    assert scene.update("p", labels={"a": "b"}, nominated_node_name="n")
    assert ACTIVE is scene.place_of("p")
    assert "UnschedulablePodUpdate" == scene.moves[-1].event
    assert "n" == scene.queue.nominator.node_of("default/p")


def test_update_keeps_a_nomination_in_memory(scene: Scene) -> None:
    """An update from before the nomination does not delete it."""
    scene.to_unschedulable("p", "Fit")
    scene.queue.nominator.add(scene.info("p"), "n")
    scene.update("p", labels={"a": "b"})
    assert "n" == scene.queue.nominator.node_of("default/p")
    assert [scene.info("p")] == list(scene.queue.nominator.on_node("n"))


def test_update_without_early_pops_leaves_a_pod_in_one_place() -> None:
    """A pod moved by one event of an update is not moved back by the next."""
    scene = Scene(NO_EARLY_POPS)
    scene.to_unschedulable("p", "Spread")
    scene.answers.helped = {"Spread"}
    assert not scene.update("p", labels={"a": "b"}, tolerations=[TOLERATION])
    assert BACKOFF is scene.place_of("p")
    scene.queue.check()


# Delete.


@pytest.mark.parametrize("start", ["active", "backoff", "error", "unschedulable", "gated"])
def test_delete(scene: Scene, start: str) -> None:
    """A pod is deleted from every place, with its nomination."""
    put(scene, start)
    scene.queue.nominator.add(scene.info("p"), "n")
    scene.delete("p")
    assert NOWHERE is scene.place_of("p")
    assert "" == scene.queue.nominator.node_of("default/p")
    assert "UnschedulablePodDelete" == scene.moves[-1].event
    statistics = scene.queue.statistics()
    assert (0, 0, 0, 0) == (
        statistics.active,
        statistics.backoff,
        statistics.unschedulable,
        statistics.gated,
    )


def test_delete_in_flight(scene: Scene) -> None:
    """A pod in flight stays until it fails or is bound; its nomination is deleted."""
    put(scene, "in flight")
    scene.queue.nominator.add(scene.info("p"), "n")
    scene.delete("p")
    assert IN_FLIGHT is scene.place_of("p")
    assert not scene.queue.nominator


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param("unschedulable", 0, id="unschedulable"),
        pytest.param("backoff", 1, id="backoff-leaks-as-upstream"),
    ],
)
def test_delete_and_the_gauge(scene: Scene, start: str, expected: int) -> None:
    """As upstream, the gauge uncounts only pods deleted from unschedulablePods."""
    put(scene, start)
    scene.delete("p")
    assert expected == dict(gauge(scene))["Fit"]


# Activate.


@pytest.mark.parametrize(
    ("start", "expected", "place"),
    [
        pytest.param("active", False, ACTIVE, id="active"),
        pytest.param("backoff", True, ACTIVE, id="backoff"),
        pytest.param("error", True, ACTIVE, id="error"),
        pytest.param("unschedulable", True, ACTIVE, id="unschedulable"),
        pytest.param("gated", False, UNSCHEDULABLE, id="gated"),
        pytest.param("in flight", False, IN_FLIGHT, id="in-flight"),
        pytest.param("unknown", False, NOWHERE, id="unknown"),
    ],
)
def test_activate_ignores_backoff(
    scene: Scene, start: str, expected: bool, place: QueuePlace
) -> None:
    """A queued pod goes to activeQ if it is not gated."""
    put(scene, start)
    moves = len(scene.moves)
    assert expected == scene.activate("p")
    assert place is scene.place_of("p")
    assert ["ForceActivate"] * expected == [move.event for move in scene.moves[moves:]]
    scene.queue.check()


def test_one_activated_pod_wakes_the_consumer(scene: Scene) -> None:
    """Others may be unknown."""
    put(scene, "unschedulable")
    assert scene.activate("nobody", "p", "nobody-else")


def test_activate_in_flight_helps_that_pod_only(scene: Scene) -> None:
    """The event is recorded for the pod in flight."""
    for name in ("p", "q"):
        scene.add(name)
        scene.pop()
    scene.activate("p")
    scene.fail("p", "Fit")
    scene.fail("q", "Fit")
    assert BACKOFF is scene.place_of("p")
    assert UNSCHEDULABLE is scene.place_of("q")


def test_activate_runs_pre_enqueue_once() -> None:
    """It runs before backoffQ; without pop-from-backoff, after it."""
    for options, expected in ((None, ACTIVE), (NO_EARLY_POPS, UNSCHEDULABLE)):
        scene = Scene(options)
        put(scene, "backoff")
        scene.answers.closed["Preemption"] = {"p"}
        scene.activate("p")
        assert expected is scene.place_of("p")


# MoveAll.


@pytest.mark.parametrize(
    ("rejectors", "pending", "event", "helps", "waited", "expected"),
    [
        pytest.param("Fit", "", NODE_ADD, "Fit", 0.5, BACKOFF, id="backs-off"),
        pytest.param("Fit", "", NODE_ADD, "Fit", 1.9, BACKOFF, id="its-last-second"),
        pytest.param("Fit", "", NODE_ADD, "Fit", 2.0, ACTIVE, id="backed-off"),
        pytest.param("Fit", "", NODE_ADD, "", 2.0, UNSCHEDULABLE, id="hint-skips"),
        pytest.param("Fit", "", NODE_LABEL, "Fit", 2.0, UNSCHEDULABLE, id="not-registered"),
        pytest.param("Fit", "", NODE_DELETE, "Fit", 2.0, UNSCHEDULABLE, id="another's-event"),
        pytest.param("Fit Spread", "", NODE_DELETE, "Spread", 2.0, ACTIVE, id="any-rejector"),
        pytest.param("", "Volumes", CLAIM_ADD, "Volumes", 0.0, ACTIVE, id="pending-at-once"),
        pytest.param("Fit", "Volumes", CLAIM_ADD, "Volumes", 0.0, ACTIVE, id="pending-of-two"),
        pytest.param("Fit", "Volumes", NODE_ADD, "Fit", 0.0, BACKOFF, id="not-the-pending-one"),
        pytest.param("Fit", "", ASSIGNED_DELETE, "Fit", 2.0, ACTIVE, id="assigned-pod"),
    ],
)
def test_move_all_by_hint_and_backoff(
    scene: Scene,
    rejectors: str,
    pending: str,
    event: ClusterEvent,
    helps: str,
    waited: float,
    expected: QueuePlace,
) -> None:
    """The new place of a pod that was rejected once."""
    scene.attempt("p")
    scene.fail("p", *rejectors.split(), pending=pending.split())
    scene.now = waited
    assert (expected is not UNSCHEDULABLE) == scene.event(event, helps=helps.split())
    assert expected is scene.place_of("p")


def test_move_all_does_not_wake_for_backoff_without_early_pops() -> None:
    """Without pop-from-backoff, a pod in backoffQ cannot be popped."""
    scene = Scene(NO_EARLY_POPS)
    scene.to_unschedulable("p", "Fit")
    assert not scene.event(NODE_ADD, helps=["Fit"])
    assert BACKOFF is scene.place_of("p")


def test_move_all_with_pre_check(scene: Scene) -> None:
    """Hints are not called for pods that the check excludes."""
    scene.to_unschedulable("p", "Fit", priority=1)
    scene.to_unschedulable("q", "Fit", priority=5)
    scene.event(ASSIGNED_DELETE, helps=["Fit"], pre_check=lambda q: q.pod_info.priority <= 2)
    assert BACKOFF is scene.place_of("p")
    assert UNSCHEDULABLE is scene.place_of("q")
    assert [("Fit", "p")] == scene.answers.asked


def test_move_all_ignores_unregistered_events(scene: Scene) -> None:
    """They are not recorded for pods in flight, either."""
    put(scene, "in flight")
    assert not scene.event(ClusterEvent(CSI_NODE, Action.ADD))
    assert (("PodPopped", 1),) == scene.queue.statistics().in_flight_events
    scene.event(NODE_LABEL)
    assert (("NodeUpdateNodeLabel", 1), ("PodPopped", 1)) == (
        scene.queue.statistics().in_flight_events
    )


def test_move_all_calls_hints_of_rejecting_plugins_only(scene: Scene) -> None:
    """They must have registered the event."""
    for at in range(50):
        scene.to_unschedulable(f"fit-{at}", "Fit")
    scene.to_unschedulable("volumes", "Volumes")
    scene.answers.asked.clear()
    scene.event(CLAIM_ADD)
    assert [("Volumes", "volumes")] == scene.answers.asked


@pytest.mark.parametrize(
    ("rejector", "event", "closed_still", "expected"),
    [
        pytest.param("Fit", ASSIGNED_DELETE, False, ACTIVE, id="opens"),
        pytest.param("Fit", ASSIGNED_DELETE, True, UNSCHEDULABLE, id="still-closed"),
        pytest.param("Fit", NODE_ADD, False, UNSCHEDULABLE, id="not-the-gate's-event"),
        pytest.param("Volumes", ASSIGNED_DELETE, False, UNSCHEDULABLE, id="nobody-queues"),
    ],
)
def test_move_all_and_a_gate(
    scene: Scene, rejector: str, event: ClusterEvent, closed_still: bool, expected: QueuePlace
) -> None:
    """Hints run only after an event of the gating plugin; then PreEnqueue runs again."""
    scene.attempt("p")
    scene.answers.closed["Preemption"] = {"p"}
    scene.fail("p", rejector)
    scene.activate("p")
    assert "Preemption" == scene.waiting("p").gating_plugin
    scene.now = 10.0
    if not closed_still:
        scene.answers.closed["Preemption"] = set()
    assert (expected is ACTIVE) == scene.event(event, helps=["Fit"])
    assert expected is scene.place_of("p")
    scene.queue.check()


def test_move_all_calls_a_per_template_hint_once() -> None:
    """All pods of the template are moved, each according to its own backoff."""
    scene = Scene(per_template=True)
    for name in ("a", "b", "c"):
        scene.to_unschedulable(name, "Fit")
        scene.now += 1
    scene.now = 3.5
    scene.event(NODE_ADD, helps=["Fit"])
    assert [("Fit", "a")] == scene.answers.asked
    assert (["a", "b"], ["c"]) == (scene.names(ACTIVE), scene.names(BACKOFF))


def test_move_all_counts_a_gated_pod_again(scene: Scene) -> None:
    """A pod that an event moves and a plugin gates again counts as incoming again."""
    scene.to_unschedulable("p", "Fit")
    scene.answers.closed["Preemption"] = {"p"}
    assert not scene.event(NODE_ADD, helps=["Fit"])
    move = scene.moves[-1]
    assert (UNSCHEDULABLE, UNSCHEDULABLE, "NodeAdd", "Preemption") == (
        move.origin,
        move.destination,
        move.event,
        move.gating_plugin,
    )


def test_move_all_asks_a_gate_about_all_its_pods() -> None:
    """Those that stay are one move; the others are active in the order of their arrival."""
    scene, names = Scene(per_template=True), ["a", "b", "c", "d"]
    for name in names:
        scene.to_unschedulable(name, "Fit")
    scene.answers.closed["Preemption"] = set(names)
    scene.event(NODE_ADD, helps=["Fit"])
    scene.answers.closed["Preemption"] = {"b", "d"}
    scene.moves.clear()
    assert scene.event(ASSIGNED_DELETE, helps=["Fit"])
    stay, *others = scene.moves
    assert ("Preemption", [scene.waiting(name).key for name in ("b", "d")]) == (
        stay.gating_plugin,
        [stay.pod, *stay.followers],
    )
    assert [scene.waiting(name).key for name in ("a", "c")] == [move.pod for move in others]
    scene.queue.check()


# Flushes.


@pytest.mark.parametrize(
    ("now", "expected"),
    [pytest.param(1.99, BACKOFF, id="too-early"), pytest.param(2.0, ACTIVE, id="next-second")],
)
@pytest.mark.parametrize("start", ["backoff", "error"])
def test_flush_backoff(scene: Scene, start: str, now: float, expected: QueuePlace) -> None:
    """Pods whose backoff has ended become active, after rejections and after errors."""
    put(scene, start)
    assert (expected is ACTIVE) == scene.queue.flush_backoff(now)
    assert expected is scene.place_of("p")
    if expected is ACTIVE:
        assert "BackoffComplete" == scene.moves[-1].event


@pytest.mark.parametrize("start", ["backoff", "error"])
@pytest.mark.parametrize("options", [None, NO_EARLY_POPS], ids=["early pops", "no early pops"])
def test_next_backoff_flush_is_when_a_pod_moves(options: QueueOptions | None, start: str) -> None:
    """It is a whole second."""
    scene = Scene(options)
    assert scene.queue.next_backoff_flush(0.0) is None
    woken: list[None] = []
    scene.queue.on_backoff = lambda: woken.append(None)
    put(scene, start)
    assert [None] == woken
    due = scene.queue.next_backoff_flush(0.0)
    assert due is not None
    moved = [scene.queue.flush_backoff(float(second)) for second in range(1, int(due) + 1)]
    assert [*[False] * (int(due) - 1), True] == moved
    assert scene.queue.next_backoff_flush(due) is None


def test_backoff_is_never_flushed_in_the_past() -> None:
    """A pod whose backoff ended long ago is moved at the next whole second."""
    scene = Scene(NO_EARLY_POPS)
    put(scene, "error")
    assert 101.0 == scene.queue.next_backoff_flush(100.0)
    assert 101.0 == scene.queue.next_backoff_flush(100.5)


def test_flush_backoff_and_gates() -> None:
    """PreEnqueue ran before backoffQ; without pop-from-backoff it runs after it."""
    for options, expected in ((None, ACTIVE), (NO_EARLY_POPS, UNSCHEDULABLE)):
        scene = Scene(options)
        put(scene, "backoff")
        scene.answers.closed["Preemption"] = {"p"}
        scene.answers.gated.clear()
        assert (expected is ACTIVE) == scene.queue.flush_backoff(10.0)
        assert expected is scene.place_of("p")
        assert (options is None) == (not scene.answers.gated)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(300.0, UNSCHEDULABLE, id="not-yet"),
        pytest.param(300.5, ACTIVE, id="over-five-minutes"),
    ],
)
def test_flush_unschedulable(scene: Scene, now: float, expected: QueuePlace) -> None:
    """After five minutes a pod is retried without any event."""
    put(scene, "unschedulable")
    assert (expected is ACTIVE) == scene.queue.flush_unschedulable(now)
    assert expected is scene.place_of("p")
    assert (expected is ACTIVE) == scene.waiting("p").was_flushed
    if expected is ACTIVE:
        assert "UnschedulableTimeout" == scene.moves[-1].event


def test_flush_unschedulable_leaves_gated_pods(scene: Scene) -> None:
    """The timeout opens no gate, but marks the pod and is recorded for pods in flight."""
    put(scene, "gated")
    scene.add("q")
    scene.pop_specific("q")
    assert not scene.queue.flush_unschedulable(1000.0)
    assert UNSCHEDULABLE is scene.place_of("p")
    assert scene.waiting("p").was_flushed
    scene.fail("q", "Fit")
    assert BACKOFF is scene.place_of("q")


def test_flush_without_late_pods_is_no_event(scene: Scene) -> None:
    """Nothing happens if no pod has waited too long."""
    scene.add("q")
    scene.pop()
    scene.queue.flush_unschedulable(1000.0)
    scene.fail("q", "Fit")
    assert UNSCHEDULABLE is scene.place_of("q")


# Done and close.


def test_done(scene: Scene) -> None:
    """A done pod is forgotten; a second call does nothing."""
    put(scene, "in flight")
    scene.event(NODE_LABEL)
    for _ in range(2):
        scene.queue.done("default/p", scene.now)
        assert NOWHERE is scene.place_of("p")
        assert (("NodeUpdateNodeLabel", 0), ("PodPopped", 0)) == (
            scene.queue.statistics().in_flight_events
        )
    assert (IN_FLIGHT, NOWHERE, "Done") == (
        scene.moves[-1].origin,
        scene.moves[-1].destination,
        scene.moves[-1].event,
    )


def test_close(scene: Scene) -> None:
    """No pod is in flight afterwards, and `is_closed` is set for consumers."""
    put(scene, "in flight")
    scene.event(NODE_LABEL)
    before = scene.queue.is_closed
    scene.queue.close()
    assert (False, True) == (before, scene.queue.is_closed)
    assert [] == scene.names(IN_FLIGHT)
    assert 0 == sum(count for _, count in scene.queue.statistics().in_flight_events)
    assert "" == scene.pop()


# The rest.


@pytest.mark.parametrize("start", ["active", "backoff", "error", "unschedulable", "gated"])
def test_get_pod(scene: Scene, start: str) -> None:
    """A queued pod is found in every place."""
    put(scene, start)
    queued = scene.queue.get_pod("default/p")
    assert queued is not None
    assert scene.info("p") is queued.pod_info
    assert scene.queue.get_pod("default/q") is None
    assert [] == scene.queue.pods(NOWHERE)


def test_queueing_a_pod_twice(scene: Scene) -> None:
    """A queued pod cannot be put back, but is not in flight afterwards."""
    put(scene, "in flight")
    scene.queue.add(make_pod_info("p", uid="reborn"), 1.0)
    with pytest.raises(QueueError, match="Pod default/p is already present in the active queue"):
        scene.fail("p", "Fit")
    assert [] == scene.names(IN_FLIGHT)
    assert ["reborn"] == [queued.pod_info.uid for queued in scene.queue.pods(ACTIVE)]
    assert () == gauge(scene)


def test_a_pod_of_an_unknown_profile_is_moved_by_any_registered_event() -> None:
    """It has no registrations of its own."""
    rules = {PROFILE: ProfileRules(registrations=[Registration("Fit", NODE_ADD)])}
    queue = SchedulingQueue(priority_sort, rules)
    queue.add(make_pod_info("p", spec={"schedulerName": "unknown"}), 0.0)
    queued = queue.pop(0.0)
    assert queued is not None
    queued.unschedulable_plugins = frozenset({"Other"})
    assert not queue.add_unschedulable_if_not_present(queued, 0.0)
    assert not queue.move_all(ASSIGNED_ADD, None, None, 5.0)
    assert queue.move_all(NODE_ADD, None, None, 5.0)
    assert queue.pods(ACTIVE) == [queued]


def test_check_finds_a_pod_in_two_places(scene: Scene) -> None:
    """No pod may be queued and in flight."""
    put(scene, "in flight")
    scene.queue.check()
    scene.add("p")
    with pytest.raises(AssertionError, match="waits and is in flight"):
        scene.queue.check()


def gauge(scene: Scene) -> tuple[tuple[str, int], ...]:
    """Return how many waiting pods each plugin has rejected."""
    return tuple(
        (plugin, count) for plugin, _, count in scene.queue.statistics().unschedulable_plugins
    )


def put(scene: Scene, start: str) -> None:
    """Bring pod p to a place."""
    if start == "unknown":
        return
    scene.add("p", scheduling_gates=["wait"] if start == "gated" else [])
    if start in {"active", "gated"}:
        return
    scene.pop_specific("p")
    if start in {"backoff", "unschedulable"}:
        scene.fail("p", "Fit")
    if start == "backoff":
        scene.event(NODE_ADD, helps=["Fit"])
    if start == "error":
        scene.fail("p")


def test_check_finds_a_gated_pod_in_the_active_queue(scene: Scene) -> None:
    """No pod that a PreEnqueue plugin gates may be in activeQ."""
    scene.add("p")
    scene.queue.check()
    scene.waiting("p").gating_plugin = "Gates"
    with pytest.raises(AssertionError, match="default/p"):
        scene.queue.check()
