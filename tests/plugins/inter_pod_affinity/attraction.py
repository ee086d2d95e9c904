"""Terms and clusters for tests of inter-pod affinity, and a twin that answers node by node."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from hypothesis import strategies as st

from kubesched.api.core import Namespace, Node, Pod
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from tests.plugins.building import build
from tests.plugins.by_node import selects

Json: TypeAlias = "dict[str, Any]"

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
FOO: Json = {"matchLabels": {"app": "foo"}}
BAR: Json = {"matchLabels": {"app": "bar"}}
MANY: Json = {
    "matchExpressions": [{"key": "app", "operator": "In", "values": ["foo", *"abcdefghij"]}]
}


def term(selector: Json | None = FOO, key: str = "zone", **more: Any) -> Json:
    """A term as JSON; a selector of None is absent."""
    written = {"topologyKey": key, **more}
    return written if selector is None else {**written, "labelSelector": selector}


def required(*terms: Json) -> Json:
    """The required half of an affinity."""
    return {REQUIRED: list(terms)}


def preferred(*terms: tuple[int, Json]) -> Json:
    """The preferred half of an affinity."""
    return {PREFERRED: [{"weight": weight, "podAffinityTerm": term} for weight, term in terms]}


def make_namespace(name: str, **labels: str) -> Namespace:
    """A namespace."""
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)


def make_plugin(args: Json | None = None) -> InterPodAffinity:
    """Build the plugin from arguments as written."""
    return build(InterPodAffinity, args)


Pairs: TypeAlias = "dict[tuple[str, str], int]"


def count(pairs: Pairs, node: Node, term: Json, matches: bool) -> None:
    """Count a pod on the node in the domain of a term, if it matches and there is one."""
    value = node.metadata.labels.get(term["topologyKey"])
    if matches and value is not None:
        pair = (term["topologyKey"], value)
        pairs[pair] = pairs.get(pair, 0) + 1


class Twin:
    """Inter-pod affinity over plain dictionaries."""

    def __init__(self, namespaces: dict[str, dict[str, str]], hard_weight: int = 1) -> None:
        self.namespaces = namespaces
        self.hard_weight = hard_weight

    def terms(self, pod: Pod, kind: str, half: str) -> list[Json]:
        """The terms of a pod as JSON."""
        affinity = msgspec.to_builtins(pod.spec.affinity) if pod.spec.affinity else {}
        return list(affinity.get(kind, {}).get(half, []))

    def named(self, owner: Pod, term: Json) -> set[str]:
        """The namespaces a term names."""
        if not term.get("namespaces") and "namespaceSelector" not in term:
            return {owner.metadata.namespace}
        return set(term.get("namespaces", []))

    def own_matches(self, pod: Pod, term: Json, other: Pod) -> bool:
        """Whether another pod matches a term of the pod to place."""
        selector = term.get("namespaceSelector")
        names = self.named(pod, term)
        names |= {name for name, labels in self.namespaces.items() if selects(selector, labels)}
        in_reach = other.metadata.namespace in names or selects(selector, {})
        return in_reach and selects(term.get("labelSelector"), other.metadata.labels)

    def existing_matches(self, owner: Pod, term: Json, pod: Pod) -> bool:
        """Whether the pod to place matches a term of an existing pod."""
        namespace = pod.metadata.namespace
        labels = self.namespaces.get(namespace, {})
        in_reach = namespace in self.named(owner, term) or selects(
            term.get("namespaceSelector"), labels
        )
        return in_reach and selects(term.get("labelSelector"), pod.metadata.labels)

    def matches_all(self, pod: Pod, other: Pod) -> bool:
        """Whether another pod matches all required affinity of the pod to place."""
        terms = self.terms(pod, "podAffinity", REQUIRED)
        return bool(terms) and all(self.own_matches(pod, term, other) for term in terms)

    def maps(self, pod: Pod, nodes: list[Node], pods: list[Pod]) -> tuple[Pairs, Pairs, Pairs]:
        """Count by (key, value): for affinity, anti-affinity, and that of existing pods."""
        affinity: Pairs = {}
        anti: Pairs = {}
        existing: Pairs = {}
        for node in nodes:
            for other in pods:
                if other.spec.node_name == node.metadata.name:
                    for term in self.terms(other, "podAntiAffinity", REQUIRED):
                        count(existing, node, term, self.existing_matches(other, term, pod))
                    for term in self.terms(pod, "podAffinity", REQUIRED):
                        count(affinity, node, term, self.matches_all(pod, other))
                    for term in self.terms(pod, "podAntiAffinity", REQUIRED):
                        count(anti, node, term, self.own_matches(pod, term, other))
        return affinity, anti, existing

    def filter(self, pod: Pod, nodes: list[Node], pods: list[Pod]) -> dict[str, str] | None:
        """Node -> reason; None if the plugin skips."""
        affinity, anti, existing = self.maps(pod, nodes, pods)
        wanted = self.terms(pod, "podAffinity", REQUIRED)
        shunned = self.terms(pod, "podAntiAffinity", REQUIRED)
        if not wanted and not shunned and not existing:
            return None
        answers = {}
        for node in nodes:
            labels = node.metadata.labels
            keys = [term["topologyKey"] for term in wanted]
            reason = ""
            if any(key not in labels for key in keys) or (
                any((key, labels[key]) not in affinity for key in keys)
                and not (not affinity and self.matches_all(pod, pod))
            ):
                reason = AFFINITY
            elif any(
                (term["topologyKey"], labels.get(term["topologyKey"])) in anti for term in shunned
            ):
                reason = ANTI_AFFINITY
            elif any(pair in existing for pair in labels.items()):
                reason = EXISTING
            answers[node.metadata.name] = reason
        return answers

    def worths(self, pod: Pod, other: Pod) -> list[tuple[str, int]]:
        """Yield topology keys and weights for another pod."""
        found: list[tuple[str, int]] = []
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            for weighted in self.terms(pod, kind, PREFERRED):
                term = weighted["podAffinityTerm"]
                if self.own_matches(pod, term, other):
                    found.append((term["topologyKey"], sign * weighted["weight"]))
            for weighted in self.terms(other, kind, PREFERRED):
                term = weighted["podAffinityTerm"]
                if self.existing_matches(other, term, pod):
                    found.append((term["topologyKey"], sign * weighted["weight"]))
        found += [
            (term["topologyKey"], self.hard_weight)
            for term in self.terms(other, "podAffinity", REQUIRED)
            if self.hard_weight and self.existing_matches(other, term, pod)
        ]
        return found

    def scores(
        self, pod: Pod, nodes: list[Node], pods: list[Pod], feasible: list[str]
    ) -> dict[str, int] | None:
        """Node -> normalized score; None if all weights add up to 0."""
        pairs: Pairs = {}
        for node in nodes:
            for other in pods:
                if other.spec.node_name != node.metadata.name:
                    continue
                for key, worth in self.worths(pod, other):
                    if key in node.metadata.labels:
                        pair = (key, node.metadata.labels[key])
                        pairs[pair] = pairs.get(pair, 0) + worth
        if not any(pairs.values()):
            return None
        raw = {
            node.metadata.name: sum(pairs.get(pair, 0) for pair in node.metadata.labels.items())
            for node in nodes
            if node.metadata.name in feasible
        }
        least, most = min(raw.values()), max(raw.values())
        if most == least:
            return dict.fromkeys(raw, 0)
        return {name: int(100.0 * ((s - least) / (most - least))) for name, s in raw.items()}


NAMESPACES = {"default": {"team": "x"}, "other": {"team": "y"}, "plain": {}}
expressions = st.sampled_from(
    [
        FOO,
        FOO,
        BAR,
        {},
        None,
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["foo"]}]},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        MANY,
        {
            "matchExpressions": [
                {"key": "app", "operator": "Exists"},
                {"key": "app", "operator": "NotIn", "values": ["bar"]},
            ]
        },
    ]
)
namespace_selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"team": "x"}},
        {"matchLabels": {"team": "y"}},
        {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
        {"matchExpressions": [{"key": "team", "operator": "In", "values": ["x", "y"]}]},
    ]
)


# Strategies are made once: to make one takes longer than to draw from it.
topology_keys = st.sampled_from(["zone", "host", "rack"])
reaches = st.sampled_from(["own", "own", "named", "selected", "both"])
namespace_lists = st.lists(st.sampled_from(sorted(NAMESPACES)), min_size=1)


@st.composite
def terms(draw: st.DrawFn) -> Json:
    """A term, mostly for the owner's namespace."""
    written = term(draw(expressions), draw(topology_keys))
    reach = draw(reaches)
    if reach in {"named", "both"}:
        written["namespaces"] = draw(namespace_lists)
    if reach in {"selected", "both"}:
        written["namespaceSelector"] = draw(namespace_selectors)
    return written


required_terms = st.lists(terms(), max_size=2)
preferred_terms = st.lists(st.tuples(st.sampled_from([1, 1, 2, 50]), terms()), max_size=2)


@st.composite
def affinities(draw: st.DrawFn) -> Json:
    """One kind of affinity; often none."""
    affinity: Json = {}
    if draw(st.booleans()):
        affinity[REQUIRED] = draw(required_terms)
    if draw(st.booleans()):
        affinity |= preferred(*draw(preferred_terms))
    return affinity


namespaces = st.sampled_from(["default", "default", "other", "plain", "unknown"])
app_labels = st.sampled_from([{"app": "foo"}, {"app": "foo"}, {"app": "bar"}, {}])
affinities_or_none = st.none() | affinities()


def draw_pod(draw: st.DrawFn, name: str, node_name: str) -> Pod:
    """Draw a pod with or without affinity."""
    return make_pod(
        name,
        namespace=draw(namespaces),
        labels=draw(app_labels),
        node_name=node_name,
        pod_affinity=draw(affinities_or_none),
        pod_anti_affinity=draw(affinities_or_none),
    )


@st.composite
def pods_to_place(draw: st.DrawFn, name: str = "incoming", node_name: str = "") -> Pod:
    """A pod with or without affinity."""
    return draw_pod(draw, name, node_name)


zones = st.sampled_from(["a", "a", "b", None])
racks = st.sampled_from(["r1", "", None])


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """A few nodes of which some lack labels, and pods on them."""
    nodes = []
    for at in range(draw(st.integers(1, 5))):
        labels = {"host": f"n{at}", "zone": draw(zones), "rack": draw(racks)}
        present = {key: value for key, value in labels.items() if value is not None}
        nodes.append(make_node(f"n{at}", labels=present))
    places = st.sampled_from(nodes)
    pods = [
        draw_pod(draw, f"p{at}", draw(places).metadata.name)
        for at in range(draw(st.integers(0, 6)))
    ]
    return nodes, pods


def snapshot_of(nodes: list[Node], pods: list[Pod]) -> Snapshot:
    """The cluster with the namespaces of the twin."""
    objects = [make_namespace(name, **labels) for name, labels in NAMESPACES.items()]
    return make_snapshot(nodes, pods, objects)
