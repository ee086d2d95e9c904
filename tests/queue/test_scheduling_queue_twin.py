from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubesched.framework.cluster_event import CSI_NODE, Action, ClusterEvent, pod_events
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.backoff_queue import QueueOptions
from kubesched.queue.moves import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, QueuePlace
from kubesched.snapshot.pod_info import PodInfo

from .naive_queue import NaivePod, NaiveQueue
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
)

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["a", "b", "c", "d"])
ALL_PLUGINS = ("Fit", "Spread", "Volumes", "Taints", "Features", "Gates")
PLUGINS = st.sampled_from(ALL_PLUGINS)
PLUGIN_SETS = st.sets(PLUGINS, max_size=3)
# Most rejections and most events are about the same three plugins, so that they meet.
REJECTIONS = (
    st.sampled_from([{"Fit"}, {"Spread"}, {"Volumes"}, {"Fit", "Spread"}, set[str]()]) | PLUGIN_SETS
)
PENDING = st.sampled_from([set[str](), set[str](), {"Fit"}, {"Spread"}, {"Volumes"}])
EVENTS = st.sampled_from(
    [
        NODE_ADD,
        NODE_LABEL,
        NODE_DELETE,
        CLAIM_ADD,
        ASSIGNED_ADD,
        ASSIGNED_DELETE,
        ClusterEvent("AssignedPod", Action.UPDATE),
        ClusterEvent(CSI_NODE, Action.ADD),
    ]
)
FIELDS = st.fixed_dictionaries(
    {
        "priority": st.sampled_from([0, 0, 5]),
        "labels": st.sampled_from([{"app": "web"}, {"app": "db"}]),
        "scheduling_gates": st.sampled_from([(), (), ("wait",)]),
        "tolerations": st.sampled_from([(), ({"key": "k", "operator": "Exists"},)]),
        "nominated_node_name": st.sampled_from(["", "", "n1", "n2"]),
        "spec": st.sampled_from(
            [
                {"schedulerName": PROFILE},
                {"schedulerName": PROFILE},
                {"schedulerName": OTHER_PROFILE},
            ]
        ),
    }
)


class QueueAndTwin(RuleBasedStateMachine):
    """Compare a queue with its slow twin after each random step."""

    options = QueueOptions()
    per_template = False

    @initialize()
    def start(self) -> None:
        """Start with empty queues."""
        self.scene = Scene(self.options, per_template=self.per_template)
        self.queue = self.scene.queue
        rules = self.scene.answers.rules()
        self.twin = NaiveQueue(
            {
                name: [
                    (each.plugin, each.event, each.hint)
                    for each in profile.registrations
                    if each.hint
                ]
                for name, profile in rules.items()
            },
            {name: profile.pre_enqueue for name, profile in rules.items()},
            self.scene._find_pod,
            pops_from_backoff=self.options.pops_from_backoff,
            longest_backoff=self.options.max_backoff_seconds,
        )
        self.scene.answers.helped = set(ALL_PLUGINS)
        self.flying: list[tuple[QueuedPodInfo, NaivePod]] = []
        self.born = 0

    @property
    def now(self) -> float:
        """The time."""
        return self.scene.now

    @rule(quarters=st.sampled_from([1, 2, 3, 4, 9, 1201]))
    def wait(self, quarters: int) -> None:
        """Advance the time by an exact fraction."""
        self.scene.now += quarters / 4

    @rule(
        helped=st.sampled_from([frozenset(ALL_PLUGINS), frozenset()]) | PLUGIN_SETS,
        raising=st.sampled_from([frozenset[str]()] * 3) | st.sets(PLUGINS, max_size=1),
    )
    def change_hints(self, helped: AbstractSet[str], raising: AbstractSet[str]) -> None:
        """Change the results of hints."""
        self.scene.answers.helped, self.scene.answers.raising = set(helped), set(raising)

    @rule(name=NAMES, plugin=st.sampled_from(["Gates", "Preemption"]))
    def switch_gate(self, name: str, plugin: str) -> None:
        """Gate a pod, or open its gate."""
        self.scene.answers.closed[plugin] ^= {name}

    @rule(name=NAMES, fields=FIELDS)
    def add_or_update(self, name: str, fields: dict[str, object]) -> None:
        """Add or update a pod."""
        old = self.scene.observed.get(f"default/{name}")
        if old is None:
            self.born += 1
            info = self.scene.observe(name, uid=f"u{self.born}", **fields)
            assert self.twin.add(info, self.now) == self.queue.add(info, self.now)
            return
        # A pod keeps its scheduler.
        fields = {**fields, "spec": {"schedulerName": old.spec.scheduler_name}}
        new = self.scene.observe(name, uid=old.uid, **fields)
        expected = self.twin.update(old, new, pod_events(old, new), self.now)
        assert expected == self.queue.update(old, new, self.now)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        """Delete a pod."""
        info = self.scene.observed.pop(f"default/{name}", None)
        if info is not None:
            self.twin.delete(info)
            self.queue.delete(info, self.now)

    @rule(names=st.lists(NAMES, max_size=3))
    def activate(self, names: list[str]) -> None:
        """Activate pods, known or unknown."""
        infos = [self.scene.info(name) for name in names]
        expected = self.twin.activate(infos, FORCE_ACTIVATE, self.now)
        assert expected == self.queue.activate(infos, self.now)

    @rule(event=EVENTS, name=NAMES, is_narrow=st.booleans())
    def send_event(self, event: ClusterEvent, name: str, is_narrow: bool) -> None:
        """Send a cluster event."""
        new = self.scene.info(name).pod
        limit = 0 if is_narrow else 100
        expected = self.twin.move_all(
            event, None, new, self.now, lambda info: info.priority <= limit
        )
        assert expected == self.queue.move_all(
            event, None, new, self.now, lambda queued: queued.pod_info.priority <= limit
        )

    @rule(data=st.data())
    def claim_event(self, data: st.DataObject) -> None:
        """Send an event about one pod by name."""
        waiting = [queued.pod_info for queued in self.queue.pods(QueuePlace.UNSCHEDULABLE)]
        if waiting:
            new = data.draw(st.sampled_from(waiting)).pod
            expected = self.twin.move_all(CLAIM_ADD, None, new, self.now, lambda _: True)
            assert expected == self.queue.move_all(CLAIM_ADD, None, new, self.now)

    @rule(times=st.integers(1, 4))
    def fail_all(self, times: int) -> None:
        """Pop pods until none is left; their attempts end in errors."""
        for _ in range(times):
            self.pop_and_fail(set(), set())

    @rule()
    def pop(self) -> None:
        """Pop a pod."""
        assert (self.queue.peek() is not None) == bool(
            self.twin.active or (self.twin.backoff and self.options.pops_from_backoff)
        )
        self.take_off(self.queue.pop(self.now), self.twin.pop())

    @rule(name=NAMES)
    def pop_specific(self, name: str) -> None:
        """Pop a specific pod."""
        info = self.scene.info(name)
        self.take_off(
            self.queue.pop_specific_pod(info, self.now), self.twin.pop_specific(info, self.now)
        )

    def take_off(self, queued: QueuedPodInfo | None, pod: NaivePod | None) -> None:
        """Assert that both queues returned the same."""
        assert (pod is None) == (queued is None)
        if queued is not None and pod is not None:
            assert pod.info is queued.pod_info
            self.flying.append((queued, pod))

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), unschedulable=REJECTIONS, pending=PENDING)
    def fail(self, data: st.DataObject, unschedulable: set[str], pending: set[str]) -> None:
        """An attempt fails; the pod is put back if it still exists."""
        at = data.draw(st.integers(0, len(self.flying) - 1))
        self.come_back(*self.flying.pop(at), unschedulable, pending)

    @rule(unschedulable=REJECTIONS, pending=PENDING)
    def pop_and_fail(self, unschedulable: set[str], pending: set[str]) -> None:
        """Pop a pod whose attempt fails."""
        self.pop()
        if self.flying:
            self.come_back(*self.flying.pop(), unschedulable, pending)

    def come_back(
        self, queued: QueuedPodInfo, pod: NaivePod, unschedulable: set[str], pending: set[str]
    ) -> None:
        """Put a pod back into both queues, as the failure handler does."""
        latest = self.scene.observed.get(queued.pod_info.key)
        if latest is None or latest.uid != queued.pod_info.uid:
            self.twin.done(pod.info.uid)
            self.queue.done(queued.pod_info.uid, self.now)
            return
        pod.info = queued.pod_info = latest
        queued.unschedulable_plugins = frozenset(unschedulable)
        queued.pending_plugins = frozenset(pending)
        queued.gating_plugin = ""
        expected = self.twin.fail(pod, unschedulable, pending, self.now)
        assert expected == self.queue.add_unschedulable_if_not_present(queued, self.now)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def succeed(self, data: st.DataObject) -> None:
        """A pod is bound."""
        queued, pod = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        if self.scene.observed.get(queued.pod_info.key, queued.pod_info).uid == pod.info.uid:
            self.scene.observed.pop(queued.pod_info.key, None)
        for uid in (pod.info.uid, "nobody"):
            self.twin.done(uid)
            self.queue.done(uid, self.now)

    @rule(name=NAMES, node=st.sampled_from(["n1", "n2", "", None]))
    def nominate(self, name: str, node: str | None) -> None:
        """Preemption nominates a pod before the API server does."""
        info = self.scene.info(name)
        self.twin.nominate(info, node)
        self.queue.nominator.add(info, node)

    @rule()
    def flush(self) -> None:
        """Both flushes run."""
        assert self.twin.flush_backoff(self.now) == self.queue.flush_backoff(self.now)
        expected = self.twin.flush_unschedulable(UNSCHEDULABLE_TIMEOUT, self.now)
        assert expected == self.queue.flush_unschedulable(self.now)

    @invariant()
    def is_consistent(self) -> None:
        """Every pod is in one place, and every index is right."""
        self.queue.check()

    @invariant()
    def has_equal_pods(self) -> None:
        """The same pods, in the same places, order and state."""
        places = {
            QueuePlace.ACTIVE: self.twin.in_order("active"),
            QueuePlace.BACKOFF: self.twin.in_order("backoff"),
            QueuePlace.UNSCHEDULABLE: self.twin.unschedulable,
            QueuePlace.IN_FLIGHT: self.twin.in_flight(),
        }
        for place, pods in places.items():
            assert [story(pod) for pod in pods] == [
                queued_story(queued) for queued in self.queue.pods(place)
            ], place

    @invariant()
    def finds_pods_by_name(self) -> None:
        """A pod of a part is found by its own name."""
        for queued in self.queue.pods(QueuePlace.BACKOFF):
            assert queued is self.queue.get_pod(queued.pod_info.key)

    @invariant()
    def has_equal_numbers(self) -> None:
        """The same sizes, gauges, counters and nominations."""
        statistics, twin = self.queue.statistics(), self.twin
        gated = sum(bool(pod.gate) for pod in twin.unschedulable)
        assert len(twin.active) == statistics.active
        assert len(twin.backoff) + len(twin.error_backoff) == statistics.backoff
        assert len(twin.unschedulable) - gated == statistics.unschedulable
        assert gated == statistics.gated
        assert twin.pops == self.queue.scheduling_cycle
        counted = {label: count for label, count in statistics.in_flight_events if count}
        assert {label: n for label, n in twin.log_counts().items() if n} == counted
        assert twin.rejections == Counter(
            {
                (plugin, profile): count
                for plugin, profile, count in statistics.unschedulable_plugins
            }
        )
        incoming = Counter(
            (move.destination.value, move.event)
            for move in self.scene.moves
            for _ in range(move.pods)
            if move.destination in {QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE}
        )
        assert twin.incoming == incoming
        by_node: dict[str, list[str]] = {}
        for uid, node in twin.nominations:
            by_node.setdefault(node, []).append(uid)
        assert by_node == {
            node: [info.uid for info in self.queue.nominator.on_node(node)]
            for node in self.queue.nominator.by_node
        }


def story(pod: NaivePod) -> tuple[object, ...]:
    """Return the state of the twin's pod."""
    return (
        pod.info,
        pod.timestamp,
        pod.attempts,
        pod.unschedulable_count,
        pod.errors,
        pod.was_flushed,
        pod.first_active,
        pod.unschedulable,
        pod.pending,
        pod.gate,
    )


def queued_story(queued: QueuedPodInfo) -> tuple[object, ...]:
    """Return the state of the queue's pod."""
    info: PodInfo = queued.pod_info
    return (
        info,
        queued.timestamp,
        queued.attempts,
        queued.unschedulable_count,
        queued.consecutive_errors_count,
        queued.was_flushed,
        queued.initial_attempt_timestamp,
        queued.unschedulable_plugins,
        queued.pending_plugins,
        queued.gating_plugin,
    )


class QueueAndTwinWithoutEarlyPops(QueueAndTwin):
    """The same without the gate SchedulerPopFromBackoffQ."""

    options = QueueOptions(pops_from_backoff=False)


class QueueAndTwinWithoutBackoff(QueueAndTwin):
    """The same without any backoff."""

    options = QueueOptions(max_backoff_seconds=0)


SETTINGS = settings(
    max_examples=100,
    stateful_step_count=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestQueueAndTwin = QueueAndTwin.TestCase
TestQueueAndTwin.settings = SETTINGS
TestQueueAndTwinWithoutEarlyPops = QueueAndTwinWithoutEarlyPops.TestCase
TestQueueAndTwinWithoutEarlyPops.settings = SETTINGS
TestQueueAndTwinWithoutBackoff = QueueAndTwinWithoutBackoff.TestCase
TestQueueAndTwinWithoutBackoff.settings = SETTINGS
