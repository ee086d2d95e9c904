"""Pod groups with a topology constraint, in the running scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from kubesched.api.core import Node
from kubesched.api.scheduling import PodGroup
from kubesched.framework.pod_groups import (
    GeneratedPlacements,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupAssignments,
)
from kubesched.framework.registry import Registry
from kubesched.framework.status import SUCCESS, Status, failure, unschedulable
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.sampling import Restriction
from kubesched.simulator.virtual_loop import run
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from tests.loops import on_virtual_time
from tests.scheduler.running import GANGS, Running, make_group, make_member, running, with_scheduler
from tests.scheduler.scripted import GROUP, SCHEDULED

GATES = {**GANGS, "TopologyAwareWorkloadScheduling": True}


def zoned(name: str, zone: str, cpu: int) -> Node:
    """Return a node in a zone."""
    return make_node(name, labels={"zone": zone}, allocatable={"cpu": cpu})


def zonal(min_count: int) -> PodGroup:
    """Return a gang that must be placed in one zone."""
    return make_group(min_count=min_count, key="zone")


def arrive(cluster: Running, count: int, **fields: Any) -> None:
    """Create members of the gang."""
    cluster.api.create(*(make_member(f"p{at}", **fields) for at in range(count)))


def zones_of(cluster: Running) -> set[str]:
    """Return the first letters of the nodes that were used: their zones."""
    return {node[0] for node in cluster.nodes.values()}


@with_scheduler(gates=GATES)
async def test_a_gang_is_placed_in_one_zone(cluster: Running) -> None:
    """Zone a has the node with the most room, but only zone b has room for all three pods."""
    cluster.api.create(zoned("a1", "a", 2), zoned("b1", "b", 1), zoned("b2", "b", 2))
    cluster.api.create(zonal(3))
    arrive(cluster, 3)
    await cluster.settle(5)
    assert ({"p0", "p1", "p2"}, {"b"}) == (set(cluster.nodes), zones_of(cluster))
    assert SCHEDULED == cluster.group("gang")


@with_scheduler(gates=GATES)
async def test_without_a_constraint_the_gang_may_be_spread(cluster: Running) -> None:
    """There is one placement, with all nodes."""
    cluster.api.create(zoned("a1", "a", 1), zoned("b1", "b", 1), make_group(min_count=2))
    arrive(cluster, 2)
    await cluster.settle(5)
    assert {"a", "b"} == zones_of(cluster)


@with_scheduler(gates=GATES)
async def test_no_domain_is_large_enough(cluster: Running) -> None:
    """The group's message has the number of domains; the pods have their own reasons."""
    cluster.api.create(zoned("a1", "a", 2), zoned("b1", "b", 1), make_node("c1"))
    cluster.api.create(zonal(3))
    arrive(cluster, 3)
    await cluster.settle(0.1)
    cause = f"0/2 placements are available, first placement status: {GROUP}"
    assert ("False", "Unschedulable", cause) == cluster.group("gang")
    messages = sorted(cluster.condition(f"p{at}")[1] for at in range(3))
    # Of the three nodes only the one of the placement counts.
    assert messages[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    waits = "waiting for minCount pods from a gang to be scheduled"
    assert all(text.startswith(f"{GROUP}, {waits}") for text in messages[1:])


@with_scheduler(gates=GATES)
async def test_no_node_is_in_a_domain(cluster: Running) -> None:
    """The pods' conditions say so; their nominations stay."""
    cluster.api.create(make_node("n"), zonal(2))
    arrive(cluster, 2)
    await cluster.settle(0.1)
    cause = "no feasible placements found"
    assert ("False", "Unschedulable", cause) == cluster.group("gang")
    assert ("Unschedulable", cause) == cluster.condition("p0")


@with_scheduler(gates=GATES)
async def test_later_pods_use_the_domain_of_scheduled_ones(cluster: Running) -> None:
    """It is the only candidate."""
    cluster.api.create(zoned("a1", "a", 2), zonal(2))
    arrive(cluster, 2)
    await cluster.settle(2)
    assert {"a"} == zones_of(cluster)
    cluster.api.create(zoned("b1", "b", 9), make_member("late"))
    await cluster.settle(2)
    assert "late" not in cluster.nodes
    cluster.api.create(zoned("a2", "a", 1))
    await cluster.settle(30)
    assert "a2" == cluster.nodes["late"]


@with_scheduler(gates=GATES)
async def test_the_placement_with_more_pods_wins(cluster: Running) -> None:
    """Two of four pods suffice, but zone b has room for three."""
    cluster.api.create(zoned("a1", "a", 2), zoned("b1", "b", 3), zonal(2))
    arrive(cluster, 4)
    await cluster.settle(0.1)
    assert {"b"} == zones_of(cluster)
    assert 3 == len(cluster.nodes)


@with_scheduler(gates=GATES)
async def test_the_fuller_placement_wins_ties(cluster: Running) -> None:
    """NodeResourcesFit scores it higher."""
    cluster.api.create(zoned("a1", "a", 8), zoned("b1", "b", 4), zoned("c1", "c", 8))
    cluster.api.create(zonal(2))
    arrive(cluster, 2)
    await cluster.settle(0.1)
    assert {"b"} == zones_of(cluster)


@with_scheduler(gates=GATES)
async def test_pod_by_pod_preemption_is_off_for_groups_with_a_constraint(cluster: Running) -> None:
    """DefaultPreemption ignores placements."""
    cluster.api.create(zoned("a1", "a", 2), zonal(2))
    cluster.api.create(make_pod("low", requests={"cpu": 1}, node_name="a1", priority=0))
    arrive(cluster, 2, priority=5)
    await cluster.settle(0.1)
    assert "low" in cluster.api.pods
    words = "not eligible due to placement-based pod group scheduling limitation"
    texts = [cluster.condition(f"p{at}")[1] for at in range(2)]
    assert [True] == [True for text in texts if words in text]


@with_scheduler(gates=GATES)
async def test_a_nomination_outside_the_placement_is_ignored(cluster: Running) -> None:
    """The pod is placed in this domain."""
    cluster.api.create(zoned("a1", "a", 1), zoned("b1", "b", 2), zonal(2))
    arrive(cluster, 2, nominated_node_name="a1")
    await cluster.settle(5)
    assert {"b"} == zones_of(cluster)


@on_virtual_time
async def test_workload_aware_preemption_uses_placements() -> None:
    """With both gates on, the group's status is that of the placements."""
    gates = {**GATES, "WorkloadAwarePreemption": True}
    async with running(gates=gates) as cluster:
        cluster.api.create(zoned("a1", "a", 1), make_group(min_count=2, priority=9))
        cluster.api.create(make_pod("low", requests={"cpu": 1}, node_name="a1", priority=0))
        arrive(cluster, 2, priority=9)
        await cluster.settle(0.1)
        tried = f"0/1 placements are available, first placement status: {GROUP}"
        assert ("False", "Unschedulable", f"{tried}, {tried}") == cluster.group("gang")
        assert "low" in cluster.api.pods


# Plugins of others.


class Script(PlacementGeneratePlugin, PlacementScorePlugin):
    """Answers as a test says.

    Attributes:
        placements: What it generates.
        scores: Placement -> score, or what is wrong with it.
        normalized: What becomes of the scores.
    """

    name: ClassVar = "Script"
    placements: ClassVar[GeneratedPlacements] = GeneratedPlacements()
    scores: ClassVar[dict[str, int | Status]] = {}
    normalized: ClassVar[Status] = SUCCESS

    def generate_placements(
        self, namespace: str, name: str, parent: Placement, snapshot: Snapshot
    ) -> GeneratedPlacements:
        """Return the scripted placements."""
        return self.placements

    def score_placement(
        self, namespace: str, name: str, assignments: PodGroupAssignments, snapshot: Snapshot
    ) -> tuple[int, Status]:
        """Return the scripted score."""
        found = self.scores.get(assignments.placement.name, 0)
        return (0, found) if isinstance(found, Status) else (found, SUCCESS)

    def normalize_placement_scores(self, scores: Sequence[int]) -> tuple[list[int], Status]:
        """Return the scores, with the scripted status."""
        return list(scores), self.normalized


def scripted(**says: Any) -> dict[str, Any]:
    """Return a profile with a plugin for placements."""
    plugin = type("Script", (Script,), says)
    registry = Registry(plugin, *in_tree_registry().values())
    disabled = [{"name": "TopologyPlacementGenerator"}]
    enabled = [{"name": "Script", "weight": 1000}]
    profile = {
        "plugins": {
            "placementGenerate": {"enabled": [{"name": "Script"}], "disabled": disabled},
            "placementScore": {"enabled": enabled},
        }
    }
    return {"gates": GATES, "registry": registry, "profile": profile}


TWO = GeneratedPlacements((Placement("first", (0,)), Placement("second", (1,))))


async def _place(**says: Any) -> tuple[dict[str, str], tuple[str, str, str]]:
    async with running(**scripted(**says)) as cluster:
        cluster.api.create(zoned("a1", "a", 2), zoned("b1", "b", 2), zonal(2))
        arrive(cluster, 2)
        await cluster.settle(0.1)
        return cluster.nodes, cluster.group("gang")


@pytest.mark.parametrize(
    ("best", "node"), [pytest.param("first", "a1"), pytest.param("second", "b1")]
)
def test_scores_of_placements_decide(best: str, node: str) -> None:
    """The plugin's weight exceeds the others'."""
    nodes, _ = run(_place(placements=TWO, scores={best: 50}))
    assert {"p0": node, "p1": node} == nodes


@pytest.mark.parametrize(
    ("says", "words"),
    [
        pytest.param(
            {"scores": {"first": failure("broken")}},
            'running PlacementScore plugins: plugin "Script" failed with: broken',
            id="score",
        ),
        pytest.param(
            {"scores": {"first": unschedulable("no")}},
            'running PlacementScore plugins: plugin "Script" failed with: no',
            id="a rejection is an error",
        ),
        pytest.param(
            {"normalized": failure("broken")},
            "running NormalizePlacementScore on PlacementScore plugins: "
            'plugin "Script" failed with: broken',
            id="normalize",
        ),
        pytest.param(
            {"scores": {"second": 101}},
            'applying score defaultWeights on PlacementScore plugins: plugin "Script" returns an '
            "invalid score 101, it should in the range of [0, 100] after normalizing",
            id="out of range",
        ),
        pytest.param(
            {"placements": GeneratedPlacements(status=failure("broken"))}, "broken", id="generate"
        ),
    ],
)
def test_errors_of_placement_plugins_are_errors_of_the_group(
    says: dict[str, Any], words: str
) -> None:
    """No pod is placed."""
    nodes, group = run(_place(**{"placements": TWO, **says}))
    assert {} == nodes
    assert ("False", "SchedulerError", words) == group


def test_restricted_rows() -> None:
    """They can be counted, looked up and narrowed; without a restriction all rows are allowed."""
    nodes = make_snapshot([make_node("a"), make_node("b"), make_node("c")]).nodes
    restriction = Restriction()
    rows = np.array([0, 1, 2])
    assert (3, True) == (restriction.count(nodes), restriction.allows(1))
    assert restriction.narrow(None) is None
    assert rows is restriction.narrow(rows)
    restriction.rows = np.array([0, 2])
    assert (2, False, True) == (
        restriction.count(nodes),
        restriction.allows(1),
        restriction.allows(2),
    )
    assert restriction.rows is restriction.narrow(None)
    narrowed = restriction.narrow(rows[1:])
    assert narrowed is not None
    assert [2] == narrowed.tolist()
