"""Pods that another scheduler decides about while a PreEnqueue plugin holds them back here."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from kubesched.app.shadow import LiveWatch
from kubesched.explain.shadow_report import ShadowVerdict
from kubesched.framework import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    PodInfo,
    PreEnqueuePlugin,
    Snapshot,
    Status,
    unschedulable,
)
from kubesched.inputs.loading import load_scheduler
from kubesched.inputs.sources import SchedulerOptions
from kubesched.scheduler.decision_recorder import RecordedDecision
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import make_group, make_member


class Closed(PreEnqueuePlugin):
    """Holds back the pods whose name says so, and others until there is a node `b`."""

    name: ClassVar = "Closed"

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Read the name."""
        is_held = pod.name == "held" or (pod.name == "early" and "b" not in snapshot.nodes.names)
        return unschedulable("closed") if is_held else Status()

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nodes that come."""
        return [ClusterEventWithHint(ClusterEvent("Node", Action.ADD))]


@on_virtual_time
async def test_a_pod_that_is_held_back_is_different() -> None:
    """It is recorded like the other decisions."""
    recorded: list[RecordedDecision] = []
    setup = load_scheduler(SchedulerOptions(plugins=(Closed,)))
    watch = LiveWatch(setup, 0, recorded.append)
    watch.added(make_node("a"))
    watch.synced()
    for name in ("held", "free"):
        pod = make_pod(name)
        watch.added(pod)
        watch.updated(pod, replace(pod, spec=replace(pod.spec, node_name="a")))
    assert ["default/held", "default/free"] == [each.pod for each in recorded]
    (found,) = watch.judge.disagreements
    assert "bound to a; kubesched: held back by Closed" == found.sentence


@on_virtual_time
async def test_a_pod_that_another_object_releases_is_compared() -> None:
    """It is seen at the latest when the other scheduler decides."""
    recorded: list[RecordedDecision] = []
    watch = LiveWatch(load_scheduler(SchedulerOptions(plugins=(Closed,))), 0, recorded.append)
    watch.synced()
    pod = make_pod("early")
    watch.added(pod)
    watch.added(make_node("b"))
    watch.updated(pod, replace(pod, spec=replace(pod.spec, node_name="b")))
    assert ["default/early"] == [each.pod for each in recorded]
    assert {ShadowVerdict.AGREED: 1} == watch.judge.counts


@on_virtual_time
async def test_a_pod_of_a_group_is_passed_over_once() -> None:
    """Not again when it is bound."""
    options = SchedulerOptions(feature_gates="GenericWorkload=true,GangScheduling=true")
    watch = LiveWatch(load_scheduler(options), 0, None)
    watch.synced()
    watch.added(make_group(min_count=1))
    pod = make_member("p1")
    watch.added(pod)
    assert 1 == watch.skipped
    watch.updated(pod, replace(pod, spec=replace(pod.spec, node_name="a")))
    assert 1 == watch.skipped
