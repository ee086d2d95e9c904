"""Rehearsals: the production scheduler settles in a cluster, and again after each change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.errors import TooManyRequestsError
from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.simulator.node_life import evict
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.testing.builders import make_pod
from tests.answers.trials import budget
from tests.loops import as_test, on_virtual_time

from .clusters import node, rehearse


def placed(rehearsal: Rehearsal) -> dict[str, str]:
    """Return pod name -> node name."""
    found = rehearsal.outcomes.placements.values()
    return {placement.pod.partition("/")[2]: placement.node for placement in found}


def running(name: str, node_name: str, cpu: int, **more: object) -> Pod:
    """Return a pod that runs on a node."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return make_pod(
        name,
        node_name=node_name,
        requests={"cpu": cpu},
        labels={"app": name},
        status=status,
        start_time="2026-06-01T00:00:00Z",
        metadata=more,
    )


def rehearsed(story: Callable[..., Awaitable[object]]) -> Callable[..., None]:
    """Run a test with an empty rehearsal, its argument, and check the scheduler afterwards."""
    return as_test(story, rehearse)


# Changes.


@rehearsed
async def test_a_rehearsal_settles_after_each_change(rehearsal: Rehearsal) -> None:
    """A pending pod is placed after a node is added, a pod deleted or a node uncordoned."""
    server, found = rehearsal.server, []
    pods = [running("old", "first", 3), make_pod("big", requests={"cpu": 4})]
    rehearsal.load([node("first"), *pods])
    await rehearsal.settle()
    found.append(placed(rehearsal))
    assert ["default/big"] == [pod.pod for pod in rehearsal.unplaced().values()]
    server.create(node("second"))
    await rehearsal.settle()
    found.append(placed(rehearsal))
    (old,) = [pod for pod in rehearsal.pods_on("first") if pod.metadata.name == "old"]
    second = server.node("second")
    assert second is not None
    server.update(replace(second, spec=replace(second.spec, unschedulable=True)))
    server.create(make_pod("late", requests={"cpu": 3}))
    await rehearsal.settle()
    found.append(placed(rehearsal))
    server.delete_pod("default", old.metadata.name)
    await rehearsal.settle()
    found.append(placed(rehearsal))
    both = {"big": "second", "late": "first"}
    expected = [{}, {"big": "second"}, {"big": "second"}, both]
    assert expected == found


@on_virtual_time
async def test_the_given_random_source_breaks_ties() -> None:
    """If it always returns 0, the node that was loaded first is chosen."""

    class First(Random):
        def random(self) -> float:
            return 0.0

    gates = FeatureGates()
    rehearsal = Rehearsal(in_tree_setup(gates), random=First(0))
    pods = [make_pod(f"pod-{at}", requests={"cpu": 1}) for at in range(3)]
    rehearsal.load([*map(node, ("z", "a", "m")), *pods])
    await rehearsal.settle()
    expected = {"pod-0": "z", "pod-1": "a", "pod-2": "m"}
    assert expected == placed(rehearsal)


@rehearsed
async def test_a_drained_pod_moves_if_its_budget_allows(rehearsal: Rehearsal) -> None:
    """Its replacement is placed on another node."""
    pods = [running("free", "first", 1), running("kept", "first", 3)]
    rehearsal.load([node("first"), node("second"), budget("web", "kept"), *pods])
    await rehearsal.settle()
    free, kept = rehearsal.pods_on("first")
    with pytest.raises(TooManyRequestsError):
        evict(rehearsal.server, kept)
    evict(rehearsal.server, free)
    rehearsal.server.create(make_pod("again", requests={"cpu": 3}))
    await rehearsal.settle()
    assert ["kept"] == [pod.metadata.name for pod in rehearsal.pods_on("first")]
    assert {"again": "second"} == placed(rehearsal)


@rehearsed
async def test_pods_placed_here_started_last(rehearsal: Rehearsal) -> None:
    """Of pods with equal priority the one that started last is evicted."""
    pods = [make_pod(name, requests={"cpu": 1}) for name in ("first", "last")]
    rehearsal.load([node("n"), running("old", "n", 1), running("older", "n", 1), *pods])
    await rehearsal.settle()
    rehearsal.server.create(make_pod("boss", requests={"cpu": 1}, priority=9))
    await rehearsal.settle()
    assert {"boss", "first"} == set(placed(rehearsal))
    assert [("default/last", True)] == [
        (each.pod, each.placed_here) for each in rehearsal.outcomes.evictions
    ]


@pytest.mark.parametrize("pops_early", [True, False])
@on_virtual_time
async def test_a_pod_whose_victims_were_evicted_during_its_attempt(pops_early: bool) -> None:
    """It is tried again after its backoff."""
    gates = {"SchedulerAsyncPreemption": False, "SchedulerPopFromBackoffQ": pops_early}
    rehearsal = Rehearsal(in_tree_setup(FeatureGates(gates)))
    boss = make_pod("boss", requests={"cpu": 3}, priority=9)
    rehearsal.load([node("n"), running("old", "n", 3), boss])
    await rehearsal.settle()
    assert {"boss": "n"} == placed(rehearsal)


@pytest.mark.parametrize("nominated", ["", "n"])
@rehearsed
async def test_victims_that_are_being_deleted_end(rehearsal: Rehearsal, nominated: str) -> None:
    """A pod that needs their room gets it, and others get the rest."""
    boss = make_pod("boss", requests={"cpu": 3}, priority=9, nominated_node_name=nominated)
    old = running("old", "n", 3, deletionTimestamp="2026-06-01T00:00:00Z")
    rehearsal.load([node("n"), old, boss, make_pod("small", requests={"cpu": 1})])
    await rehearsal.settle()
    assert not rehearsal.outcomes.evictions
    assert {"boss": "n", "small": "n"} == placed(rehearsal)


@rehearsed
async def test_other_pods_that_are_being_deleted_stay(rehearsal: Rehearsal) -> None:
    """A pod of equal priority does not wait for them."""
    old = running("old", "n", 3, deletionTimestamp="2026-06-01T00:00:00Z")
    rehearsal.load([node("n"), old, make_pod("big", requests={"cpu": 3})])
    await rehearsal.settle()
    assert {} == placed(rehearsal)
