"""Which rows are filtered again with their nominated pods."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.plugin import Scope
from kubesched.framework.status import SUCCESS, Status, failure, unschedulable
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler import nominated_rows
from kubesched.scheduler.decision import Placed, Rejected
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_pod_info
from tests.scheduler.toys import Toy, alike, cluster, comparable, cycle_of, failed, placed, toy

NODES = ("a", "b", "c", "d")
POD = make_pod_info("pod", priority=5)
GUESTS = [make_pod_info(f"guest-{name}", priority=9) for name in NODES]


def _cluster() -> tuple[Snapshot, Nominator]:
    """Return a cluster with one nominated pod on each of the first three nodes."""
    nominator = Nominator()
    for guest, name in zip(GUESTS[:3], NODES, strict=False):
        nominator.add(guest, name)
    empty = cluster(*NODES)
    return Snapshot(empty.nodes, empty.objects, nominator), nominator


def _without_guests(pods: Sequence[str]) -> Status:
    return unschedulable("guests") if any(name.startswith("guest") for name in pods) else SUCCESS


def _shy(scope: Scope) -> type[Toy]:
    """Return a plugin that rejects nodes with nominated pods."""
    return toy("Shy", filter=dict.fromkeys(NODES, _without_guests), scope=scope, sign=alike)


def _rows_asked(plugin: type[Toy]) -> list[str]:
    """Return the rows that were filtered one by one since the last call."""
    asked = [names[0] for point, names in plugin.asked if point == "filter" and len(names) == 1]
    plugin.asked.clear()
    return asked


def test_only_changed_rows_are_filtered_again() -> None:
    """A nomination, or a pod that is added, concerns one node."""
    snapshot, nominator = _cluster()
    plugin = _shy(Scope.ROW)
    cycle = cycle_of(plugin, remembers=True)
    for _ in range(2):
        assert 1 == placed(cycle.schedule_one(POD, snapshot)).feasible
        assert ["a", "b", "c"] == _rows_asked(plugin)
    assert 1 == placed(cycle.schedule_one(POD, snapshot)).feasible
    assert [] == _rows_asked(plugin)

    nominator.delete(GUESTS[0].uid)
    assert 2 == placed(cycle.schedule_one(POD, snapshot)).feasible
    assert [] == _rows_asked(plugin)

    nominator.add(GUESTS[0], "b")
    assert 2 == placed(cycle.schedule_one(POD, snapshot)).feasible
    assert ["b"] == _rows_asked(plugin)

    snapshot.nodes.add_pod(make_pod_info("new"), snapshot.nodes.row_of["c"])
    assert 2 == placed(cycle.schedule_one(POD, snapshot)).feasible
    # Once without the guest, because the row changed, and once with it.
    assert ["c", "c"] == _rows_asked(plugin)


@pytest.mark.parametrize("remembers", [False, True])
def test_priority_decides_which_nominated_pods_count(*, remembers: bool) -> None:
    """Of two pods with equal signatures, only the one of higher priority may take their place."""
    snapshot, _ = _cluster()
    cycle = cycle_of(_shy(Scope.ROW), remembers=remembers)
    high, low = make_pod_info("high", priority=10), make_pod_info("low", priority=0)
    feasible = [
        placed(cycle.schedule_one(pod, snapshot)).feasible
        for pod in (high, high, high, low, high, low)
    ]
    assert [4, 4, 4, 1, 4, 1] == feasible


@pytest.mark.parametrize("remembers", [False, True])
def test_a_pods_own_nomination_is_ignored(*, remembers: bool) -> None:
    """It counts for the next pod."""
    snapshot, _ = _cluster()
    cycle = cycle_of(_shy(Scope.ROW), remembers=remembers)
    other = make_pod_info("other", priority=GUESTS[0].priority)
    expected = {"other": 1, GUESTS[0].name: 2, GUESTS[1].name: 2}
    for pod in (other, other, other, GUESTS[0], other, GUESTS[1], GUESTS[0], other):
        assert expected[pod.name] == placed(cycle.schedule_one(pod, snapshot)).feasible


def test_rows_with_equal_amounts_share_the_status() -> None:
    """If filters read amounts only, one of the rows is filtered."""
    snapshot, nominator = _cluster()
    plugin = _shy(Scope.USAGE)
    cycle = cycle_of(plugin, remembers=True)
    for _ in range(2):
        assert 1 == placed(cycle.schedule_one(POD, snapshot)).feasible
        assert ["a"] == _rows_asked(plugin)
    nominator.add(make_pod_info("guest-large", priority=9, requests={"cpu": 1}), "d")
    cycle.schedule_one(POD, snapshot)
    assert ["d"] == _rows_asked(plugin)


def test_after_a_failure_all_rows_are_filtered_again() -> None:
    """The rows after the failure were not filtered."""
    broken = [True]

    def answer(pods: Sequence[str]) -> Status:
        return failure("broken") if broken[0] and "guest-b" in pods else _without_guests(pods)

    snapshot, nominator = _cluster()
    plugin = toy("Shy", filter=dict.fromkeys(NODES, answer), scope=Scope.ROW, sign=alike)
    cycle = cycle_of(plugin, remembers=True)
    for _ in range(3):
        assert "broken" in failed(cycle.schedule_one(POD, snapshot)).message
    broken[0] = False
    assert 1 == placed(cycle.schedule_one(POD, snapshot)).feasible
    nominator.delete(GUESTS[1].uid)
    assert 2 == placed(cycle.schedule_one(POD, snapshot)).feasible


@pytest.mark.parametrize("remembers", [False, True])
def test_a_filter_never_fails_on_a_row_without_the_nominated_pods_that_reject_it(
    *, remembers: bool
) -> None:
    """With the nominated pods the row is filtered first, and their rejection ends its search."""
    snapshot, _ = _cluster()
    late = toy("Late", filter={"a": failure("broken")}, sign=alike)
    cycle = cycle_of(_shy(Scope.ROW), late, remembers=remembers)
    for _ in range(3):
        assert 1 == placed(cycle.schedule_one(POD, snapshot)).feasible


def test_snapshots_with_other_nominations_share_nothing() -> None:
    """One of them may have none."""
    snapshot, _ = _cluster()
    cycle = cycle_of(_shy(Scope.ROW), remembers=True)
    for _ in range(3):
        assert 1 == placed(cycle.schedule_one(POD, snapshot)).feasible
    other = Nominator()
    other.add(PodInfo(make_pod("guest", priority=9)), "d")
    changed = Snapshot(snapshot.nodes, snapshot.objects, other)
    assert 3 == placed(cycle.schedule_one(POD, changed)).feasible
    assert 1 == placed(cycle.schedule_one(POD, snapshot)).feasible


def _guarded(random: Random, name: str, *, plain: bool, **more: Any) -> Pod:
    """Return a pod of one of four apps, with constraints of its own or none."""
    app = random.choice("abcd")
    of_app = {"labelSelector": {"matchLabels": {"app": app}}}
    spread = {**of_app, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    term = {**of_app, "topologyKey": random.choice(["host", "zone"])}
    anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    constraints: list[dict[str, Any]] = [
        {},
        {"pod_anti_affinity": anti},
        {"topology_spread_constraints": [{**spread, "topologyKey": "zone"}]},
        {
            "pod_anti_affinity": anti,
            "topology_spread_constraints": [{**spread, "topologyKey": "host"}],
        },
    ]
    requests = {"cpu": random.randrange(1, 4)}
    more |= random.choice(constraints[:1] if plain else constraints)
    return make_pod(name, uid=name, labels={"app": app}, requests=requests, **more)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_pods_that_filters_ignore_change_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster without memory ignores no pod, and decides alike; victims take time to end.

    Without memory, nodes with nominated pods are also asked about one by one, not together.
    """
    monkeypatch.setattr(nominated_rows, "_ALONE_MAX", seed % 2 * 12)
    random, plain = Random(seed), seed % 4 == 0
    clusters = [
        ClusterState(in_tree_setup(FeatureGates()), seed=seed, remembers=remembers)
        for remembers in (True, False)
    ]
    names = [f"n{number}" for number in range(12)]
    loaded: list[KubeObject] = [
        make_node(name, labels={"host": name, "zone": "xyz"[at % 3]}, allocatable={"cpu": 8})
        for at, name in enumerate(names)
    ]
    loaded += [
        _guarded(random, f"low-{at}", plain=plain, node_name=random.choice(names), priority=at % 2)
        for at in range(36)
    ]
    for each in clusters:
        each.load(loaded)
    leaving: dict[str, PodInfo] = {}
    for turn in range(120):
        waiting = list(clusters[0].pending)
        if waiting and random.random() < 0.4:
            uid = random.choice(waiting)
        else:
            uid = f"new-{turn}"
            pod = _guarded(random, uid, plain=plain, priority=random.randrange(2, 5))
            for each in clusters:
                each.add_pending(pod)
        decision, expected = [each.schedule_one(each.pending[uid]) for each in clusters]
        assert comparable(expected) == comparable(decision)
        gone = [leaving.pop(name) for name in [*leaving] if random.random() < 0.1]
        for each in clusters:
            if isinstance(decision, Placed):
                each.bind(each.pending[uid], decision.node_name)
            elif isinstance(decision, Rejected) and decision.nominated_node_name:
                each.nominate(each.pending[uid], decision.nominated_node_name)
                leaving |= {victim.uid: victim for victim in decision.victims}
            for victim in gone:
                each.evict(victim)
        leaving = {name: victim for name, victim in leaving.items() if victim not in gone}
