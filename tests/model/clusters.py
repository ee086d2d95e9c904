# ruff: noqa: N803, N806 - S and T are states, as in docs/model.md
"""Small clusters for the model: made at random, and put before the real scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.cluster import Cluster
from kubesched.snapshot.objects import KubernetesObject
from kubesched.testing.builders import make_node, make_pod

from .ratings import NodeAffinityRating, PodAffinityRating, Rating, Ratings, TaintRating
from .state import Objects

ZONE: Final = "zone"
HOST: Final = "host"
GPU: Final = "example.com/gpu"

Json: TypeAlias = "Mapping[str, object]"

_GATES: Final = FeatureGates({})
_RATED_BY: Final[Mapping[Rating, str]] = {
    TaintRating: "TaintToleration",
    NodeAffinityRating: "NodeAffinity",
    PodAffinityRating: "InterPodAffinity",
}


def make_cluster(
    items: Iterable[KubernetesObject],
    ratings: Ratings,
    *,
    seed: int = 0,
    percentage: int = 100,
) -> Cluster:
    """Return the real thing: all default plugins, but rated only by what the model rates by."""
    scores = [{"name": _RATED_BY[rating], "weight": weight} for weight, rating in ratings]
    configuration = load_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": percentage,
            "profiles": [
                {"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": scores}}},
            ],
        },
        _GATES,
    )
    cluster = Cluster(configuration, in_tree_registry(), _GATES, seed=seed)
    cluster.load(items)
    return cluster


# What pods and nodes are made of.


def near(app: str, domain: str = ZONE, **more: object) -> Json:
    """Return a pod affinity term on pods of an app."""
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
    """Return a node affinity: one of the terms must hold, each of them on labels."""
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
    """Return the labels of a node; what is empty is left out."""
    labels = {HOST: name, ZONE: zone, "rank": rank}
    return {each: value for each, value in labels.items() if value}


def nodes(name: str) -> st.SearchStrategy[Node]:
    """Make a node of that name."""
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
        st.sampled_from(_TAINTS),
        st.sampled_from([False] * 7 + [True]),
        st.sampled_from([4, 2, 1]),
        st.sampled_from([8, 3, 2, 1]),
        st.sampled_from([0, 1, 2]),
    )


def pods(
    name: str, places: Sequence[str] = ("",), promises: Sequence[str] = ("",)
) -> st.SearchStrategy[Pod]:
    """Make a pod of that name, bound to one of the places, or waiting and perhaps promised one."""

    def make(place: str, promise: str, start: str | None, fields: dict[str, object]) -> Pod:
        bound = {"node_name": place, "start_time": start}
        return make_pod(name, **fields, **(bound if place else {"nominated_node_name": promise}))  # type: ignore[arg-type]  # the keywords are TypedDict's

    return st.builds(
        make,
        st.sampled_from(places),
        st.sampled_from(promises),
        st.sampled_from(_STARTS),
        st.fixed_dictionaries(
            {
                "namespace": st.sampled_from(["default"] * 4 + ["other"]),
                "labels": st.sampled_from([{"app": "web"}, {"app": "db"}, {}]),
                "priority": st.sampled_from([0, 1, 5, -3, None]),
                "requests": st.sampled_from(
                    [{"cpu": 1}, {"cpu": 2}, {"cpu": "500m"}, {}, {"cpu": 1, GPU: 1}, {"cpu": 0}]
                ),
                "init_containers": st.sampled_from(
                    [(), (), (), (_init("2"),), (_init("500m"), _init("1500m"))]
                ),
                "node_selector": st.sampled_from([None, None, None, {}, {ZONE: "a"}]),
                "tolerations": st.sampled_from(_TOLERATIONS),
                "node_affinity": st.sampled_from(_NODE_AFFINITIES),
                "pod_affinity": st.sampled_from(_POD_AFFINITIES),
                "pod_anti_affinity": st.sampled_from(_POD_ANTI_AFFINITIES),
            }
        ),
    )


def _init(cpu: str) -> Json:
    return {"name": f"init-{cpu}", "image": "i", "resources": {"requests": {"cpu": cpu}}}


@st.composite
def states(draw: st.DrawFn, *, pods_max: int = 8, with_promises: bool = False) -> Objects:
    """Make up to 5 nodes and, besides the pod `p` that waits, up to `pods_max` - 1 others."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 5)))]
    promises = ("", *names) if with_promises else ("",)
    items: list[object] = [draw(nodes(name)) for name in names]
    for number in range(draw(st.integers(0, pods_max - 1))):
        places = (*names, *names, "")
        items.append(draw(pods(f"q{number}", places, promises)))
    items.append(draw(pods("p", promises=promises)))
    return Objects.of(items)


def weights() -> st.SearchStrategy[Ratings]:
    """Make weights for what the model rates by, each of it once or not at all."""
    rated = list(_RATED_BY)
    return st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from(rated)),
        max_size=len(rated),
        unique_by=lambda pair: _RATED_BY[pair[1]],
    ).map(tuple)
