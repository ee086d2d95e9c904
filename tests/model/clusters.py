"""Small random clusters for the model and the real scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, TypeAlias, TypeVar

from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import Configuration
from kubesched.plugins.registry import in_tree_registry, in_tree_setup
from kubesched.simulator.cluster import ClusterState
from kubesched.testing.builders import make_node, make_pod

from .ratings import NodeAffinityRating, PodAffinityRating, Rating, Ratings, TaintRating
from .state import Objects

ZONE: Final = "zone"
HOST: Final = "host"
GPU: Final = "example.com/gpu"

Json: TypeAlias = "Mapping[str, object]"
Item = TypeVar("Item")

GATES: Final = FeatureGates({})
REGISTRY: Final = in_tree_registry()
_PLUGINS: Final = (
    "PrioritySort",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "InterPodAffinity",
    "DefaultPreemption",
    "DefaultBinder",
)
_RATED_BY: Final[Mapping[Rating, str]] = {
    TaintRating: "TaintToleration",
    NodeAffinityRating: "NodeAffinity",
    PodAffinityRating: "InterPodAffinity",
}


def make_cluster(
    items: Iterable[KubeObject],
    ratings: Ratings,
    *,
    seed: int = 0,
    percentage: int = 100,
) -> ClusterState:
    """Return a cluster with those default plugins that the model has."""
    cluster = ClusterState(in_tree_setup(GATES, configuration_of(ratings, percentage)), seed=seed)
    cluster.load(items)
    return cluster


@cache
def configuration_of(ratings: Ratings, percentage: int = 100) -> Configuration:
    """Return a configuration with those default plugins that the model has."""
    scores = [{"name": _RATED_BY[rating], "weight": weight} for weight, rating in ratings]
    every = _named(["*"])
    return load_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": percentage,
            "profiles": [
                {
                    "plugins": {
                        "multiPoint": {"disabled": every, "enabled": _named(_PLUGINS)},
                        "score": {"disabled": every, "enabled": scores},
                    }
                },
            ],
        },
        GATES,
    )


def _named(plugins: Iterable[str]) -> list[Json]:
    return [{"name": plugin} for plugin in plugins]


# What pods and nodes are made of.


def near(app: str, domain: str = ZONE, **more: object) -> Json:
    """Return a pod affinity term for pods of an app."""
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": domain, **more}


def required(*terms: Json) -> Json:
    """Return a pod affinity, or anti-affinity, that requires the terms."""
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def preferred(weight: int, term: Json) -> Json:
    """Return a pod affinity, or anti-affinity, that prefers the term."""
    weighted = {"weight": weight, "podAffinityTerm": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}


def label(name: str, operator: str, *values: str) -> Json:
    """Return a requirement on a label."""
    return {"key": name, "operator": operator, "values": list(values)}


def require_nodes(*terms: Sequence[Json]) -> Json:
    """Return a node affinity with terms on labels, one of which must match."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": selector}


def prefer_nodes(*terms: tuple[int, Json]) -> Json:
    """Return a node affinity that prefers nodes with labels."""
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "preference": {"matchExpressions": [term]}} for weight, term in terms
        ]
    }


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Json:
    """Return a taint."""
    return {"key": key, "value": value, "effect": effect}


def _init(cpu: str) -> Json:
    return {"name": f"init-{cpu}", "image": "i", "resources": {"requests": {"cpu": cpu}}}


# At random. The first of each list is the usual case, and what shrinking leads to.

_TAINTS: Final = (
    (),
    (),
    (taint("team", "red"),),
    (taint("team", "red", "PreferNoSchedule"),),
    (taint("team", "blue", "NoExecute"), taint("old", "", "PreferNoSchedule")),
)
_TOLERATIONS: Final = (
    (),
    (),
    ({"key": "team", "operator": "Equal", "value": "red", "effect": "NoSchedule"},),
    ({"key": "team", "operator": "Exists"},),
    ({"operator": "Exists"},),
    ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},),
    ({"key": "team", "value": "red"},),
)
_NODE_AFFINITIES: Final = (
    None,
    None,
    None,
    None,
    require_nodes([label(ZONE, "In", "a", "b")], [label("rank", "Gt", "1")]),
    require_nodes([label(ZONE, "NotIn", "a"), label("rank", "Lt", "10")]),
    require_nodes([label(ZONE, "Exists")]),
    require_nodes([label("rank", "DoesNotExist")], []),
    prefer_nodes((1, label(ZONE, "In", "a")), (70, label("rank", "Gt", "1"))),
    prefer_nodes((99, label(ZONE, "In", "a")), (100, label(ZONE, "Exists"))),
)
_POD_AFFINITIES: Final = (
    None,
    None,
    None,
    None,
    required(near("web")),
    required(near("db", HOST)),
    required(near("web"), near("web", HOST)),
    required(near("web"), near("db")),
    preferred(10, near("web")),
    preferred(29, near("db", HOST)),
)
_POD_ANTI_AFFINITIES: Final = (
    None,
    None,
    None,
    None,
    required(near("web", HOST)),
    required(near("db"), near("web", HOST, namespaces=["other"])),
    preferred(71, near("web", HOST)),
    preferred(10, near("db", ZONE, namespaceSelector={})),
)
_STARTS: Final = (None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")


def node_labels(name: str, zone: str, rank: str) -> dict[str, str]:
    """Return the labels of a node, without empty values."""
    labels = {HOST: name, ZONE: zone, "rank": rank}
    return {each: value for each, value in labels.items() if value}


@cache
def nodes(name: str, *, plain: bool = False) -> st.SearchStrategy[Node]:
    """Make a node of that name; a plain one takes any pod that it has room for."""
    return st.builds(
        lambda zone, rank, taints, unschedulable, cpu, pods, gpu: make_node(
            name,
            labels=node_labels(name, zone, rank),
            taints=taints,
            unschedulable=unschedulable,
            allocatable={"cpu": cpu, "pods": pods, **({GPU: gpu} if gpu else {})},
        ),
        st.sampled_from(["a", "b", ""]),
        st.sampled_from(["1", "2", "11", "x", ""]),
        st.just(()) if plain else st.sampled_from(_TAINTS),
        st.just(value=False) if plain else st.sampled_from([False] * 7 + [True]),
        st.sampled_from([4, 2, 1]),
        st.sampled_from([8, 3, 2, 1]),
        st.sampled_from([0, 1, 2]),
    )


_REQUESTS: Final[tuple[Mapping[str, str | int], ...]] = (
    {"cpu": 1},
    {"cpu": 2},
    {"cpu": "500m"},
    {},
    {"cpu": 1, GPU: 1},
    {"cpu": 0},
)
_PLAIN: Final = {
    "labels": st.sampled_from([{"app": "web"}, {"app": "db"}, {}]),
    "requests": st.sampled_from(_REQUESTS),
    "pod_anti_affinity": st.sampled_from(_POD_ANTI_AFFINITIES),
}
_FANCY: Final = {
    **_PLAIN,
    "namespace": st.sampled_from(["default"] * 4 + ["other"]),
    "init_containers": st.sampled_from(
        [(), (), (), (_init("2"),), (_init("500m"), _init("1500m"))]
    ),
    "node_selector": st.sampled_from([None, None, None, {}, {ZONE: "a"}]),
    "tolerations": st.sampled_from(_TOLERATIONS),
    "node_affinity": st.sampled_from(_NODE_AFFINITIES),
    "pod_affinity": st.sampled_from(_POD_AFFINITIES),
}


@cache
def pods(
    name: str,
    places: tuple[str, ...] = ("",),
    nominations: tuple[str, ...] = ("",),
    priorities: tuple[int | None, ...] = (0, 1, 5, -3, None),
    *,
    plain: bool = False,
) -> st.SearchStrategy[Pod]:
    """Make a pod of that name, bound to one of the places, or waiting and perhaps nominated to one.

    A plain one is not choosy about nodes.
    """

    def make(place: str, nominated: str, start: str | None, fields: dict[str, object]) -> Pod:
        bound = {"node_name": place, "start_time": start}
        fields = {**fields, **(bound if place else {"nominated_node_name": nominated})}
        return make_pod(name, **fields)  # type: ignore[arg-type]  # the keywords are TypedDict's

    fields = {**(_PLAIN if plain else _FANCY), "priority": st.sampled_from(priorities)}
    return st.builds(
        make,
        st.sampled_from(places),
        st.sampled_from(nominations),
        st.sampled_from(_STARTS),
        st.fixed_dictionaries(fields),
    )


def pick(items: Iterable[Item], which: int) -> Item:
    """Return an item, which one depends on any number; there is at least one."""
    items = list(items)
    return items[which % len(items)]


@st.composite
def states(draw: st.DrawFn, *, plain: bool = False) -> Objects:
    """Draw up to 5 nodes, a pending pod `p`, and up to 7 others, most of them bound.

    In a plain cluster pods are hindered by each other only, and `p` is more important than all.
    """
    names = _NAMES[: draw(st.integers(1, 5))]
    items: list[object] = [draw(nodes(name, plain=plain)) for name in names]
    items += [
        draw(pods(f"q{number}", (*names, *names, *names, ""), plain=plain))
        for number in range(draw(st.integers(4 if plain else 0, 7)))
    ]
    items.append(draw(pods("p", priorities=(9,) if plain else (5, 5, 1, 0), plain=plain)))
    return Objects.of(items)


@st.composite
def states_with_nominations(draw: st.DrawFn) -> Objects:
    """Draw up to 3 nodes, a pending pod `p`, and others, half of which are nominated."""
    names = _NAMES[: draw(st.integers(1, 3))]
    items: list[object] = [draw(nodes(name, plain=True)) for name in names]
    for number in range(draw(st.integers(1, 6))):
        places = (*names, *("" for _ in names))
        items.append(draw(pods(f"q{number}", places, names, (5, 1, 9, 0), plain=True)))
    items.append(draw(pods("p", ("",), ("", "", *names), (5, 1), plain=draw(st.booleans()))))
    return Objects.of(items)


@st.composite
def sociable_states(draw: st.DrawFn) -> Objects:
    """Draw nodes with room for all, a pending pod `p`, and others with (anti-)affinity to it."""
    names = _NAMES[: draw(st.integers(2, 4))]
    items: list[object] = [
        make_node(name, labels=node_labels(name, draw(st.sampled_from("ab")), "1"))
        for name in names
    ]
    items += [
        draw(_sociable_pods(f"q{number}", names)) for number in range(draw(st.integers(1, 5)))
    ]
    items.append(draw(_sociable_pods("p", ("",))))
    return Objects.of(items)


@cache
def _sociable_pods(name: str, places: tuple[str, ...]) -> st.SearchStrategy[Pod]:
    return st.builds(
        lambda place, app, near_to, far_from: make_pod(
            name,
            labels={"app": app},
            node_name=place,
            pod_affinity=near_to,
            pod_anti_affinity=far_from,
        ),
        st.sampled_from(places),
        st.sampled_from(["web", "db"]),
        st.sampled_from([preferred(29, near("db", HOST)), None, required(near("web"))]),
        st.sampled_from([preferred(10, near("web")), None]),
    )


@st.composite
def crowded_states(draw: st.DrawFn) -> Objects:
    """Draw up to 3 nodes, each with two pods, of which one or both must be evicted for `p`."""
    items: list[object] = []
    for name in _NAMES[: draw(st.integers(1, 3))]:
        items.append(make_node(name, allocatable={"cpu": 2}))
        for _ in range(2):
            items.append(_equal_pod(f"q{len(items)}", name, *draw(_IMPORTANCE)))
    items.append(make_pod("p", requests={"cpu": draw(st.sampled_from([2, 2, 1]))}, priority=9))
    return Objects.of(items)


_NAMES: Final = tuple(f"n{number}" for number in range(5))
_IMPORTANCE: Final = st.tuples(st.sampled_from([1, 1, 0]), st.sampled_from(_STARTS))


def _equal_pod(name: str, place: str, priority: int, start: str | None) -> Pod:
    requests = {"cpu": 1}
    return make_pod(name, requests=requests, node_name=place, priority=priority, start_time=start)


def weights() -> st.SearchStrategy[Ratings]:
    """Draw weights for the model's ratings; each rating occurs once or not at all."""
    rated = list(_RATED_BY)
    return st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from(rated)),
        max_size=len(rated),
        unique_by=lambda pair: _RATED_BY[pair[1]],
    ).map(tuple)
