"""Sums of a timeline, and its report."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.queue.moves import QueueMove, QueuePlace
from kubesched.simulator.node_life import Disruption
from kubesched.simulator.object_server import ObjectServer
from kubesched.simulator.pod_ledger import PodLedger
from kubesched.simulator.timeline import Timeline
from kubesched.simulator.timeline_report import RequestCount, TimelineReport, WaitReport
from kubesched.testing.builders import make_node, make_pod, make_table

HOUR = 3600.0


class Scene:
    """A server, its ledger and a timeline."""

    def __init__(self) -> None:
        self.now = 0.0
        self.server = ObjectServer(lambda: self.now)
        self.ledger = PodLedger(self.server, lambda _: True)
        self.timeline = Timeline(60.0)
        self.ledger.readers.append(self.timeline)

    def create(self, name: str, priority: int = 0, cpu: str = "1") -> None:
        """Create a pod."""
        self.server.create(make_pod(name, priority=priority, requests={"cpu": cpu}))

    def bind(self, name: str) -> None:
        """Bind the pod to a node."""
        self.server.bind("default", name, "", "node-1")

    def report(self) -> TimelineReport:
        """Return the report as of now."""
        timeline = self.timeline
        timeline.end(self.now)
        return TimelineReport(
            scenario="<scenario>",
            seed=1,
            partial=False,
            duration_seconds=self.now,
            totals=timeline.totals(),
            waits=timeline.waits(self.now),
            wait_histogram=timeline.wait_histogram(),
            resources=timeline.resources(),
            moves=timeline.moves(),
            requests=(RequestCount("bind", 2, 1),),
            relists=0,
            checks=3,
            decisions=4,
            decision_digest="00ff",
            series=timeline.series(),
        )


@pytest.fixture
def scene() -> Scene:
    """Return two hours in which one pod waits an hour and runs another, and one is never bound."""
    scene = Scene()
    scene.server.create(make_node("node-1", allocatable={"cpu": "4", "memory": "8Gi"}))
    scene.create("a", priority=5, cpu="2")
    scene.create("b")
    scene.timeline.moved(
        QueueMove("default/a", QueuePlace.NOWHERE, QueuePlace.ACTIVE, "UnschedulablePodAdd", 0.0)
    )
    scene.now = HOUR
    scene.bind("a")
    scene.timeline.sample(make_table([make_node("node-1", allocatable={"cpu": "4"})]), HOUR)
    scene.now = 2 * HOUR
    return scene


def test_waiting_times_by_priority(scene: Scene) -> None:
    """All pods first, then the highest priority."""
    overall, high, low = scene.report().waits
    assert (overall.arrived, overall.bound, overall.pending) == (2, 1, 1)
    assert (high.priority, high.max_seconds) == ("5", HOUR)
    assert high.p50_seconds == pytest.approx(HOUR, rel=0.01)
    assert low == WaitReport("0", 1, 0, 1, 0, None, None, None, None, None, 2.0)
    assert (overall.pending_pod_hours, high.pending_pod_hours) == (3.0, 1.0)


def test_utilisation_over_time(scene: Scene) -> None:
    """Half of the cores, half of the time."""
    cpu, memory, pods, storage = scene.report().resources
    names = [resource.resource for resource in (cpu, memory, pods, storage)]
    assert names == ["cpu", "memory", "pods", "ephemeral-storage"]
    assert (cpu.mean_share, cpu.peak_share, cpu.final_share) == (0.25, 0.5, 0.5)
    # Pods ask for one and a half cores on average: of four, two pods leave one.
    assert cpu.mean_fragmentation == pytest.approx(0.5 * 0.25)
    assert memory.mean_fragmentation is None


def test_everything_is_counted_once(scene: Scene) -> None:
    """The totals have it."""
    scene.timeline.pod_disrupted(make_pod("a"), Disruption.PREEMPTED, scene.now)
    scene.server.delete_pod("default", "b")
    pod = scene.server.pod("default", "a")
    assert pod is not None
    scene.server.set_phase(pod, "Succeeded")
    totals = scene.report().totals
    assert (totals.arrived, totals.bound, totals.finished, totals.gave_up) == (2, 1, 1, 1)
    assert (totals.pending, totals.running, totals.disrupted) == (0, 0, 1)


def test_queue_moves_and_sizes(scene: Scene) -> None:
    """Moves are counted by origin, destination and event; gauges follow them."""
    report = scene.report()
    (move,) = report.moves
    assert (move.destination, move.event, move.count) == ("active", "UnschedulablePodAdd", 1)
    sizes = {each.name: each.values for each in report.series if each.chart == "Queue"}
    assert max(sizes["active"].peaks) == 1.0
    assert max(sizes["backoff"].peaks) == 0.0


def test_all_series_end_with_the_simulation(scene: Scene) -> None:
    """Charts share a time axis."""
    scene.now = 2 * HOUR + 90.0
    report = scene.report()
    assert {(60.0, 122)} == {
        (each.values.width_seconds, len(each.values.means)) for each in report.series
    }


def test_disruptions_of_pods(scene: Scene) -> None:
    """They are in the totals and over time."""
    pod = make_pod("a")
    for each in Disruption:
        scene.timeline.pod_disrupted(pod, each, HOUR)
    scene.server.delete_pod("default", "a", grace_seconds=0)
    report = scene.report()
    totals = report.totals
    assert (totals.drained, totals.evicted, totals.removed, totals.restarted) == (1, 1, 1, 1)
    assert totals.lost == 1
    stopped = {each.name: sum(each.values.peaks) for each in report.series[-7:]}
    assert stopped == {
        "preempted": 1,
        "drained": 1,
        "evicted": 1,
        "removed": 1,
        "restarted": 1,
        "lost": 1,
        "binding failures": 0,
    }


def test_the_report_has_a_bounded_number_of_priorities_and_moves() -> None:
    """The others are added up in one row."""
    scene = Scene()
    for number in range(100):
        scene.create(f"p{number}", priority=number)
        scene.timeline.moved(
            QueueMove(
                "default/a", QueuePlace.NOWHERE, QueuePlace.ACTIVE, f"Event{number % 50}", 0.0
            )
        )
    for number in range(1000):
        scene.timeline.moved(
            QueueMove("x", QueuePlace.ACTIVE, QueuePlace.BACKOFF, f"E{number}", 0.0)
        )
    report = scene.report()
    assert len(report.waits) == 22
    assert report.waits[-1].priority == "other"
    assert sum(row.arrived for row in report.waits[1:]) == 100
    assert len(report.moves) <= 202
    assert sum(move.count for move in report.moves) == 1100


@pytest.mark.slow
def test_the_report_does_not_grow_with_time() -> None:
    """Ten thousand hours make one of the size of an hour's."""
    sizes = []
    for hours in (600, 10_000):
        scene = Scene()
        scene.server.create(make_node("node-1"))
        for hour in range(hours):
            scene.now = hour * HOUR
            scene.create("a")
            scene.now += 10.0
            scene.bind("a")
            scene.server.delete_pod("default", "a", grace_seconds=0)
        sizes.append(len(msgspec.json.encode(scene.report())))
        assert (scene.ledger.waiting, scene.ledger.bookings, scene.ledger.booked) == ({}, {}, {})
    assert sizes[1] < sizes[0] * 2


def test_the_report_is_json(scene: Scene) -> None:
    """It can be written and read again."""
    report = scene.report()
    encoded = msgspec.json.encode(report)
    assert report == msgspec.json.decode(encoded, type=TimelineReport)
    assert b'"decisionDigest":"00ff"' in encoded
