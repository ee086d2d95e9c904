from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Namespace, Node, Pod
from kubesched.config.faults import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Code
from kubesched.plugins.affinity_state import AffinityState
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle

Json: TypeAlias = "dict[str, Any]"

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
FOO: Json = {"matchLabels": {"app": "foo"}}
BAR: Json = {"matchLabels": {"app": "bar"}}


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
    handle = FakeHandle()
    return InterPodAffinity(InterPodAffinity.decode_args(args, handle, "args"), handle)


def answers_of(
    plugin: InterPodAffinity, state: AffinityState, pod: Pod, snapshot: Snapshot
) -> dict[str, str]:
    """Node -> reason, empty where the pod fits; each row alone answers the same."""
    info, nodes = PodInfo(pod), snapshot.nodes
    answers = plugin.filter(state, info, nodes)
    for row in range(len(nodes)):
        one = nodes.take(np.array([row]))
        assert answers[row] == plugin.filter(state, info, one)[0]
        assert answers[row].is_success == (not plugin.describe(state, info, one))
    return {name: answers[row].message for row, name in enumerate(nodes.names)}


def filtered(
    pod: Pod, snapshot: Snapshot, plugin: InterPodAffinity | None = None
) -> dict[str, str] | None:
    """Node -> reason, empty where the pod fits; None if the plugin skips."""
    plugin = plugin or make_plugin()
    result = plugin.pre_filter(CycleState(), PodInfo(pod), snapshot)
    if result.status.is_skip:
        return None
    assert result.state is not None, result.status
    return answers_of(plugin, result.state, pod, snapshot)


def scored(
    pod: Pod,
    snapshot: Snapshot,
    feasible: list[str] | None = None,
    plugin: InterPodAffinity | None = None,
) -> dict[str, int] | None:
    """Node -> normalized score; None if the plugin skips."""
    plugin = plugin or make_plugin()
    info, nodes = PodInfo(pod), snapshot.nodes
    mask = np.array([feasible is None or name in feasible for name in nodes.names], np.bool_)
    result = plugin.pre_score(CycleState(), info, snapshot, mask)
    if result.status.is_skip:
        return None
    assert result.state is not None, result.status
    rows = np.flatnonzero(mask)
    raw = plugin.score(result.state, info, nodes)[rows]
    assert raw.tolist() == plugin.score(result.state, info, nodes.take(rows)).tolist()
    scores = plugin.normalize_score(result.state, info, raw, rows)
    return {nodes.names[row]: int(score) for row, score in zip(rows, scores, strict=True)}


def two_zones(*pods: Pod, extra: tuple[Namespace, ...] = ()) -> Snapshot:
    """n0 in zone a, n1 in zone b, n2 in none."""
    nodes = [
        make_node("n0", labels={"zone": "a", "host": "n0"}),
        make_node("n1", labels={"zone": "b", "host": "n1"}),
        make_node("n2", labels={"host": "n2"}),
    ]
    return make_snapshot(nodes, pods, extra)


ON_N0 = make_pod("existing", labels={"app": "foo"}, node_name="n0")


@pytest.mark.parametrize(
    ("existing", "pod", "expected"),
    [
        pytest.param([ON_N0], make_pod(), None, id="nothing-to-do"),
        pytest.param(
            [ON_N0], make_pod(pod_affinity=required(term())), ("", AFFINITY, AFFINITY), id="near"
        ),
        pytest.param(
            [ON_N0],
            make_pod(pod_affinity=required(term(BAR))),
            (AFFINITY, AFFINITY, AFFINITY),
            id="nobody-matches",
        ),
        pytest.param(
            [],
            make_pod(labels={"app": "foo"}, pod_affinity=required(term())),
            ("", "", AFFINITY),
            id="first-of-its-group",
        ),
        pytest.param(
            [ON_N0],
            make_pod(labels={"app": "foo"}, pod_affinity=required(term())),
            ("", AFFINITY, AFFINITY),
            id="second-of-its-group",
        ),
        pytest.param(
            [make_pod("existing", labels={"app": "foo"}, node_name="n2")],
            make_pod(labels={"app": "foo"}, pod_affinity=required(term())),
            ("", "", AFFINITY),
            id="a-match-outside-all-domains-is-none",
        ),
        pytest.param(
            [ON_N0],
            make_pod(pod_affinity=required(term(None))),
            (AFFINITY, AFFINITY, AFFINITY),
            id="no-selector-matches-nothing",
        ),
        pytest.param(
            [ON_N0],
            make_pod(pod_affinity=required(term({}))),
            ("", AFFINITY, AFFINITY),
            id="empty-selector-matches-all",
        ),
        pytest.param(
            [ON_N0, make_pod("q", labels={"tier": "x"}, node_name="n0")],
            make_pod(pod_affinity=required(term(), term({"matchLabels": {"tier": "x"}}))),
            (AFFINITY, AFFINITY, AFFINITY),
            id="one-pod-must-match-all-terms",
        ),
        pytest.param(
            [ON_N0],
            make_pod(pod_affinity=required(term(), term(FOO, "host"))),
            ("", AFFINITY, AFFINITY),
            id="two-keys",
        ),
        pytest.param(
            [ON_N0],
            make_pod(namespace="other", pod_affinity=required(term())),
            (AFFINITY, AFFINITY, AFFINITY),
            id="own-namespace-only",
        ),
        pytest.param(
            [ON_N0],
            make_pod(namespace="other", pod_affinity=required(term(namespaces=["default"]))),
            ("", AFFINITY, AFFINITY),
            id="named-namespace",
        ),
        pytest.param(
            [ON_N0],
            make_pod(pod_anti_affinity=required(term())),
            (ANTI_AFFINITY, "", ""),
            id="far",
        ),
        pytest.param(
            [ON_N0, make_pod("q", labels={"tier": "x"}, node_name="n1")],
            make_pod(pod_anti_affinity=required(term(), term({"matchLabels": {"tier": "x"}}))),
            (ANTI_AFFINITY, ANTI_AFFINITY, ""),
            id="any-term-repels",
        ),
        pytest.param(
            [make_pod("q", node_name="n0", pod_anti_affinity=required(term()))],
            make_pod(labels={"app": "foo"}),
            (EXISTING, "", ""),
            id="existing-repels",
        ),
        pytest.param(
            [make_pod("q", node_name="n0", pod_anti_affinity=required(term()))],
            make_pod(labels={"app": "bar"}),
            None,
            id="existing-repels-others",
        ),
        pytest.param(
            [make_pod("q", node_name="n2", pod_anti_affinity=required(term()))],
            make_pod(labels={"app": "foo"}),
            None,
            id="existing-outside-all-domains",
        ),
        pytest.param(
            [
                make_pod(
                    "q",
                    labels={"app": "foo"},
                    node_name="n0",
                    pod_anti_affinity=required(term()),
                    metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
                )
            ],
            make_pod(labels={"app": "foo"}, pod_anti_affinity=required(term())),
            (ANTI_AFFINITY, "", ""),
            id="terminating-pods-count-and-own-rule-first",
        ),
        pytest.param(
            [make_pod("q", labels={"app": "bar"}, node_name="n1")],
            make_pod(pod_affinity=required(term(BAR)), pod_anti_affinity=required(term(BAR))),
            (AFFINITY, ANTI_AFFINITY, AFFINITY),
            id="affinity-comes-first",
        ),
    ],
)
def test_filter(existing: list[Pod], pod: Pod, expected: tuple[str, ...] | None) -> None:
    """Required terms hold per domain; the first rule that fails gives the reason."""
    answers = filtered(pod, two_zones(*existing))
    assert expected == (None if answers is None else tuple(answers.values()))


def test_codes() -> None:
    """Eviction may cure anti-affinity, never missing affinity."""
    plugin, snapshot = make_plugin(), two_zones(ON_N0)
    for pod, code in (
        (make_pod(pod_affinity=required(term(BAR))), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        (make_pod(pod_anti_affinity=required(term())), Code.UNSCHEDULABLE),
    ):
        result = plugin.pre_filter(CycleState(), PodInfo(pod), snapshot)
        assert result.state is not None
        assert code == plugin.filter(result.state, PodInfo(pod), snapshot.nodes)[0].code


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({}, ("", AFFINITY, AFFINITY), id="empty-selects-all"),
        pytest.param({"matchLabels": {"team": "x"}}, ("", AFFINITY, AFFINITY), id="selected"),
        pytest.param({"matchLabels": {"team": "y"}}, (AFFINITY,) * 3, id="not-selected"),
        pytest.param(
            {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            ("", AFFINITY, AFFINITY),
            id="one-that-no-labels-meet-selects-all",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
            ("", AFFINITY, AFFINITY),
            id="so-does-not-in",
        ),
    ],
)
def test_namespace_selector(selector: Json, expected: tuple[str, ...]) -> None:
    """The pod's own namespace selectors are resolved; one met without labels means everywhere."""
    existing = make_pod("q", namespace="team", labels={"app": "foo"}, node_name="n0")
    snapshot = two_zones(existing, extra=(make_namespace("team", team="x"),))
    pod = make_pod(pod_affinity=required(term(namespaceSelector=selector)))
    answers = filtered(pod, snapshot)
    assert answers is not None
    assert expected == tuple(answers.values())


def test_namespaces_are_looked_up_again() -> None:
    """A namespace that changes its labels changes what selectors select."""
    existing = make_pod("q", namespace="team", labels={"app": "foo"}, node_name="n0")
    snapshot, plugin = two_zones(existing), make_plugin()
    store: Any = snapshot.objects
    pod = make_pod(
        pod_anti_affinity=required(term(namespaceSelector={"matchLabels": {"team": "x"}}))
    )
    assert {"n0": "", "n1": "", "n2": ""} == filtered(pod, snapshot, plugin)
    store.put(make_namespace("team", team="x"))
    assert {"n0": ANTI_AFFINITY, "n1": "", "n2": ""} == filtered(pod, snapshot, plugin)


def test_existing_terms_see_labels_of_the_pods_namespace() -> None:
    """Terms of existing pods select the namespace of the pod to place by its labels."""
    selector = {"matchLabels": {"team": "x"}}
    existing = make_pod(
        "q", node_name="n0", pod_anti_affinity=required(term(namespaceSelector=selector))
    )
    snapshot, plugin = two_zones(existing), make_plugin()
    store: Any = snapshot.objects
    pod = make_pod(namespace="team", labels={"app": "foo"})
    assert filtered(pod, snapshot, plugin) is None
    store.put(make_namespace("team", team="x"))
    assert {"n0": EXISTING, "n1": "", "n2": ""} == filtered(pod, snapshot, plugin)


def test_terms_that_cannot_be_parsed() -> None:
    """A wrong selector rejects the pod for good, in upstream's words."""
    wrong = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    reason = '"Near" is not a valid pod selector operator'
    snapshot = two_zones()
    one = make_pod(pod_affinity=required(term(wrong)))
    status = make_plugin().pre_filter(CycleState(), PodInfo(one), snapshot).status
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == status.code
    assert f"parsing pod: requiredAffinityTerms: {reason}" == status.message
    two = make_pod(
        pod_affinity=preferred((1, term(wrong))), pod_anti_affinity=required(term(wrong))
    )
    status = make_plugin().pre_filter(CycleState(), PodInfo(two), snapshot).status
    assert (
        f"parsing pod: [requiredAntiAffinityTerms: {reason}, preferredAffinityTerms: {reason}]"
        == status.message
    )


SOFT = make_pod(pod_affinity=preferred((5, term())))


@pytest.mark.parametrize(
    ("existing", "pod", "args", "expected"),
    [
        pytest.param([ON_N0], make_pod(), None, None, id="nothing-to-do"),
        pytest.param([ON_N0], SOFT, None, (100, 0, 0), id="near"),
        pytest.param(
            [ON_N0],
            make_pod(pod_anti_affinity=preferred((5, term()))),
            None,
            (0, 100, 100),
            id="far",
        ),
        pytest.param([], SOFT, None, None, id="no-pods"),
        pytest.param(
            [make_pod("q", labels={"app": "foo"}, node_name="n2")], SOFT, None, None, id="no-domain"
        ),
        pytest.param(
            [ON_N0],
            make_pod(pod_affinity=preferred((5, term())), pod_anti_affinity=preferred((5, term()))),
            None,
            (0, 0, 0),
            id="cancelled-is-not-skipped",
        ),
        pytest.param(
            [ON_N0, make_pod("q", labels={"app": "foo"}, node_name="n1")],
            make_pod(pod_affinity=preferred((4, term()), (1, term(FOO, "host")))),
            None,
            (100, 100, 0),
            id="keys-add-up",
        ),
        pytest.param(
            [make_pod("q", node_name="n0", pod_affinity=preferred((3, term())))],
            make_pod(labels={"app": "foo"}),
            None,
            (100, 0, 0),
            id="liked-by-existing",
        ),
        pytest.param(
            [make_pod("q", node_name="n0", pod_anti_affinity=preferred((3, term())))],
            make_pod(labels={"app": "foo"}),
            None,
            (0, 100, 100),
            id="disliked-by-existing",
        ),
        pytest.param(
            [make_pod("q", node_name="n0", pod_affinity=required(term()))],
            make_pod(labels={"app": "foo"}),
            None,
            (100, 0, 0),
            id="needed-by-existing",
        ),
        pytest.param(
            [make_pod("q", node_name="n0", pod_affinity=required(term()))],
            make_pod(labels={"app": "foo"}),
            {"hardPodAffinityWeight": 0},
            None,
            id="needed-by-existing-without-weight",
        ),
        pytest.param(
            [
                make_pod("q", node_name="n0", pod_affinity=required(term())),
                make_pod("r", node_name="n1", pod_affinity=preferred((2, term()))),
            ],
            make_pod(labels={"app": "foo"}),
            {"hardPodAffinityWeight": 4},
            (100, 50, 0),
            id="weights",
        ),
        pytest.param(
            [make_pod("q", node_name="n0", pod_affinity=preferred((3, term())))],
            make_pod(labels={"app": "foo"}),
            {"ignorePreferredTermsOfExistingPods": True},
            None,
            id="existing-ignored",
        ),
        pytest.param(
            [
                make_pod("q", node_name="n0", pod_affinity=preferred((3, term()))),
                make_pod("r", labels={"app": "bar"}, node_name="n1"),
            ],
            make_pod(labels={"app": "foo"}, pod_affinity=preferred((1, term(BAR)))),
            {"ignorePreferredTermsOfExistingPods": True},
            (100, 33, 0),
            id="existing-not-ignored-for-pods-with-preferences",
        ),
        pytest.param(
            [make_pod("q", node_name="n0", pod_anti_affinity=required(term()))],
            make_pod(labels={"app": "foo"}),
            None,
            None,
            id="required-anti-affinity-does-not-score",
        ),
    ],
)
def test_score(
    existing: list[Pod], pod: Pod, args: Json | None, expected: tuple[int, ...] | None
) -> None:
    """Weights of matching terms add up per domain and are spread over 0..100."""
    scores = scored(pod, two_zones(*existing), plugin=make_plugin(args))
    assert expected == (None if scores is None else tuple(scores.values()))


def test_kept_questions_follow_pods() -> None:
    """What was derived from existing terms is derived anew once their owners came or went."""
    snapshot, plugin = two_zones(), make_plugin()
    pod = make_pod(labels={"app": "foo"})
    repelling = PodInfo(make_pod("q", pod_anti_affinity=required(term())))
    liking = PodInfo(make_pod("r", pod_affinity=preferred((1, term()))))
    for _ in range(2):
        assert filtered(pod, snapshot, plugin) is None
        assert scored(pod, snapshot, plugin=plugin) is None
        snapshot.nodes.add_pod(repelling, 0)
        snapshot.nodes.add_pod(liking, 1)
        assert {"n0": EXISTING, "n1": "", "n2": ""} == filtered(pod, snapshot, plugin)
        assert {"n0": 0, "n1": 100, "n2": 0} == scored(pod, snapshot, plugin=plugin)
        snapshot.nodes.remove_pod(repelling, 0)
        snapshot.nodes.remove_pod(liking, 1)


# A twin that asks every node about every pod, written from the specification.

Pairs: TypeAlias = "dict[tuple[str, str], int]"


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.get("matchExpressions", []):
        has = one["key"] in labels
        listed = has and labels[one["key"]] in one.get("values", [])
        holds = {"In": listed, "NotIn": not listed, "Exists": has, "DoesNotExist": not has}
        if not holds[one["operator"]]:
            return False
    return True


class Twin:
    """Inter-pod affinity over plain dictionaries."""

    def __init__(self, namespaces: dict[str, dict[str, str]], hard_weight: int = 1) -> None:
        self.namespaces = namespaces
        self.hard_weight = hard_weight

    def terms(self, pod: Pod, kind: str, half: str) -> list[Json]:
        affinity = msgspec.to_builtins(pod.spec.affinity) if pod.spec.affinity else {}
        return list(affinity.get(kind, {}).get(half, []))

    def named(self, owner: Pod, term: Json) -> set[str]:
        if not term.get("namespaces") and "namespaceSelector" not in term:
            return {owner.metadata.namespace}
        return set(term.get("namespaces", []))

    def own_matches(self, pod: Pod, term: Json, other: Pod) -> bool:
        """A term of the pod to place, asked about another pod."""
        selector = term.get("namespaceSelector")
        names = self.named(pod, term)
        names |= {name for name, labels in self.namespaces.items() if selects(selector, labels)}
        in_reach = other.metadata.namespace in names or selects(selector, {})
        return in_reach and selects(term.get("labelSelector"), other.metadata.labels)

    def existing_matches(self, owner: Pod, term: Json, pod: Pod) -> bool:
        """A term of an existing pod, asked about the pod to place."""
        namespace = pod.metadata.namespace
        labels = self.namespaces.get(namespace, {})
        in_reach = namespace in self.named(owner, term) or selects(
            term.get("namespaceSelector"), labels
        )
        return in_reach and selects(term.get("labelSelector"), pod.metadata.labels)

    def matches_all(self, pod: Pod, other: Pod) -> bool:
        terms = self.terms(pod, "podAffinity", REQUIRED)
        return bool(terms) and all(self.own_matches(pod, term, other) for term in terms)

    def maps(self, pod: Pod, nodes: list[Node], pods: list[Pod]) -> tuple[Pairs, Pairs, Pairs]:
        affinity: Pairs = {}
        anti: Pairs = {}
        existing: Pairs = {}

        def count(pairs: Pairs, node: Node, term: Json) -> None:
            value = node.metadata.labels.get(term["topologyKey"])
            if value is not None:
                pair = (term["topologyKey"], value)
                pairs[pair] = pairs.get(pair, 0) + 1

        for node in nodes:
            for other in pods:
                if other.spec.node_name != node.metadata.name:
                    continue
                for term in self.terms(other, "podAntiAffinity", REQUIRED):
                    if self.existing_matches(other, term, pod):
                        count(existing, node, term)
                if self.matches_all(pod, other):
                    for term in self.terms(pod, "podAffinity", REQUIRED):
                        count(affinity, node, term)
                for term in self.terms(pod, "podAntiAffinity", REQUIRED):
                    if self.own_matches(pod, term, other):
                        count(anti, node, term)
        return affinity, anti, existing

    def filter(self, pod: Pod, nodes: list[Node], pods: list[Pod]) -> dict[str, str] | None:
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
        for term in self.terms(other, "podAffinity", REQUIRED):
            if self.hard_weight and self.existing_matches(other, term, pod):
                found.append((term["topologyKey"], self.hard_weight))
        return found

    def scores(
        self, pod: Pod, nodes: list[Node], pods: list[Pod], feasible: list[str]
    ) -> dict[str, int] | None:
        pairs: Pairs = {}
        for node in nodes:
            for other in pods:
                if other.spec.node_name != node.metadata.name:
                    continue
                for key, worth in self.worths(pod, other):
                    if key in node.metadata.labels:
                        pair = (key, node.metadata.labels[key])
                        pairs[pair] = pairs.get(pair, 0) + worth
        if not pairs:
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


@st.composite
def terms(draw: st.DrawFn) -> Json:
    """A term, mostly about the owner's namespace."""
    written = term(draw(expressions), draw(st.sampled_from(["zone", "host", "rack"])))
    reach = draw(st.sampled_from(["own", "own", "named", "selected", "both"]))
    if reach in {"named", "both"}:
        written["namespaces"] = draw(st.lists(st.sampled_from(sorted(NAMESPACES)), min_size=1))
    if reach in {"selected", "both"}:
        written["namespaceSelector"] = draw(namespace_selectors)
    return written


@st.composite
def affinities(draw: st.DrawFn) -> Json:
    """One kind of affinity; often none."""
    affinity: Json = {}
    if draw(st.booleans()):
        affinity[REQUIRED] = draw(st.lists(terms(), max_size=2))
    if draw(st.booleans()):
        weighted = st.tuples(st.sampled_from([1, 1, 2, 50]), terms())
        affinity |= preferred(*draw(st.lists(weighted, max_size=2)))
    return affinity


@st.composite
def pods_to_place(draw: st.DrawFn, name: str = "incoming", node_name: str = "") -> Pod:
    """A pod with or without affinity."""
    return make_pod(
        name,
        namespace=draw(st.sampled_from(["default", "default", "other", "plain", "unknown"])),
        labels=draw(st.sampled_from([{"app": "foo"}, {"app": "foo"}, {"app": "bar"}, {}])),
        node_name=node_name,
        pod_affinity=draw(st.one_of(st.none(), affinities())),
        pod_anti_affinity=draw(st.one_of(st.none(), affinities())),
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """A few nodes of which some lack labels, and pods on them."""
    nodes = []
    for at in range(draw(st.integers(1, 5))):
        labels = {
            "host": f"n{at}",
            "zone": draw(st.sampled_from(["a", "a", "b", None])),
            "rack": draw(st.sampled_from(["r1", "", None])),
        }
        present = {key: value for key, value in labels.items() if value is not None}
        nodes.append(make_node(f"n{at}", labels=present))
    pods = [
        draw(pods_to_place(f"p{at}", draw(st.sampled_from(nodes)).metadata.name))
        for at in range(draw(st.integers(0, 6)))
    ]
    return nodes, pods


def snapshot_of(nodes: list[Node], pods: list[Pod]) -> Snapshot:
    """The cluster with the namespaces of the twin."""
    objects = [make_namespace(name, **labels) for name, labels in NAMESPACES.items()]
    return make_snapshot(nodes, pods, objects)


@settings(max_examples=300, deadline=None)
@given(clusters(), pods_to_place())
def test_filter_equals_twin(cluster: tuple[list[Node], list[Pod]], pod: Pod) -> None:
    """All rows at once answer as each node asked by itself."""
    nodes, pods = cluster
    assert Twin(NAMESPACES).filter(pod, nodes, pods) == filtered(pod, snapshot_of(nodes, pods))


@settings(max_examples=300, deadline=None)
@given(clusters(), pods_to_place(), st.integers(0, 3), st.data())
def test_score_equals_twin(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, hard_weight: int, data: st.DataObject
) -> None:
    """All rows at once score as each node asked by itself."""
    nodes, pods = cluster
    names = [node.metadata.name for node in nodes]
    feasible = sorted(data.draw(st.sets(st.sampled_from(names), min_size=1)))
    expected = Twin(NAMESPACES, hard_weight).scores(pod, nodes, pods, feasible)
    plugin = make_plugin({"hardPodAffinityWeight": hard_weight})
    assert expected == scored(pod, snapshot_of(nodes, pods), feasible, plugin)


@settings(max_examples=200, deadline=None)
@given(clusters(), st.lists(pods_to_place(), min_size=1, max_size=3), st.data())
def test_answers_follow_pods(
    cluster: tuple[list[Node], list[Pod]], asked: list[Pod], data: st.DataObject
) -> None:
    """One plugin, asked again and again while pods come and go, answers as a new one would."""
    nodes, pods = cluster
    snapshot, plugin, twin = snapshot_of(nodes, []), make_plugin(), Twin(NAMESPACES)
    names = [node.metadata.name for node in nodes]
    present: list[Pod] = []
    for other in pods + data.draw(st.permutations(pods)):
        row = snapshot.nodes.row_of[other.spec.node_name]
        if other in present:
            present.remove(other)
            snapshot.nodes.remove_pod(PodInfo(other), row)
        else:
            present.append(other)
            snapshot.nodes.add_pod(PodInfo(other), row)
        for pod in asked:
            assert twin.filter(pod, nodes, present) == filtered(pod, snapshot, plugin)
            assert twin.scores(pod, nodes, present, names) == scored(pod, snapshot, plugin=plugin)
    snapshot.nodes.groups.check()


@settings(max_examples=300, deadline=None)
@given(clusters(), pods_to_place(), st.data())
def test_what_if_equals_counting_anew(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
) -> None:
    """Moving pods of one node in a cloned state gives the answers of the cluster so changed."""
    nodes, pods = cluster
    snapshot, plugin, twin = snapshot_of(nodes, pods), make_plugin(), Twin(NAMESPACES)
    result = plugin.pre_filter(CycleState(), PodInfo(pod), snapshot)
    if result.state is None:
        return
    before = answers_of(plugin, result.state, pod, snapshot)
    node = data.draw(st.sampled_from(nodes))
    name = node.metadata.name
    one = snapshot.nodes.take(np.array([snapshot.nodes.row_of[name]]))
    what_if, present = result.state.clone(), list(pods)
    added = data.draw(st.lists(pods_to_place("new", name), max_size=3))
    here = [other for other in pods if other.spec.node_name == name]
    for other in data.draw(st.permutations(here + added)):
        change = plugin.remove_pod if other in present else plugin.add_pod
        if other in present:
            present.remove(other)
        else:
            present.append(other)
        assert change(what_if, PodInfo(pod), PodInfo(other), one).is_success
        expected = twin.filter(pod, nodes, present) or dict.fromkeys(snapshot.nodes.names, "")
        assert expected == answers_of(plugin, what_if, pod, snapshot)
    assert before == answers_of(plugin, result.state, pod, snapshot)


# Hints.

NEAR = make_pod(pod_affinity=required(term()))
NEAR_TWO = make_pod(pod_affinity=required(term(), term({"matchLabels": {"tier": "x"}})))
FAR = make_pod(labels={"app": "bar"}, pod_anti_affinity=required(term()))


def placed(labels: dict[str, str], **fields: Any) -> Pod:
    """A bound pod."""
    return make_pod("other", labels=labels, node_name="n", **fields)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR, None, placed({"app": "foo"}), True, id="wanted-added"),
        pytest.param(NEAR, None, placed({"app": "bar"}), False, id="other-added"),
        pytest.param(NEAR, None, make_pod("q", labels={"app": "foo"}), False, id="unplaced-added"),
        pytest.param(NEAR, placed({}), placed({"app": "foo"}), True, id="becomes-wanted"),
        pytest.param(NEAR, placed({"app": "foo"}), placed({}), False, id="ceases-to-be-wanted"),
        pytest.param(
            NEAR, placed({"app": "foo"}), placed({"app": "foo", "x": "y"}), False, id="stays-wanted"
        ),
        pytest.param(
            NEAR_TWO, placed({}), placed({"app": "foo"}), False, id="meets-one-term-of-two"
        ),
        pytest.param(
            NEAR_TWO, placed({}), placed({"app": "foo", "tier": "x"}), True, id="meets-both-terms"
        ),
        pytest.param(NEAR, NEAR, make_pod(labels={"a": "b"}), True, id="the-pod-itself"),
        pytest.param(FAR, placed({"app": "foo"}), placed({}), True, id="ceases-to-be-shunned"),
        pytest.param(FAR, placed({}), placed({"app": "foo"}), False, id="becomes-shunned"),
        pytest.param(FAR, placed({"app": "foo"}), None, True, id="shunned-deleted"),
        pytest.param(FAR, placed({"app": "bar"}), None, False, id="other-deleted"),
        pytest.param(FAR, make_pod("q", labels={"app": "foo"}), None, False, id="unplaced-deleted"),
        pytest.param(
            FAR,
            make_pod("q", labels={"app": "foo"}, nominated_node_name="n"),
            None,
            True,
            id="nominated-deleted",
        ),
        pytest.param(
            FAR,
            placed({}, pod_anti_affinity=required(term(BAR))),
            None,
            True,
            id="shunning-deleted",
        ),
        pytest.param(
            FAR,
            placed({}, pod_anti_affinity=required(term())),
            None,
            False,
            id="shunning-others-deleted",
        ),
        pytest.param(
            make_pod(pod_affinity=required(term(namespaceSelector={"matchLabels": {"a": "b"}}))),
            None,
            placed({"app": "foo"}),
            False,
            id="namespace-selectors-are-not-resolved",
        ),
    ],
)
def test_hint_on_pods(pod: Pod, old: Pod | None, new: Pod | None, expected: bool) -> None:
    """A pod matters if it meets the affinity now, or no longer violates the anti-affinity."""
    pods, _ = make_plugin().events_to_register()
    assert pods.hint is not None
    assert expected == pods.hint(pod, old, new)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR, None, {"zone": "a"}, True, id="near-added-with-key"),
        pytest.param(NEAR, None, {"x": "a"}, False, id="near-added-without-key"),
        pytest.param(NEAR, {"zone": "a"}, {"zone": "a", "x": "y"}, False, id="near-other-label"),
        pytest.param(NEAR, {"zone": "a"}, {"zone": "b"}, True, id="near-moved"),
        pytest.param(NEAR, {}, {"zone": "a"}, True, id="near-key-appeared"),
        pytest.param(NEAR, {"zone": "a"}, {}, False, id="near-key-removed"),
        pytest.param(FAR, None, {"zone": "a"}, True, id="far-added-with-key"),
        pytest.param(FAR, None, {}, True, id="far-added-without-key"),
        pytest.param(FAR, {"zone": "a"}, {"zone": "a", "x": "y"}, False, id="far-other-label"),
        pytest.param(FAR, {"zone": "a"}, {"zone": "b"}, True, id="far-moved"),
        pytest.param(FAR, {}, {"zone": "a"}, False, id="far-key-appeared"),
        pytest.param(FAR, {"zone": "a"}, {}, True, id="far-key-removed"),
        pytest.param(make_pod(), None, {"zone": "a"}, False, id="no-terms"),
    ],
)
def test_hint_on_nodes(
    pod: Pod, old: dict[str, str] | None, new: dict[str, str], expected: bool
) -> None:
    """A node matters if it joins, leaves or changes a domain so that the pod may fit."""
    _, nodes = make_plugin().events_to_register()
    assert nodes.hint is not None
    before = None if old is None else make_node(labels=old)
    assert expected == nodes.hint(pod, before, make_node(labels=new))


@pytest.mark.parametrize("weight", [-1, 101])
def test_args(weight: int) -> None:
    """The weight of required affinity is from 0 to 100."""
    with pytest.raises(ConfigError) as caught:
        make_plugin({"hardPodAffinityWeight": weight})
    text = f"args.hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0, 100]"
    assert text == str(caught.value)
