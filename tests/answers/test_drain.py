"""Drains are compared with rehearsals, and budgets are checked after every write."""

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
def test_a_drain_equals_a_rehearsal_of_its_evictions(seed: int, number: int) -> None:
    """Without budgets all pods of a node are evicted at once and their replacements scheduled."""
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
    """After every write as many pods are healthy as each budget requires, or as before."""
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
    """Each owner has as many pods as before; each pod of the nodes has one fate."""
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


def test_a_budget_that_allows_one_disruption() -> None:
    """The second pod is evicted once the replacement of the first one runs."""
    pods = [running(f"web-{at}", "a", owner="web") for at in range(3)]
    report = drained([node("a"), node("b"), *pods, budget("web", "web", minAvailable=2)], "a")
    assert report.succeeds
    assert [1, 2, 3] == sorted(pod.round for pod in report.pods)


def test_a_budget_that_allows_no_disruption() -> None:
    """The report names the budget and what it requires."""
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
    assert pod.message == "the budget needs 1 healthy pod and has 1"


def test_a_pending_replacement_blocks_the_next_eviction() -> None:
    """The other pod stays on its node."""
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
def test_pods_that_kubectl_treats_specially(
    pod: Pod, fate: PodFate, flags: tuple[str, ...]
) -> None:
    """The report lists the flags that kubectl drain needs."""
    report = drained([node("a"), node("b"), pod], "a")
    assert [fate] == [found.fate for found in report.pods]
    assert flags == report.flags


def test_victims_of_pods_that_move() -> None:
    """The report lists the pods that are preempted for them."""
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


def test_pending_pods_are_not_placed_on_a_node_to_be_drained() -> None:
    """The node is cordoned before anything is placed, as by kubectl."""
    report = drained([node("a"), node("b"), make_pod("waiting")], "a")
    assert (True, ()) == (report.succeeds, report.pods)


def test_pods_do_not_move_between_nodes_drained_together() -> None:
    """All are cordoned before the first eviction."""
    objects: list[KubeObject] = [
        node("a"),
        node("b"),
        node("c"),
        running("web-0", "a", owner="web"),
    ]
    report = drained(objects, "a", "b")
    assert {"web-0": (PodFate.MOVED, "c")} == fates(report)


def test_a_drained_pod_that_is_preempted_is_no_other_pod() -> None:
    """Its replacement had room until the pod of the second node came."""
    low = running("low", "a", "1", owner="low")
    high = running("high", "b", "2", owner="high", priority=9)
    report = drained([node("a"), node("b"), node("c", "2"), low, high], "a", "b")
    assert {"low": (PodFate.PENDING, ""), "high": (PodFate.MOVED, "c")} == fates(report)
    assert () == report.preempted


@pytest.mark.parametrize(
    ("names", "fate", "new_node"), [("a", PodFate.MOVED, "b"), ("ab", PodFate.PENDING, "")]
)
def test_pods_that_tolerate_a_cordon_do_not_come_back(
    names: str, fate: PodFate, new_node: str
) -> None:
    """The scheduler would place them on the drained nodes again, which are about to go."""
    pod = running("web-0", "a", owner="web", tolerations=[{"operator": "Exists"}])
    full = running("log-x", "b", "3", owner="log", kind="DaemonSet")
    report = drained([node("a"), node("b"), pod, full], *names)
    assert (fate, new_node) == fates(report)["web-0"]
    assert "ReplicaSet web tolerates cordons" in report.notes[0]
