# ruff: noqa: N806 - S is a state, as in docs/model.md
"""The filters, with a table each."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kubesched.api.core import Node, Pod
from kubesched.testing.builders import make_node, make_pod

from .clusters import GPU, HOST, ZONE, Json, label, near, require_nodes, required, taint
from .filters import Filter_1, Filter_2, Filter_3, Filter_4, Filter_5, Left, Request
from .state import Objects

NOTHING = Objects()


def _init(cpu: str) -> Json:
    return {"name": f"i{cpu}", "image": "i", "resources": {"requests": {"cpu": cpu}}}


# 1.


@pytest.mark.parametrize(
    ("unschedulable", "tolerations", "expected"),
    [
        pytest.param(False, [], True, id="schedulable"),
        pytest.param(True, [], False, id="cordoned"),
        pytest.param(True, [{"operator": "Exists"}], True, id="all is tolerated"),
        pytest.param(
            True,
            [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
            True,
            id="the cordon is tolerated",
        ),
        pytest.param(True, [{"key": "other", "operator": "Exists"}], False, id="something else is"),
    ],
)
def test_schedulability(unschedulable: bool, tolerations: list[Json], expected: bool) -> None:
    """A cordoned node takes only pods that tolerate it."""
    n = make_node(unschedulable=unschedulable)
    assert expected == Filter_1(make_pod(tolerations=tolerations), n, NOTHING)


# 2.


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        pytest.param(make_pod(), {}, id="nothing"),
        pytest.param(make_pod(requests={"cpu": "1500m"}), {"cpu": Fraction(3, 2)}, id="one"),
        pytest.param(
            make_pod(containers=[_init("1"), _init("500m")]), {"cpu": Fraction(3, 2)}, id="sum"
        ),
        pytest.param(
            make_pod(init_containers=[_init("1"), _init("2")], requests={"cpu": "500m"}),
            {"cpu": 2},
            id="the most of the init containers",
        ),
        pytest.param(
            make_pod(init_containers=[_init("1")], requests={"cpu": 3, "memory": "1Ki"}),
            {"cpu": 3, "memory": 1024},
            id="resource by resource",
        ),
    ],
)
def test_requests_of_a_pod(p: Pod, expected: dict[str, Fraction]) -> None:
    """The sum over the containers, or the maximum of the init containers."""
    assert expected == Request(p)


FULL_OF_2 = Objects.of(
    [
        make_node("n", allocatable={"cpu": 4, "pods": 3, GPU: 1}),
        make_pod("q1", node_name="n", requests={"cpu": "1500m"}),
        make_pod("q2", node_name="n", requests={"cpu": 1, GPU: 1}),
        make_pod("waiting", requests={"cpu": 1}),
        make_pod("elsewhere", node_name="m", requests={"cpu": 1}),
    ]
)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({}, True, id="a slot"),
        pytest.param({"cpu": "1500m"}, True, id="just fits"),
        pytest.param({"cpu": "1501m"}, False, id="just not"),
        pytest.param({GPU: 1}, False, id="all taken"),
        pytest.param({GPU: 0}, True, id="none of what is all taken"),
        pytest.param({"example.com/other": 1}, False, id="the node has none"),
        pytest.param({"cpu": 1, GPU: 1}, False, id="one of two"),
    ],
)
def test_resources(requests: dict[str, str | int], expected: bool) -> None:
    """A node's free amounts are its own minus the requests of the pods bound to it."""
    n = FULL_OF_2.nodes["n"]
    assert expected == Filter_2(make_pod(requests=requests), n, FULL_OF_2)


def test_pod_slots() -> None:
    """Without a free slot nothing fits, however little is requested."""
    S = FULL_OF_2.put(make_pod("q3", node_name="n"))
    left = Left(S.nodes["n"], S)
    assert [Fraction(0), Fraction(3, 2), Fraction(0)] == [left["pods"], left["cpu"], left[GPU]]
    assert not Filter_2(make_pod(), S.nodes["n"], S)


def test_overcommitted_resources() -> None:
    """They do not matter to a pod that requests none of them."""
    S = FULL_OF_2.put(make_node("n", allocatable={"cpu": 1, "pods": 9}))
    assert Filter_2(make_pod(requests={"memory": 1}), S.nodes["n"], S)
    assert not Filter_2(make_pod(requests={"cpu": "1m"}), S.nodes["n"], S)


# 3.


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, True, id="none"),
        pytest.param({}, True, id="empty"),
        pytest.param({"zone": "a"}, True, id="equal"),
        pytest.param({"zone": "b"}, False, id="another value"),
        pytest.param({"zone": "a", "disk": "ssd"}, False, id="one of two"),
        pytest.param({"disk": ""}, False, id="absent is not empty"),
    ],
)
def test_node_selector(selector: dict[str, str] | None, expected: bool) -> None:
    """The node must have every label with its value."""
    n = make_node(labels={"zone": "a"})
    assert expected == Filter_3(make_pod(node_selector=selector), n, NOTHING)


# 4.

RED = taint("team", "red")
TOLERATES_RED = {"key": "team", "operator": "Equal", "value": "red", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([], [], True, id="no taint"),
        pytest.param([RED], [], False, id="no toleration"),
        pytest.param([RED], [TOLERATES_RED], True, id="equal"),
        pytest.param([RED], [{**TOLERATES_RED, "operator": ""}], True, id="equal is the default"),
        pytest.param([RED], [{**TOLERATES_RED, "value": "blue"}], False, id="another value"),
        pytest.param([RED], [{**TOLERATES_RED, "effect": "NoExecute"}], False, id="another effect"),
        pytest.param([RED], [{**TOLERATES_RED, "effect": ""}], True, id="every effect"),
        pytest.param([RED], [{**TOLERATES_RED, "key": "owner"}], False, id="another key"),
        pytest.param([RED], [{"key": "team", "operator": "Exists"}], True, id="exists"),
        pytest.param([RED], [{"key": "owner", "operator": "Exists"}], False, id="another exists"),
        pytest.param([RED], [{"operator": "Exists"}], True, id="every key"),
        pytest.param([RED], [{**TOLERATES_RED, "operator": "Like"}], False, id="unknown operator"),
        pytest.param([RED, taint("old")], [TOLERATES_RED], False, id="one of two"),
        pytest.param([taint("old", effect="NoExecute")], [], False, id="no execute"),
        pytest.param([taint("old", effect="PreferNoSchedule")], [], True, id="only a preference"),
    ],
)
def test_taints(taints: list[Json], tolerations: list[Json], expected: bool) -> None:
    """Every taint is matched by some toleration."""
    assert expected == Filter_4(
        make_pod(tolerations=tolerations), make_node(taints=taints), NOTHING
    )


# 5. Nodes.


@pytest.mark.parametrize(
    ("operator", "values", "matching"),
    [
        pytest.param("In", ("2", "x"), ["two", "word"], id="In"),
        pytest.param("NotIn", ("2", "x"), ["ten", "minus", "none"], id="NotIn"),
        pytest.param("Exists", (), ["two", "ten", "minus", "word"], id="Exists"),
        pytest.param("DoesNotExist", (), ["none"], id="DoesNotExist"),
        pytest.param("Gt", ("2",), ["ten"], id="Gt compares numbers"),
        pytest.param("Lt", ("3",), ["two", "minus"], id="Lt compares numbers"),
    ],
)
def test_operators(operator: str, values: tuple[str, ...], matching: list[str]) -> None:
    """The six operators on a label, and on its absence."""
    ranks = {"two": "2", "ten": "10", "minus": "-1", "word": "x"}
    nodes = [make_node(name, labels={"rank": rank}) for name, rank in ranks.items()]
    p = make_pod(node_affinity=require_nodes([label("rank", operator, *values)]))
    found = [n.metadata.name for n in (*nodes, make_node("none")) if Filter_5(p, n, NOTHING)]
    assert matching == found


ZONE_A, ZONE_B, FAST = label("zone", "In", "a"), label("zone", "In", "b"), label("fast", "Exists")


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(None, True, id="none"),
        pytest.param({}, True, id="nothing required"),
        pytest.param(require_nodes([ZONE_A]), True, id="matches"),
        pytest.param(require_nodes([ZONE_B]), False, id="does not"),
        pytest.param(require_nodes([ZONE_B], [ZONE_A]), True, id="one of two terms"),
        pytest.param(require_nodes([ZONE_A, FAST]), False, id="one of two requirements"),
        pytest.param(require_nodes([]), False, id="an empty term matches nothing"),
        pytest.param(require_nodes(), False, id="no term"),
    ],
)
def test_node_affinity(affinity: Json | None, expected: bool) -> None:
    """Some term matches, with every requirement."""
    n = make_node(labels={"zone": "a"})
    assert expected == Filter_5(make_pod(node_affinity=affinity), n, NOTHING)


def test_node_affinity_by_name() -> None:
    """A term may match the node's name."""
    term = {"matchFields": [label("metadata.name", "In", "b")]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    p = make_pod(node_affinity=affinity)
    assert [False, True] == [Filter_5(p, make_node(name), NOTHING) for name in "ab"]


# 5. Pods. Nodes a1 and a2 are in zone a, b1 in zone b, and x1 in none.

NODES = [
    make_node(name, labels={HOST: name, **({ZONE: name[0]} if name != "x1" else {})})
    for name in ("a1", "a2", "b1", "x1")
]
WEB_ON_A1 = make_pod("web", labels={"app": "web"}, node_name="a1")
DB_ON_B1 = make_pod("db", labels={"app": "db"}, node_name="b1")
BOTH_ON_B1 = make_pod("both", labels={"app": "web", "tier": "front"}, node_name="b1")
WEB_ON_X1 = make_pod("web-x", labels={"app": "web"}, node_name="x1")
WEB_WAITS = make_pod("web-waits", labels={"app": "web"})
WEB_OF_OTHERS = make_pod("web", namespace="other", labels={"app": "web"}, node_name="a1")
FRONT = {"labelSelector": {"matchLabels": {"tier": "front"}}, "topologyKey": ZONE}
AVOIDS_WEB = make_pod("loner", node_name="a1", pod_anti_affinity=required(near("web")))
ANY = {"labelSelector": {}, "topologyKey": ZONE}
NONE = {"topologyKey": ZONE}


def _where(p: Pod, *others: Pod) -> list[str]:
    S = Objects.of([*NODES, *others, p])
    return [name for name, n in S.nodes.items() if Filter_5(p, n, S)]


EVERYWHERE = ["a1", "a2", "b1", "x1"]


@pytest.mark.parametrize(
    ("affinity", "others", "expected"),
    [
        pytest.param(required(near("web")), [WEB_ON_A1], ["a1", "a2"], id="zone"),
        pytest.param(required(near("web", HOST)), [WEB_ON_A1], ["a1"], id="host"),
        pytest.param(required(near("web")), [DB_ON_B1], [], id="nobody"),
        pytest.param(required(near("web")), [WEB_WAITS], [], id="nobody bound"),
        pytest.param(required(near("web")), [WEB_ON_X1], [], id="only on a node without domain"),
        pytest.param(required(near("web")), [WEB_OF_OTHERS], [], id="of another namespace"),
        pytest.param(
            required(near("web", namespaces=["other"])), [WEB_OF_OTHERS], ["a1", "a2"], id="named"
        ),
        pytest.param(
            required(near("web", namespaceSelector={})), [WEB_OF_OTHERS], ["a1", "a2"], id="any"
        ),
        pytest.param(required(ANY), [DB_ON_B1], ["b1"], id="an empty selector selects all"),
        pytest.param(required(NONE), [DB_ON_B1], [], id="no selector selects nothing"),
        pytest.param(
            required(near("web"), FRONT), [WEB_ON_A1, BOTH_ON_B1], ["b1"], id="all terms, one pod"
        ),
        pytest.param(
            required(near("web"), near("db")), [WEB_ON_A1, DB_ON_B1], [], id="not one pod each"
        ),
    ],
)
def test_pod_affinity(affinity: Json, others: list[Pod], expected: list[str]) -> None:
    """The domain of each term has a pod that matches all of the terms."""
    assert expected == _where(make_pod(labels={"app": "own"}, pod_affinity=affinity), *others)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param([], ["a1", "a2", "b1"], id="nobody"),
        pytest.param([WEB_ON_X1], ["a1", "a2", "b1"], id="only outside of all domains"),
        pytest.param([WEB_OF_OTHERS], ["a1", "a2", "b1"], id="only in another namespace"),
        pytest.param([WEB_ON_A1], ["a1", "a2"], id="somebody"),
    ],
)
def test_the_first_pod_of_its_kind(others: list[Pod], expected: list[str]) -> None:
    """A pod with affinity to itself may be the first, on a node with a domain."""
    p = make_pod(labels={"app": "web"}, pod_affinity=required(near("web")))
    assert expected == _where(p, *others)


@pytest.mark.parametrize(
    ("anti_affinity", "others", "expected"),
    [
        pytest.param(required(near("web")), [WEB_ON_A1], ["b1", "x1"], id="zone"),
        pytest.param(required(near("web", HOST)), [WEB_ON_A1], ["a2", "b1", "x1"], id="host"),
        pytest.param(required(near("web")), [WEB_ON_X1], EVERYWHERE, id="outside of all domains"),
        pytest.param(
            required(near("web"), near("db")), [WEB_ON_A1, DB_ON_B1], ["x1"], id="each term"
        ),
        pytest.param(None, [AVOIDS_WEB], ["b1", "x1"], id="another avoids it"),
        pytest.param(None, [WEB_ON_A1], EVERYWHERE, id="nobody minds"),
    ],
)
def test_pod_anti_affinity(
    anti_affinity: Json | None, others: list[Pod], expected: list[str]
) -> None:
    """Terms count in both directions."""
    p = make_pod(labels={"app": "web"}, pod_anti_affinity=anti_affinity)
    assert expected == _where(p, *others)


def test_a_pod_does_not_avoid_itself() -> None:
    """It may avoid its own kind and be placed where none is."""
    p = make_pod(labels={"app": "web"}, pod_anti_affinity=required(near("web")))
    assert EVERYWHERE == _where(p)
    assert ["b1", "x1"] == _where(p, WEB_ON_A1)


def test_an_unknown_operator_is_an_error() -> None:
    """The model has six operators."""
    n: Node = make_node(labels={"zone": "a"})
    p = make_pod(node_affinity=require_nodes([label("zone", "Like", "a")]))
    with pytest.raises(ValueError, match="Like"):
        Filter_5(p, n, NOTHING)
