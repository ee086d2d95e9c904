"""Upgrades and compactions are carried out again, step by step, to check each report."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.answers.drain import (
    CompactReport,
    PodFate,
    UpgradeReport,
    WatchNodes,
    compact,
    drain_nodes,
    upgrade,
)
from kubesched.answers.trial_cluster import TrialCluster, names_of
from kubesched.api.core import Node
from kubesched.api.meta import KubeObject
from kubesched.testing.builders import make_pod

from .trials import BudgetWatch, budget, node, running, tried, with_budgets


def _names(objects: list[KubeObject]) -> list[str]:
    return [item.metadata.name for item in objects if isinstance(item, Node)]


def upgraded(
    objects: list[KubeObject],
    at_once: int = 1,
    *,
    may_lose: bool = False,
    watch: WatchNodes | None = None,
) -> UpgradeReport:
    """Return the upgrade order of all nodes."""

    async def ask(cluster: TrialCluster) -> UpgradeReport:
        names = _names(objects)
        return await upgrade(cluster, names, at_once, may_lose=may_lose, watch=watch)

    return tried(objects, ask)


def compacted(
    objects: list[KubeObject], *names: str, watch: WatchNodes | None = None
) -> CompactReport:
    """Return the nodes that can be removed, of some nodes or all."""

    async def ask(cluster: TrialCluster) -> CompactReport:
        return await compact(cluster, names or _names(objects), watch=watch)

    return tried(objects, ask)


# The orders, carried out again.


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), at_once=st.integers(1, 2))
@example(seed=272, at_once=1)
@example(seed=386, at_once=2)
def test_an_upgrade_can_be_carried_out(seed: int, at_once: int) -> None:
    """Every pod of a step moves, no budget is violated, and every node is in one step."""
    objects = with_budgets(seed)
    report = upgraded(objects, at_once)
    steps = [step.nodes for step in report.steps]
    assert all(len(nodes) <= at_once for nodes in steps)
    named = [name for nodes in steps for name in nodes] + [one.node for one in report.blocked]
    assert sorted(_names(objects)) == sorted(named)
    assert report.works == (not report.blocked)

    async def again(cluster: TrialCluster) -> int:
        await cluster.settle()
        BudgetWatch(cluster)
        moved = 0
        for nodes in steps:
            for name in nodes:
                drained = await drain_nodes(cluster, [name])
                fates = [pod.fate for pod in drained.pods]
                assert all(fate is PodFate.MOVED for fate in fates)
                moved += len(fates)
            for name in nodes:
                cluster.cordon(name, on=False)
            await cluster.settle()
        return moved

    assert tried(objects, again) == report.moved


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_a_compaction_can_be_carried_out(seed: int) -> None:
    """Every pod of a removed node moves, and no remaining node could be removed as well."""
    objects = with_budgets(seed)
    report = compacted(objects)

    async def again(cluster: TrialCluster) -> list[str]:
        await cluster.settle()
        watch = BudgetWatch(cluster)
        for step in report.removable:
            (name,) = step.nodes
            assert (await drain_nodes(cluster, [name])).succeeds()
            cluster.remove_node(name)
            await cluster.settle()
        watch.stop()
        left = names_of(cluster)
        for name in left:
            cluster.begin()
            assert not (await drain_nodes(cluster, [name])).succeeds()
            await cluster.undo()
        return left

    assert sorted(one.node for one in report.kept) == sorted(tried(objects, again))
    assert report.before.pods + report.before.pending == report.after.pods + report.after.pending


# What blocks.


def test_a_node_that_a_budget_blocks() -> None:
    """The other nodes are upgraded."""
    nodes: list[KubeObject] = [node("a"), node("b")]
    pods = [running("db-0", "a", owner="db", kind="StatefulSet"), running("web-0", "b", owner="w")]
    report = upgraded([*nodes, *pods, budget("db", "db", maxUnavailable=0)])
    assert not report.works
    assert [("b",)] == [step.nodes for step in report.steps]
    (blocked,) = report.blocked
    assert ("a", ["default/db-0"]) == (blocked.node, [pod.pod for pod in blocked.pods])


def test_a_full_pool_is_upgraded_node_by_node() -> None:
    """Two nodes at once would leave no room for their pods."""
    nodes: list[KubeObject] = [node(name, "2") for name in "abc"]
    pods = [running(f"w-{name}", name, "1", owner="w") for name in "abc"]
    report = upgraded([*nodes, *pods], 3)
    assert report.works
    assert max(len(step.nodes) for step in report.steps) < 3


def test_a_pod_without_a_controller_blocks_its_node() -> None:
    """Unless it is forced, as by kubectl drain --force."""
    objects: list[KubeObject] = [node("a"), node("b"), running("bare", "a")]
    assert [PodFate.LOST] == [pod.fate for pod in upgraded(objects).blocked[0].pods]
    assert upgraded(objects, may_lose=True).works


def test_pods_that_were_pending_do_not_block() -> None:
    """They get a node first; without a controller they are pending again, not lost."""
    objects: list[KubeObject] = [node("a"), node("b"), make_pod("bare", requests={"cpu": 1})]
    report = upgraded(objects)
    assert report.works
    assert not any(step.lost for step in report.steps)
    assert [1] == [len(compacted(objects).removable)]


def test_the_emptiest_node_is_removed_first() -> None:
    """Then as many others as the pods have room for."""
    nodes: list[KubeObject] = [node(name) for name in "abc"]
    pods = [running(f"a-{at}", "a", "1", owner="w") for at in range(2)]
    report = compacted([*nodes, *pods, running("b-0", "b", "1", owner="w")])
    assert [("c",), ("b",)] == [step.nodes for step in report.removable]
    assert (3, 1) == (report.before.nodes, report.after.nodes)


def test_a_node_whose_pod_would_preempt_is_kept() -> None:
    """Even if the victim fits elsewhere."""
    nodes: list[KubeObject] = [node(name) for name in "abc"]
    urgent = running("urgent", "a", "4", owner="u", priority=10)
    others = [
        running("low", "b", "2", owner="l"),
        running("also", "c", "2", owner="l", priority=20),
    ]
    report = compacted([*nodes, urgent, *others], "a")
    assert () == report.removable
    assert [("a", PodFate.PENDING)] == [(one.node, one.pods[0].fate) for one in report.kept]


def test_preemption_breaks_no_budget_in_an_upgrade() -> None:
    """The pod of high priority would evict one that a budget protects, and that fits elsewhere."""
    objects = [
        *(node("a"), node("b"), node("c", "3")),
        running("high-0", "a", "4", owner="high", priority=5),
        running("low-0", "b", "3", owner="low"),
    ]
    assert "a" in upgraded(objects).steps[0].nodes
    report = upgraded([*objects, budget("low", "low", maxUnavailable=0)])
    assert ("a", ()) in [(one.node, one.pods) for one in report.blocked]


def test_an_upgrade_tries_pending_pods_when_nodes_are_back() -> None:
    """Not for each node that is drained: it has no room for them."""
    pods = [running(f"w-{name}", name, owner="w") for name in "ab"]
    alone = running("alone", "c")

    async def ask(cluster: TrialCluster) -> int:
        await upgrade(cluster, "abc", 2)
        return cluster.rehearsal.outcomes.attempts["default/big"]

    big = make_pod("big", requests={"cpu": 8})
    assert 2 == tried([node("a"), node("b"), node("c"), *pods, alone, big], ask)


def test_a_new_node_for_a_cordoned_one_has_its_room() -> None:
    """The old one took no pods any more because one came back to it."""
    old = node("a")
    old = replace(old, spec=replace(old.spec, unschedulable=True))
    pod = running("w-0", "a", owner="w", tolerations=[{"operator": "Exists"}])

    async def ask(cluster: TrialCluster) -> Node:
        await upgrade(cluster, "a", 1)
        return cluster.server.get(Node, "", "a")

    other = running("log-0", "b", "3", owner="log")
    found = tried([old, node("b"), other, pod], ask)
    assert ("110", True) == (str(found.status.allocatable["pods"]), found.spec.unschedulable)


def test_a_pod_that_ends_does_not_move() -> None:
    """It leaves its node without an eviction."""
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    [step] = upgraded([node("a"), make_pod("x", node_name="a", metadata=going)]).steps
    assert step.moved == 0


def test_progress_is_reported_after_each_node() -> None:
    """With the numbers of nodes tried, nodes in all, and nodes that can be removed."""
    seen: list[tuple[int, int, int]] = []
    pods = [running("a-0", "a", "4", owner="w")]
    objects: list[KubeObject] = [node("a"), node("b"), *pods]
    compacted(objects, watch=lambda *numbers: seen.append(numbers))
    assert [(0, 2, 0), (1, 2, 1), (2, 2, 1)] == seen


def test_progress_of_an_upgrade_is_reported_after_each_node() -> None:
    """A blocked node is tried again when all others are done."""
    seen: list[tuple[int, int, int]] = []
    pods = [running("a-0", "a", "1", owner="w"), running("lone", "b", "1")]
    upgraded([node("a"), node("b"), *pods], watch=lambda *numbers: seen.append(numbers))
    assert [(0, 2, 0), (1, 2, 1), (2, 2, 1), (2, 2, 1)] == seen
