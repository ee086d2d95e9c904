"""Plugins that let pods be tried again and again without time passing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from kubesched.api.well_known import HOSTNAME
from kubesched.framework import (
    SUCCESS,
    Code,
    CycleState,
    PermitPlugin,
    Plugin,
    PodInfo,
    ReservePlugin,
    Status,
    unschedulable,
)
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.livelock_guard import LivelockGuard
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.testing import make_pod

from .clusters import node, rehearse


class NoTime(PermitPlugin):
    """Lets pods wait for no time: a timeout of 0 is not a time, not any time."""

    name: ClassVar = "NoTime"

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Wait for 0 seconds."""
        return SUCCESS if "late" in pod.key else Status(Code.WAIT), 0.0


class AtOnce(ReservePlugin):
    """Refuses pods, and wants them tried again."""

    name: ClassVar = "AtOnce"

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Refuse it."""
        return SUCCESS if "late" in pod.key else unschedulable("no")

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Move it to the active queue."""
        self.handle.activate([pod])


@pytest.mark.parametrize("plugin", [NoTime, AtOnce])
def test_a_rehearsal_settles_and_goes_on(plugin: type[Plugin]) -> None:
    """The clock moves, and pods that come later are placed."""

    async def settled(rehearsal: Rehearsal) -> tuple[list[str], list[str]]:
        rehearsal.load([node("a"), make_pod("web"), make_pod("db")])
        await rehearsal.settle()
        rehearsal.server.create(make_pod("late"))
        await rehearsal.settle()
        outcomes = rehearsal.outcomes
        found = outcomes.unplaced.values(), outcomes.placements.values()
        unplaced, placed = (sorted(each.pod for each in records) for records in found)
        return unplaced, placed

    assert (["default/db", "default/web"], ["default/late"]) == rehearse(settled, plugin)


@pytest.mark.parametrize("plugin", [NoTime, AtOnce])
def test_a_scenario_without_latencies_ends(plugin: type[Plugin]) -> None:
    """The clock moves there, too."""
    registry = in_tree_registry()
    registry.register(plugin.name, plugin)
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    enabled = {"multiPoint": {"enabled": [{"name": plugin.name}]}}
    scenario = {
        "version": 1,
        "duration": "5s",
        "nodes": [{"name": "a", "count": 1, "allocatable": {"cpu": 4}}],
        "workloads": [
            {"name": name, "pods": {"at": [at]}, "requests": {"cpu": 1}}
            for name, at in (("web", "0s"), ("late", "2s"))
        ],
        "latencies": {"watch": "0s", "request": "0s"},
        "scheduler": {"configuration": {**kind, "profiles": [{"plugins": enabled}]}},
    }
    report = simulate(load_scenario(scenario), registry)
    assert (2, 1) == (report.totals.arrived, report.totals.bound)


@pytest.mark.slow
def test_a_scenario_ends_though_the_replacements_of_evicted_pods_come_first() -> None:
    """The pod evicts them again and again; time passes all the same."""
    apart = {"labelSelector": {"matchLabels": {"app": "low"}}, "topologyKey": HOSTNAME}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    high = {"spec": {"affinity": {"podAntiAffinity": required}}}
    scenario = {
        "version": 1,
        "duration": "1100ms",
        "nodes": [{"name": "a", "count": 1, "allocatable": {"cpu": 2}}],
        "priorityClasses": [{"name": "high", "value": 1}],
        "workloads": [
            {"name": "low", "deployment": {}, "requests": {"cpu": 1}, "labels": {"app": "low"}},
            {
                "name": "high",
                "pods": {"at": ["1s"]},
                "requests": {"cpu": 1},
                "priorityClassName": "high",
                "template": high,
            },
        ],
        "latencies": dict.fromkeys(("watch", "request", "podStart", "podStop", "controller"), "0s"),
    }
    report = simulate(load_scenario(scenario), in_tree_registry())
    assert report.totals.pending >= 1


def test_many_preemptions_stop_only_their_own_time() -> None:
    """Later a pod that fails does not keep the others from being tried."""
    clock = iter((1.0, 2.0, 2.0))
    scheduler: Any = SimpleNamespace(now=lambda: next(clock), observers=[])
    guard = LivelockGuard(scheduler)
    attempt: Any = SimpleNamespace(queued=SimpleNamespace(pod_info=SimpleNamespace(uid="u")))
    preemption: Any = SimpleNamespace(preemptor=SimpleNamespace(uid="u"))
    guard.failed(attempt, 1.0)
    for _ in range(100):
        guard.preempted(preemption, 1.0, is_success=True)
    assert [False, True] == [scheduler.may_decide() for _ in range(2)]
    guard.failed(attempt, 2.0)
    assert scheduler.may_decide()
