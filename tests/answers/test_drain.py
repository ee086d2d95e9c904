"""Drains: against rehearsals by hand, budgets at every moment, and pods that cannot move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.answers.drain import DrainReport, PodFate, drain
from kubesched.answers.trial_cluster import TrialCluster
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.testing.builders import make_pod

from .trials import (
    BudgetWatch,
    budget,
    by_name,
    by_owner,
    node,
    random_cluster,
    rehearsed,
    replace_by_hand,
    running,
    tried,
    with_budgets,
)


def drained(objects: Iterable[KubeObject], *names: str) -> DrainReport:
    """Return the answer for nodes."""

    async def ask(cluster: TrialCluster) -> DrainReport:
        return await drain(cluster, names)

    return tried(objects, ask)


def fates(report: DrainReport) -> dict[str, tuple[PodFate, str]]:
    """Return pod name -> fate and new node."""
    return {pod.pod.partition("/")[2]: (pod.fate, pod.new_node) for pod in report.pods}


# Against a rehearsal by hand.


async def _drain_by_hand(rehearsal: Rehearsal, names: Sequence[str]) -> Counter[tuple[str, str]]:
    server = rehearsal.server
    for name in names:
        found = server.node(name)
        assert found is not None
        server.update(replace(found, spec=replace(found.spec, unschedulable=True)))
    await rehearsal.settle()
    for name in names:
        replace_by_hand(server, by_name(rehearsal.pods_on(name)))
        await rehearsal.settle()
    return by_owner(server.all(Pod))


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), number=st.integers(1, 2))
def test_equals_a_rehearsal_of_the_evictions(seed: int, number: int) -> None:
    """Without budgets every pod of a node goes at once, and its replacement is scheduled."""
    objects = random_cluster(seed, owned=True)
    names = [item.metadata.name for item in objects if isinstance(item, Node)][:number]

    async def ask(cluster: TrialCluster) -> Counter[tuple[str, str]]:
        await drain(cluster, names)
        return by_owner(cluster.server.all(Pod))

    async def by_hand(rehearsal: Rehearsal) -> Counter[tuple[str, str]]:
        return await _drain_by_hand(rehearsal, names)

    assert rehearsed(objects, by_hand) == tried(objects, ask)


# Budgets.


@pytest.mark.slow
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), number=st.integers(1, 3))
def test_no_budget_is_ever_violated(seed: int, number: int) -> None:
    """After every write there are as many healthy pods as each budget asks for, or as before."""
    objects = with_budgets(seed)
    names = [item.metadata.name for item in objects if isinstance(item, Node)][:number]

    async def ask(cluster: TrialCluster) -> None:
        BudgetWatch(cluster)
        await drain(cluster, names)

    tried(objects, ask)


@pytest.mark.slow
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), number=st.integers(1, 3))
def test_no_pod_is_lost_or_counted_twice(seed: int, number: int) -> None:
    """Every owner has as many pods as before, and every pod of the nodes has one fate."""
    objects = with_budgets(seed)
    names = [item.metadata.name for item in objects if isinstance(item, Node)][:number]
    before = [item for item in objects if isinstance(item, Pod)]

    async def ask(cluster: TrialCluster) -> tuple[DrainReport, list[Pod]]:
        report = await drain(cluster, names)
        return report, list(cluster.server.all(Pod))

    report, after = tried(objects, ask)

    def owners(pods: Iterable[Pod]) -> Counter[str]:
        return Counter(name for name, _ in by_owner(pods).elements())

    assert owners(before) == owners(after)
    ours = [pod.pod for pod in report.pods]
    assert len(set(ours)) == len(ours)
    there = Counter(pod.spec.node_name for pod in after)
    waiting = Counter(pod.node for pod in report.pods if pod.fate is PodFate.WAITS)
    assert all(there[name] == waiting[name] for name in names)
    moved = Counter(pod.new_node for pod in report.pods if pod.fate is PodFate.MOVED)
    assert all(there[name] >= number for name, number in moved.items())
    assert report.succeeds == (
        not waiting and all(pod.fate is PodFate.MOVED for pod in report.pods)
    )


def test_a_budget_lets_pods_go_one_after_another() -> None:
    """The second pod goes when the replacement of the first one runs."""
    pods = [running(f"web-{at}", "a", owner="web") for at in range(3)]
    report = drained([node("a"), node("b"), *pods, budget("web", "web", minAvailable=2)], "a")
    assert report.succeeds
    assert [1, 2, 3] == sorted(pod.round for pod in report.pods)


def test_a_budget_that_lets_no_pod_go() -> None:
    """The answer names it, and what it needs."""
    objects: list[KubeObject] = [
        node("a"),
        node("b"),
        running("web-0", "a", owner="web"),
        budget("web", "web", maxUnavailable=0),
    ]
    report = drained(objects, "a")
    assert not report.succeeds
    (pod,) = report.pods
    assert (PodFate.WAITS, ("default/web",)) == (pod.fate, pod.budgets)
    assert pod.message == "the budget needs 1 healthy pods and has 1"


def test_a_replacement_without_a_place_blocks_the_next_eviction() -> None:
    """One pod is pending then, and the other one stays where it is."""
    objects: list[KubeObject] = [
        node("a"),
        node("b", "1"),
        running("web-0", "a", "2", owner="web"),
        running("web-1", "a", "2", owner="web"),
        budget("web", "web", minAvailable=1),
    ]
    report = drained(objects, "a")
    assert [PodFate.PENDING, PodFate.WAITS] == [pod.fate for pod in report.pods]


# Pods that do not move.

GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
STATIC = {"annotations": {"kubernetes.io/config.mirror": "x"}}


@pytest.mark.parametrize(
    ("pod", "fate", "flags"),
    [
        (running("x", "a", owner="d", kind="DaemonSet"), PodFate.STAYS, ("--ignore-daemonsets",)),
        (running("x", "a"), PodFate.LOST, ("--force",)),
        (
            running("x", "a", owner="w", volumes=[{"name": "tmp", "emptyDir": {}}]),
            PodFate.MOVED,
            ("--delete-emptydir-data",),
        ),
        (make_pod("x", node_name="a", metadata=GOING), PodFate.ENDED, ("--force",)),
        (make_pod("x", node_name="a", metadata=STATIC), PodFate.STAYS, ()),
    ],
)
def test_pods_as_kubectl_treats_them(pod: Pod, fate: PodFate, flags: tuple[str, ...]) -> None:
    """With the flags that it would ask for."""
    report = drained([node("a"), node("b"), pod], "a")
    assert [fate] == [found.fate for found in report.pods]
    assert flags == report.flags


def test_pods_that_preemption_evicts_for_those_that_move() -> None:
    """They need a place too."""
    objects: list[KubeObject] = [
        node("a"),
        node("b"),
        running("high", "a", "3", owner="high", priority=5),
        running("low", "b", "3", owner="low"),
    ]
    report = drained(objects, "a")
    assert not report.succeeds
    assert {"high": (PodFate.MOVED, "b")} == fates(report)
    (found,) = report.preempted
    assert ("default/low", "") == (found.pod, found.new_node)


def test_a_pending_pod_does_not_go_to_a_drained_node_first() -> None:
    """The cordon comes before anything is placed, as with kubectl."""
    report = drained([node("a"), node("b"), make_pod("waiting")], "a")
    assert (True, ()) == (report.succeeds, report.pods)


def test_nodes_that_are_drained_together_are_no_place_for_each_others_pods() -> None:
    """Both are cordoned before the first eviction."""
    objects: list[KubeObject] = [
        node("a"),
        node("b"),
        node("c"),
        running("web-0", "a", owner="web"),
    ]
    report = drained(objects, "a", "b")
    assert {"web-0": (PodFate.MOVED, "c")} == fates(report)
