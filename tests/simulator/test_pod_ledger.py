"""The ledger of pods, compared with sums over the store."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import Pod
from kubesched.simulator.node_life import Disruption
from kubesched.simulator.object_server import ObjectServer
from kubesched.simulator.pod_ledger import Booking, LedgerReader, PodLedger, Waiting
from kubesched.testing.builders import make_node, make_pod

from .test_object_server import Clock


class Reader(LedgerReader):
    """Records every step."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str, float]] = []
        self.capacity: dict[str, int] = {}

    def _note(self, step: str, pod: Pod, now: float) -> None:
        self.steps.append((step, pod.metadata.name, now))

    def pod_arrived(self, pod: Pod, now: float) -> None:
        """Record the step."""
        self._note("arrived", pod, now)

    def pod_bound(self, pod: Pod, booking: Booking, waiting: Waiting | None, now: float) -> None:
        """Record the step."""
        self._note("placed" if waiting is None else "bound", pod, now)

    def pod_released(self, pod: Pod, booking: Booking, now: float) -> None:
        """Record the step."""
        self._note("released", pod, now)

    def pending_pod_deleted(self, pod: Pod, waiting: Waiting, now: float) -> None:
        """Record the step."""
        self._note("gave up", pod, now)

    def pod_disrupted(self, pod: Pod, disruption: Disruption, now: float) -> None:
        """Record the step."""
        self._note(disruption.value, pod, now)

    def capacity_changed(self, allocatable: object, now: float) -> None:
        """Record the step."""
        assert isinstance(allocatable, dict)
        self.capacity = dict(allocatable)


def _ledger() -> tuple[ObjectServer, PodLedger, Reader, Clock]:
    clock = Clock()
    server = ObjectServer(lambda: clock.now)
    ledger = PodLedger(server, lambda pod: pod.spec.scheduler_name != "other")
    reader = Reader()
    ledger.readers.append(reader)
    return server, ledger, reader, clock


def test_each_step_of_a_pod_is_reported_once() -> None:
    """The report has the time of the step."""
    server, ledger, reader, clock = _ledger()
    server.create(make_pod("a", requests={"cpu": "1"}))
    assert [waiting.key for waiting in ledger.waiting.values()] == ["default/a"]
    clock.now = 3.0
    pod = server.bind("default", "a", "", "node-1")
    assert ledger.waiting == {}
    assert ledger.booked == {"node-1": {"cpu": 1000, "pods": 1}}
    clock.now = 5.0
    victim = ConditionPatch("DisruptionTarget", "True", "PreemptionByScheduler", "m")
    server.patch_status(pod, victim, None)
    server.set_phase(pod, "Running")
    clock.now = 9.0
    server.set_phase(pod, "Succeeded")
    server.delete_pod("default", "a")
    assert ledger.booked == {}
    assert reader.steps == [
        ("arrived", "a", 0.0),
        ("bound", "a", 3.0),
        ("preempted", "a", 5.0),
        ("released", "a", 9.0),
    ]


def test_a_pending_pod_that_is_deleted() -> None:
    """It is reported as given up."""
    server, _, reader, _ = _ledger()
    server.create(make_pod("a"))
    server.delete_pod("default", "a")
    assert [step for step, _, _ in reader.steps] == ["arrived", "gave up"]


def test_pods_of_other_schedulers() -> None:
    """They are not pending, but their amounts count on nodes."""
    server, ledger, reader, _ = _ledger()
    server.create(make_pod("a", spec={"schedulerName": "other"}))
    server.create(make_pod("b", node_name="node-1"))
    server.create(make_pod("c", node_name="node-1", status={"phase": "Succeeded"}))
    server.bind("default", "a", "", "node-1")
    assert [(step, name) for step, name, _ in reader.steps] == [("placed", "b"), ("placed", "a")]
    assert ledger.booked["node-1"]["pods"] == 2


def test_capacity_follows_the_nodes() -> None:
    """It is the sum over all nodes."""
    server, ledger, reader, _ = _ledger()
    one = server.create(make_node("node-1", allocatable={"cpu": "4"}))
    server.create(make_node("node-2", allocatable={"cpu": "500m"}))
    assert reader.capacity["cpu"] == 4500
    server.delete(one)
    assert reader.capacity["cpu"] == 500
    assert ledger.allocatable.get("node-1") is None
    allocatable = ledger.allocatable.get("node-2")
    assert allocatable is not None
    assert allocatable["cpu"] == 500


def test_a_pod_that_changes_its_node_is_reported() -> None:
    """No API server allows it; checkers use this."""
    server, ledger, _, _ = _ledger()
    server.create(make_pod("a", node_name="node-1"))
    server.update(make_pod("a", node_name="node-2"))
    assert ledger.rebound == [("default/a", "node-1", "node-2")]
    assert list(ledger.booked) == ["node-2"]


def test_check_finds_a_wrong_sum() -> None:
    """It compares all sums with the store."""
    server, ledger, _, _ = _ledger()
    server.create(make_pod("a", node_name="node-1", requests={"cpu": "1"}))
    ledger.check()
    ledger.booked["node-1"]["cpu"] += 1
    with pytest.raises(AssertionError, match="not the sum"):
        ledger.check()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32))
def test_the_ledger_equals_the_store_after_any_history(seed: int) -> None:
    """Pending pods and amounts on nodes."""
    random = Random(seed)
    server, ledger, _, clock = _ledger()
    for _ in range(60):
        clock.now += random.random()
        name = random.choice("abcdef")
        pod = server.pod("default", name)
        if pod is None:
            cpu = random.choice(["1", "250m"])
            gates = ["g"] if random.random() < 0.1 else []
            server.create(make_pod(name, uid="", requests={"cpu": cpu}, scheduling_gates=gates))
        elif not pod.spec.node_name and not pod.spec.scheduling_gates and random.random() < 0.7:
            server.bind("default", name, "", random.choice(["node-1", "node-2"]))
        elif pod.status.phase != "Succeeded" and random.random() < 0.5:
            server.set_phase(pod, random.choice(["Running", "Succeeded"]))
        else:
            server.delete_pod("default", name, grace_seconds=random.choice([0, None]))
        ledger.check()
        live = [pod for pod in server.all(Pod) if pod.status.phase != "Succeeded"]
        assert {pod.metadata.uid for pod in live if not pod.spec.node_name} == set(ledger.waiting)
        assert {pod.metadata.uid for pod in live if pod.spec.node_name} == set(ledger.bookings)
