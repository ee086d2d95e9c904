# ruff: noqa: N806 - S, T and N are sets, as in docs/model.md
"""Nine nodes without a GPU, six with: pods that need one are placed there, others are not."""

from __future__ import annotations

from typing import Final

import pytest

from kubesched.api.core import Node, Pod
from kubesched.scheduler.decision import Placed
from kubesched.testing.builders import make_node, make_pod

from .clusters import Json, label, make_cluster, prefer_nodes, require_nodes, taint
from .model import Feasible, Scheduler, SchedulingEnabled, Step, Viable
from .ratings import RATINGS
from .refinement import allows
from .state import Objects, Unbound, key

KINDS: Final = ("none", "gpu")


def _node(kind: str, number: int, slots: int, *, tainted: bool) -> Node:
    return make_node(
        f"{kind}-{number}",
        labels={"gpu": "yes"} if kind == "gpu" else {},
        taints=[taint("kind", kind)] if tainted else [],
        allocatable={"pods": slots},
    )


def _pod(kind: str, number: int, way: str) -> Pod:
    with_gpu = label("gpu", "Exists" if kind == "gpu" else "DoesNotExist")
    affinity: dict[str, Json] = {
        "affinity": require_nodes([with_gpu]),
        "ratings": prefer_nodes((1, with_gpu)),
    }
    tolerates = {"key": "kind", "operator": "Equal", "value": kind, "effect": "NoSchedule"}
    return make_pod(
        f"{kind}-{number}",
        labels={"kind": kind},
        node_affinity=affinity.get(way),
        tolerations=[tolerates] if way == "taints" else [],
    )


def _cluster(way: str, plain: int = 18, gpu: int = 12, slots: int = 2) -> Objects:
    """Return nodes with so many slots each, and so many pods of each kind."""
    tainted = way == "taints"
    nodes = [_node("none", k, slots, tainted=tainted) for k in range(9)]
    nodes += [_node("gpu", k, slots, tainted=tainted) for k in range(6)]
    pods = [_pod("none", k, way) for k in range(plain)] + [_pod("gpu", k, way) for k in range(gpu)]
    return Objects.of([*nodes, *pods])


def _kind(item: Node | Pod) -> str:
    return item.metadata.name.partition("-")[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("way", "is_hard"),
    [
        pytest.param("taints", True, id="taints and tolerations"),
        pytest.param("affinity", True, id="node affinity"),
        pytest.param("ratings", False, id="ratings alone"),
    ],
)
def test_which_nodes_are_feasible_and_viable(way: str, is_hard: bool, kind: str) -> None:
    """By taints or affinity only nodes of the pod's kind are feasible; by ratings, viable."""
    S = _cluster(way)
    p = S.pods[f"default/{kind}-0"]
    own = [n for n in S.Nodes if _kind(n) == kind]
    assert {"none": 9, "gpu": 6}[kind] == len(own)
    assert (own if is_hard else [*S.Nodes]) == [n for n in S.Nodes if Feasible(p, n, S)]
    assert own == Viable(p, S)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["taints", "affinity", "ratings"])
def test_the_model_places_all_pods_on_their_kind_of_node(way: str) -> None:
    """Step by step, until the last slot is taken."""
    S = _cluster(way, plain=9, gpu=6, slots=1)
    while waiting := Unbound(S):
        p = waiting[-1]
        n = Viable(p, S)[-1]
        T = S.bind(p, n)
        assert _kind(n) == _kind(p)
        assert Step.scheduling(p, n) == allows(S, T)
        S = T
    assert all(_kind(S.nodes[p.spec.node_name]) == _kind(p) for p in S.Pods)


@pytest.mark.parametrize("way", ["taints", "affinity", "ratings"])
def test_the_real_scheduler_does_the_same(way: str) -> None:
    """Each of its placements is a step of the page's scheduler."""
    S = _cluster(way, plain=10, gpu=8)
    cluster = make_cluster(S, RATINGS)
    for info in [*cluster.pending.values()]:
        decision = cluster.schedule_one(info)
        assert isinstance(decision, Placed)
        cluster.bind(info, decision.node_name)
        p, n = S.pods[info.key], S.nodes[decision.node_name]
        T = S.bind(p, n)
        assert _kind(n) == _kind(p)
        assert Step.scheduling(p, n) == Scheduler(S, T)
        S = T
    assert [] == Unbound(S)


def test_without_configuration_all_nodes_are_equal() -> None:
    """Every node is viable."""
    S = _cluster("nothing")
    assert all([*S.Nodes] == Viable(S.pods[f"default/{kind}-0"], S) for kind in KINDS)


@pytest.mark.parametrize(
    ("way", "waits"),
    [
        pytest.param("taints", True, id="taints and tolerations"),
        pytest.param("affinity", True, id="node affinity"),
        pytest.param("ratings", False, id="ratings alone"),
    ],
)
def test_when_the_other_nodes_are_full(way: str, waits: bool) -> None:
    """One pod too many for the nine nodes: it waits, or by ratings alone it uses a GPU node."""
    S = _cluster(way, plain=10, gpu=0, slots=1)
    last = S.pods["default/none-9"]
    for p in Unbound(S):
        if key(p) != key(last):
            S = S.bind(p, Viable(p, S)[0])
    assert waits == (not SchedulingEnabled(last, S))
    assert waits == (Scheduler(S, S) == Step("Unchanged", key(last)))
    cluster = make_cluster(S, RATINGS)
    decision = cluster.schedule_one(cluster.pending[last.metadata.uid])
    assert waits == (not isinstance(decision, Placed))
