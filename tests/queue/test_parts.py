"""Equal pods that are rejected together, compared with a queue that moves them one by one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from kubesched.framework.cluster_event import pod_events
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.backoff_queue import QueueOptions
from kubesched.queue.moves import QueueMove, QueuePlace

from .naive_queue import NaivePod
from .scene import ASSIGNED_DELETE, PROFILE, Scene
from .test_scheduling_queue_twin import QueueAndTwin

NAMES = st.sampled_from([f"p{number}" for number in range(8)])
APPS = ("web", "db")
KNOWN = st.sampled_from([{"web"}, {"db"}, {"web", "db"}, {"web", "db"}])


class QueueAndTwinOfEqualPods(QueueAndTwin):
    """Compare them while pods of two templates are rejected again and again."""

    per_template = True
    # Equal pods pass the same gates, and what the other twins cover is left to them.
    switch_gate = change_hints = claim_event = nominate = None  # type: ignore[assignment]  # no rules here
    add_or_update = pop_specific = fail_all = None  # type: ignore[assignment]  # nor these
    # A pod that follows another is found as a copy.
    finds_pods_by_name = None  # type: ignore[assignment]  # not an invariant here

    @rule(name=NAMES, app=st.sampled_from(APPS), priority=st.sampled_from([0, 0, 0, 5]))
    def add_equal(self, name: str, app: str, priority: int) -> None:
        """Add or update a pod."""
        fields: dict[str, object] = {
            "labels": {"app": app},
            "priority": priority,
            "spec": {"schedulerName": PROFILE},
        }
        old = self.scene.observed.get(f"default/{name}")
        if old is None:
            self.born += 1
            info = self.scene.observe(name, uid=f"u{self.born}", **fields)
            assert self.twin.add(info, self.now) == self.queue.add(info, self.now)
        elif old.spec.scheduler_name == PROFILE:
            new = self.scene.observe(name, uid=old.uid, **fields)
            expected = self.twin.update(old, new, pod_events(old, new), self.now)
            assert expected == self.queue.update(old, new, self.now)

    @rule(name=NAMES)
    def delete_equal(self, name: str) -> None:
        """Delete a pod."""
        self.delete(name)

    @rule(name=NAMES)
    def activate_equal(self, name: str) -> None:
        """Activate a pod."""
        self.activate([name])

    @rule()
    def room_comes(self) -> None:
        """A running pod ends."""
        self.send_event(ASSIGNED_DELETE, "nobody", is_narrow=False)

    @rule(apps=st.lists(st.sampled_from(APPS), min_size=4, max_size=8))
    def crowd(self, apps: list[str]) -> None:
        """Many pods arrive, and none fits."""
        for number, app in enumerate(apps):
            if f"default/p{number}" not in self.scene.observed:
                self.add_equal(f"p{number}", app, 0)
        self.try_all(len(apps))

    @rule(times=st.integers(1, 8))
    def try_all(self, times: int) -> None:
        """Pop all pods and reject them in the same way."""
        for _ in range(times):
            if self.twin.active or (self.twin.backoff and self.options.pops_from_backoff):
                self.pop_and_fail({"Fit"}, set())

    @rule(quarters=st.sampled_from([1, 4, 20]), known=KNOWN, times=st.integers(1, 3))
    def end_one_and_reject(self, quarters: int, known: set[str], times: int) -> None:
        """Some time later pods end, and the pods of known templates are rejected again."""
        for _ in range(times):
            self.wait(quarters)
            self.room_comes()
            self.reject_again(known, {0, 5})

    def come_back(
        self, queued: QueuedPodInfo, pod: NaivePod, unschedulable: set[str], pending: set[str]
    ) -> None:
        """Put a pod back, with the message of a rejection."""
        is_standing = bool(unschedulable) and not queued.pod_info.pod.status.nominated_node_name
        queued.standing_message = "full" if is_standing else ""
        super().come_back(queued, pod, unschedulable, pending)

    @rule(
        known=KNOWN,
        priorities=st.sampled_from([{0, 5}, {0, 5}, {5}, {0}]),
    )
    def reject_again(self, known: set[str], priorities: set[int]) -> None:
        """Reject the next pods as before, while their templates are known."""

        def is_rejected(queued: QueuedPodInfo) -> bool:
            info = queued.pod_info
            is_known = info.labels.get("app") in known and info.priority in priorities
            return is_known and bool(queued.standing_message)

        expected = []
        while (pod := self._first()) is not None:
            queued = self.queue.get_pod(pod.info.key)
            assert queued is not None
            if self.twin.find_in_flight(pod.info.uid) or not is_rejected(queued):
                break
            assert self.twin.pop() is pod
            expected.append(pod.info.key)
            self.twin.fail(pod, pod.unschedulable, pod.pending, self.now)
        for key in self.scene.observed:
            seen = self.queue.get_pod(key)
            assert seen is None or seen.pod_info is self.scene.observed[key]
        taken = self.queue.take_again(is_rejected)
        tried = [
            each.key
            for queued in self.queue.try_again(taken, self.now)
            for each in self.queue.cohorts.members(queued)
        ]
        assert sorted(expected) == sorted(tried)

    def _first(self) -> NaivePod | None:
        """Return the twin's next pod."""
        if self.twin.active:
            return self.twin.in_order("active")[0]
        if self.twin.backoff and self.options.pops_from_backoff:
            return self.twin.in_order("backoff")[0]
        return None


class QueueAndTwinOfEqualPodsWithoutEarlyPops(QueueAndTwinOfEqualPods):
    """The same without the gate SchedulerPopFromBackoffQ."""

    options = QueueOptions(pops_from_backoff=False)


SETTINGS = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestQueueAndTwinOfEqualPods = pytest.mark.slow(QueueAndTwinOfEqualPods.TestCase)
TestQueueAndTwinOfEqualPods.settings = SETTINGS
TestWithoutEarlyPops = pytest.mark.slow(QueueAndTwinOfEqualPodsWithoutEarlyPops.TestCase)
TestWithoutEarlyPops.settings = SETTINGS


def rejected_together(count: int) -> Scene:
    """Return a scene with equal pods that were rejected twice at the same moment."""
    scene = Scene(per_template=True)
    scene.answers.helped = {"Fit"}
    for number in range(count):
        scene.add(f"p{number}", labels={"app": "web"}, spec={"schedulerName": PROFILE})
    while (queued := scene.queue.pop(scene.now)) is not None:
        queued.unschedulable_plugins, queued.standing_message = frozenset({"Fit"}), "full"
        scene.queue.add_unschedulable_if_not_present(queued, scene.now)
    scene.now = 20.0
    return scene


def end_one(scene: Scene) -> None:
    """A running pod ends."""
    scene.queue.move_all(ASSIGNED_DELETE, scene.info("x").pod, None, scene.now)


def test_equal_pods_move_together() -> None:
    """One move stands for all of them."""
    scene = rejected_together(3)
    scene.moves.clear()
    end_one(scene)
    place, label = QueuePlace.UNSCHEDULABLE, ASSIGNED_DELETE.label
    followers = ("default/p1", "default/p2")
    expected = QueueMove("default/p0", place, QueuePlace.ACTIVE, label, 20.0, "", followers)
    assert [expected] == scene.moves
    assert 3 == scene.queue.statistics().active


def test_hints_are_called_once_for_equal_pods() -> None:
    """The result for the leader holds for its followers."""
    scene = rejected_together(3)
    end_one(scene)
    assert [("Fit", "p0")] == scene.answers.asked


def test_a_rejection_counts_for_each_pod() -> None:
    """Each has one more attempt, at the same time."""
    scene = rejected_together(3)
    end_one(scene)
    taken = scene.queue.take_again(lambda _queued: True)
    assert ["default/p0"] == [queued.key for queued in scene.queue.try_again(taken, scene.now)]
    pods = scene.queue.pods(QueuePlace.UNSCHEDULABLE)
    assert [("default/p0", 2, 20.0), ("default/p1", 2, 20.0), ("default/p2", 2, 20.0)] == [
        (queued.key, queued.attempts, queued.timestamp) for queued in pods
    ]


def test_a_pod_that_is_not_rejected_leaves_its_row() -> None:
    """It is popped next."""
    scene = rejected_together(3)
    scene.add("between", labels={"app": "db"}, spec={"schedulerName": PROFILE})
    end_one(scene)
    taken = scene.queue.take_again(lambda queued: queued.key != "default/between")
    assert ["default/p0"] == [queued.key for queued in scene.queue.try_again(taken, scene.now)]
    assert "between" == scene.pop()


def test_rejected_pods_are_flushed_before_errors(scene: Scene) -> None:
    """Pods with equal times keep this order, though the error was put back first."""
    for name in ("rejected", "error"):
        scene.add(name, spec={"schedulerName": PROFILE})
    rejected, error = scene.queue.pop(0.0), scene.queue.pop(0.0)
    assert rejected is not None
    assert error is not None
    scene.queue.add_unschedulable_if_not_present(error, 0.0)
    rejected.unschedulable_plugins = frozenset({"Fit"})
    scene.queue.add_unschedulable_if_not_present(rejected, 0.0)
    scene.answers.helped = {"Fit"}
    end_one(scene)
    scene.queue.flush_backoff(2.0)
    assert ["rejected", "error"] == scene.names(QueuePlace.ACTIVE)


def test_a_pod_does_not_follow_one_rejected_for_another_reason() -> None:
    """It does not even if both were rejected at the same time."""
    scene = Scene(per_template=True)
    scene.answers.helped = {"Fit"}

    def reject(plugin: str) -> None:
        queued = scene.queue.pop(scene.now)
        assert queued is not None
        queued.unschedulable_plugins, queued.standing_message = frozenset({plugin}), "full"
        scene.queue.add_unschedulable_if_not_present(queued, scene.now)

    scene.add("p0", labels={"app": "web"}, spec={"schedulerName": PROFILE})
    reject("Fit")
    end_one(scene)
    reject("Volumes")
    scene.add("p1", labels={"app": "web"}, spec={"schedulerName": PROFILE})
    reject("Fit")
    end_one(scene)
    assert ["p1"] == scene.names(QueuePlace.BACKOFF)
