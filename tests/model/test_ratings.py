# ruff: noqa: N806 - N is a set of nodes, as in docs/model.md
"""The ratings, with a table each, and their weighted sum."""

from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from kubesched.testing.builders import make_node, make_pod

from .clusters import HOST, ZONE, Json, label, near, prefer_nodes, preferred, required, taint
from .ratings import (
    NodeAffinityRating,
    PodAffinityRating,
    PreferredNodeAffinity,
    PreferredPodAffinity,
    SoftTaints,
    TaintRating,
    Viability,
)
from .state import Objects

ZONE_A, FAST = label("zone", "In", "a"), label("fast", "Exists")


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(None, [0, 0, 0], id="nothing preferred"),
        pytest.param(prefer_nodes((10, ZONE_A)), [10, 10, 0], id="one term"),
        pytest.param(prefer_nodes((10, ZONE_A), (5, FAST)), [15, 10, 0], id="terms add up"),
    ],
)
def test_preferred_node_affinity(affinity: Json | None, expected: list[int]) -> None:
    """The weights of matching terms, in proportion to the best node."""
    nodes = [make_node("a", labels={ZONE: "a", "fast": ""}), make_node("b", labels={ZONE: "a"})]
    N = [*nodes, make_node("c")]
    p = make_pod(node_affinity=affinity)
    assert expected == [PreferredNodeAffinity(p, n) for n in N]
    rated = [NodeAffinityRating(p, n, Objects.of(N), N) for n in N]
    most = max(expected)
    assert [100 * worth // most if most else 0 for worth in expected] == rated


NODES = [make_node(name, labels={ZONE: name[0], HOST: name}) for name in ("a1", "a2", "b1")]
WEB = [make_pod(f"web{k}", labels={"app": "web"}, node_name="a1") for k in range(2)]
LIKES_WEB = make_pod("fan", node_name="b1", pod_affinity=preferred(7, near("web")))
SHUNS_WEB = make_pod("foe", node_name="b1", pod_anti_affinity=preferred(7, near("web")))
NEEDS_WEB = make_pod("kin", node_name="b1", pod_affinity=required(near("web")))


@pytest.mark.parametrize(
    ("affinity", "anti_affinity", "others", "expected"),
    [
        pytest.param(preferred(10, near("web")), None, [WEB[0]], [10, 10, 0], id="near one"),
        pytest.param(preferred(10, near("web")), None, WEB, [20, 20, 0], id="near two"),
        pytest.param(None, preferred(10, near("web", HOST)), WEB, [-20, 0, 0], id="far from two"),
        pytest.param(None, None, [LIKES_WEB], [0, 0, 7], id="liked"),
        pytest.param(None, None, [SHUNS_WEB], [0, 0, -7], id="shunned"),
        pytest.param(None, None, [NEEDS_WEB], [0, 0, 1], id="needed"),
        pytest.param(None, None, WEB, [0, 0, 0], id="indifferent"),
    ],
)
def test_preferred_pod_affinity(
    affinity: Json | None, anti_affinity: Json | None, others: list[Pod], expected: list[int]
) -> None:
    """The weights of the terms for every pod in reach, the pod's own and the others'."""
    p = make_pod(labels={"app": "web"}, pod_affinity=affinity, pod_anti_affinity=anti_affinity)
    S = Objects.of([*NODES, *others, p])
    assert expected == [PreferredPodAffinity(p, n, S) for n in NODES]
    rated = [PodAffinityRating(p, n, S, NODES) for n in NODES]
    least, most = min(expected), max(expected)
    spread = most - least
    assert [100 * (worth - least) // spread if spread else 0 for worth in expected] == rated


def test_soft_taints() -> None:
    """The fewer the better, in proportion to the worst node."""
    soft = [taint(key, effect="PreferNoSchedule") for key in "abcd"]
    N = [make_node(str(count), taints=soft[:count]) for count in range(5)]
    p = make_pod(tolerations=[{"key": "a", "operator": "Exists"}])
    assert [0, 0, 1, 2, 3] == [SoftTaints(p, n) for n in N]
    assert [100, 100, 67, 34, 0] == [TaintRating(p, n, Objects.of(N), N) for n in N]


def test_viability() -> None:
    """The weighted sum of the ratings, compared within the feasible nodes."""
    N = [
        make_node("a", labels={ZONE: "a"}, taints=[taint("old", effect="PreferNoSchedule")]),
        make_node("b"),
    ]
    p, S = make_pod(node_affinity=prefer_nodes((1, ZONE_A))), Objects.of(N)
    assert [200, 300] == [Viability(p, n, S, N) for n in N]
    heavier = ((1, TaintRating), (2, NodeAffinityRating))
    assert [200, 100] == [Viability(p, n, S, N, heavier) for n in N]
    assert [0, 0] == [Viability(p, n, S, N, ()) for n in N]
