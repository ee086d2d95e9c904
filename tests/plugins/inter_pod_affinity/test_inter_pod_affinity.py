"""InterPodAffinity: answers and scores, compared with a twin that goes node by node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.field_errors import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Code
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import all_rows, make_node, make_pod, make_snapshot
from tests.plugins.by_node import answers_of, scores_of

from .attraction import (
    AFFINITY,
    ANTI_AFFINITY,
    BAR,
    EXISTING,
    FOO,
    MANY,
    NAMESPACES,
    Json,
    Twin,
    clusters,
    make_namespace,
    make_plugin,
    pods_to_place,
    preferred,
    required,
    snapshot_of,
    term,
)


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
    return scores_of(plugin or make_plugin(), pod, snapshot, feasible)


def two_zones(*pods: Pod, extra: tuple[Namespace, ...] = ()) -> Snapshot:
    """n0 in zone a, n1 in zone b, n2 in none."""
    nodes = [
        make_node("n0", labels={"zone": "a", "host": "n0"}),
        make_node("n1", labels={"zone": "b", "host": "n1"}),
        make_node("n2", labels={"host": "n2"}),
    ]
    return make_snapshot(nodes, pods, extra)


def a_pod(
    app: str = "", *, near: Json | None = None, far: Json | None = None, node: str = ""
) -> Pod:
    """Return a pod of an app with affinity and anti-affinity, perhaps on a node."""
    labels = {"app": app} if app else {}
    return make_pod(
        f"on-{node}", labels=labels, node_name=node, pod_affinity=near, pod_anti_affinity=far
    )


ON_N0 = a_pod("foo", node="n0")
HARD, SOFT = required(term()), preferred((3, term()))
TIER: Json = {"matchLabels": {"tier": "x"}}
ONLY_N0 = ("", AFFINITY, AFFINITY)
NOWHERE = (AFFINITY,) * 3
TERMINATING = make_pod(
    "q",
    labels={"app": "foo"},
    node_name="n0",
    pod_anti_affinity=HARD,
    metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
)


def of_tier(node: str) -> Pod:
    """Return a pod on a node with another label."""
    return make_pod("q", labels={"tier": "x"}, node_name=node)


@pytest.mark.parametrize(
    ("existing", "pod", "expected"),
    [
        pytest.param([ON_N0], a_pod(), None, id="nothing-to-do"),
        pytest.param([ON_N0], a_pod(near=HARD), ONLY_N0, id="near"),
        pytest.param([ON_N0], a_pod(near=required(term(BAR))), NOWHERE, id="nobody-matches"),
        pytest.param([], a_pod("foo", near=HARD), ("", "", AFFINITY), id="first-of-its-group"),
        pytest.param([ON_N0], a_pod("foo", near=HARD), ONLY_N0, id="second-of-its-group"),
        pytest.param(
            [a_pod("foo", node="n2")],
            a_pod("foo", near=HARD),
            ("", "", AFFINITY),
            id="a-match-outside-all-domains-is-none",
        ),
        pytest.param(
            [ON_N0], a_pod(near=required(term(None))), NOWHERE, id="no-selector-matches-nothing"
        ),
        pytest.param(
            [ON_N0], a_pod(near=required(term({}))), ONLY_N0, id="empty-selector-matches-all"
        ),
        pytest.param(
            [ON_N0, of_tier("n0")],
            a_pod(near=required(term(), term(TIER))),
            NOWHERE,
            id="one-pod-must-match-all-terms",
        ),
        pytest.param(
            [ON_N0], a_pod(near=required(term(), term(FOO, "host"))), ONLY_N0, id="two-keys"
        ),
        pytest.param(
            [ON_N0],
            make_pod(namespace="other", pod_affinity=HARD),
            NOWHERE,
            id="own-namespace-only",
        ),
        pytest.param(
            [ON_N0],
            make_pod(namespace="other", pod_affinity=required(term(namespaces=["default"]))),
            ONLY_N0,
            id="named-namespace",
        ),
        pytest.param([ON_N0], a_pod(far=HARD), (ANTI_AFFINITY, "", ""), id="far"),
        pytest.param(
            [ON_N0, of_tier("n1")],
            a_pod(far=required(term(), term(TIER))),
            (ANTI_AFFINITY, ANTI_AFFINITY, ""),
            id="any-term-repels",
        ),
        pytest.param(
            [a_pod(far=HARD, node="n0")], a_pod("foo"), (EXISTING, "", ""), id="existing-repels"
        ),
        pytest.param([a_pod(far=HARD, node="n0")], a_pod("bar"), None, id="existing-repels-others"),
        pytest.param(
            [a_pod(far=HARD, node="n2")], a_pod("foo"), None, id="existing-outside-all-domains"
        ),
        pytest.param(
            [TERMINATING],
            a_pod("foo", far=HARD),
            (ANTI_AFFINITY, "", ""),
            id="terminating-pods-count-and-own-rule-first",
        ),
        pytest.param(
            [a_pod("bar", node="n1")],
            a_pod(near=required(term(BAR)), far=required(term(BAR))),
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
    """Eviction may resolve anti-affinity, but not missing affinity."""
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
    """The pod's namespace selectors are resolved; one that matches no labels selects all."""
    existing = make_pod("q", namespace="team", labels={"app": "foo"}, node_name="n0")
    snapshot = two_zones(existing, extra=(make_namespace("team", team="x"),))
    pod = make_pod(pod_affinity=required(term(namespaceSelector=selector)))
    answers = filtered(pod, snapshot)
    assert answers is not None
    assert expected == tuple(answers.values())


@pytest.mark.parametrize(("labels", "lasts"), [({"app": "foo"}, False), ({}, True)])
def test_skip_lasts_if_no_term_selects_the_pod(labels: dict[str, str], *, lasts: bool) -> None:
    """A term that selects it in no domain may do so when a node's labels change."""
    far, near = required(term()), preferred((3, term()))
    snapshot = two_zones(make_pod("q", node_name="n2", pod_affinity=near, pod_anti_affinity=far))
    plugin, cycle, pod = make_plugin(), CycleState(), PodInfo(make_pod(labels=labels))
    filtering = plugin.pre_filter(cycle, pod, snapshot)
    scoring = plugin.pre_score(cycle, pod, snapshot, all_rows(snapshot))
    assert [(Code.SKIP, lasts)] * 2 == [
        (result.status.code, result.lasts) for result in (filtering, scoring)
    ]


def test_terms_of_many_values_share_a_sum() -> None:
    """It counts many pods, so pods that other terms select, too, have a second sum for these."""
    far = preferred((1, term(MANY)))
    snapshot, plugin = two_zones(a_pod("bar", far=preferred((2, term())), node="n0")), make_plugin()
    sums = snapshot.nodes.groups
    for app, expected in (("baz", 1), ("foo", 2), ("b", 2)):
        scored(a_pod(app, far=far), snapshot, plugin=plugin)
        assert expected == len(sums._sums)


def test_namespaces_are_looked_up_again() -> None:
    """Changed namespace labels change what selectors select."""
    existing = make_pod("q", namespace="team", labels={"app": "foo"}, node_name="n0")
    snapshot, plugin = two_zones(existing), make_plugin()
    store: Any = snapshot.objects
    pod = make_pod(
        pod_anti_affinity=required(term(namespaceSelector={"matchLabels": {"team": "x"}}))
    )
    assert {"n0": "", "n1": "", "n2": ""} == filtered(pod, snapshot, plugin)
    store.put(make_namespace("team", team="x"))
    assert {"n0": ANTI_AFFINITY, "n1": "", "n2": ""} == filtered(pod, snapshot, plugin)


def test_terms_share_the_namespaces_of_a_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods of many apps with one namespace selector look at all namespaces once."""
    snapshot = two_zones(ON_N0, extra=(make_namespace("team", team="x"),))
    listed: list[type] = []
    list_objects = snapshot.objects.list

    def noted(kind: type[Namespace]) -> Iterable[Namespace]:
        listed.append(kind)
        return list_objects(kind)

    monkeypatch.setattr(snapshot.objects, "list", noted)
    plugin = make_plugin()
    for app in ("foo", "bar", "baz"):
        labels = {"matchLabels": {"app": app}}
        own, of_team = term(labels), term(labels, namespaceSelector={"matchLabels": {"team": "x"}})
        filtered(make_pod(pod_affinity=required(own, of_team)), snapshot, plugin)
    assert [Namespace] == listed


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
    """An invalid selector rejects the pod as unresolvable, with upstream's message."""
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


NO_WEIGHT = {"hardPodAffinityWeight": 0}
IGNORED = {"ignorePreferredTermsOfExistingPods": True}


@pytest.mark.parametrize(
    ("existing", "pod", "args", "expected"),
    [
        pytest.param([ON_N0], a_pod(), None, None, id="nothing-to-do"),
        pytest.param([ON_N0], a_pod(near=SOFT), None, (100, 0, 0), id="near"),
        pytest.param([ON_N0], a_pod(far=SOFT), None, (0, 100, 100), id="far"),
        pytest.param([], a_pod(near=SOFT), None, None, id="no-pods"),
        pytest.param([a_pod("foo", node="n2")], a_pod(near=SOFT), None, None, id="no-domain"),
        pytest.param([ON_N0], a_pod(near=SOFT, far=SOFT), None, None, id="cancelled"),
        pytest.param(
            [ON_N0, a_pod("foo", node="n1")],
            a_pod(near=preferred((4, term()), (1, term(FOO, "host")))),
            None,
            (100, 100, 0),
            id="keys-add-up",
        ),
        pytest.param(
            [a_pod(near=SOFT, node="n0")], a_pod("foo"), None, (100, 0, 0), id="liked-by-existing"
        ),
        pytest.param(
            [a_pod(far=SOFT, node="n0")], a_pod("foo"), None, (0, 100, 100), id="disliked-by-it"
        ),
        pytest.param(
            [a_pod(near=HARD, node="n0")], a_pod("foo"), None, (100, 0, 0), id="needed-by-existing"
        ),
        pytest.param(
            [a_pod(near=HARD, node="n0")], a_pod("foo"), NO_WEIGHT, None, id="needed-without-weight"
        ),
        pytest.param(
            [a_pod(near=HARD, node="n0"), a_pod(near=preferred((2, term())), node="n1")],
            a_pod("foo"),
            {"hardPodAffinityWeight": 4},
            (100, 50, 0),
            id="weights",
        ),
        pytest.param(
            [a_pod(near=SOFT, node="n0")], a_pod("foo"), IGNORED, None, id="existing-ignored"
        ),
        pytest.param(
            [a_pod(near=SOFT, node="n0"), a_pod("bar", node="n1")],
            a_pod("foo", near=preferred((1, term(BAR)))),
            IGNORED,
            (100, 33, 0),
            id="existing-not-ignored-for-pods-with-preferences",
        ),
        pytest.param(
            [a_pod(far=HARD, node="n0")],
            a_pod("foo"),
            None,
            None,
            id="required-anti-affinity-does-not-score",
        ),
    ],
)
def test_score(
    existing: list[Pod], pod: Pod, args: Json | None, expected: tuple[int, ...] | None
) -> None:
    """Weights of matching terms add up per domain and are scaled to 0..100."""
    scores = scored(pod, two_zones(*existing), plugin=make_plugin(args))
    assert expected == (None if scores is None else tuple(scores.values()))


def test_kept_questions_follow_pods() -> None:
    """Cached values are derived again when pods with terms are added or deleted."""
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


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(clusters(), pods_to_place())
def test_filter_equals_twin(cluster: tuple[list[Node], list[Pod]], pod: Pod) -> None:
    """All rows at once get the answers of the node-by-node twin."""
    nodes, pods = cluster
    assert Twin(NAMESPACES).filter(pod, nodes, pods) == filtered(pod, snapshot_of(nodes, pods))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(clusters(), pods_to_place(), st.integers(0, 3), st.data())
def test_score_equals_twin(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, hard_weight: int, data: st.DataObject
) -> None:
    """All rows at once get the scores of the node-by-node twin."""
    nodes, pods = cluster
    names = [node.metadata.name for node in nodes]
    feasible = sorted(data.draw(st.sets(st.sampled_from(names), min_size=1)))
    expected = Twin(NAMESPACES, hard_weight).scores(pod, nodes, pods, feasible)
    plugin = make_plugin({"hardPodAffinityWeight": hard_weight})
    assert expected == scored(pod, snapshot_of(nodes, pods), feasible, plugin)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(clusters(), st.lists(pods_to_place(), min_size=1, max_size=3), st.data())
def test_answers_follow_pods(
    cluster: tuple[list[Node], list[Pod]], asked: list[Pod], data: st.DataObject
) -> None:
    """One plugin gives the answers of a new one while pods are added and removed."""
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


@pytest.mark.parametrize("weight", [-1, 101])
def test_args(weight: int) -> None:
    """The weight of required affinity is from 0 to 100."""
    with pytest.raises(ConfigError) as caught:
        make_plugin({"hardPodAffinityWeight": weight})
    text = f"args.hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0, 100]"
    assert text == str(caught.value)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(clusters(), pods_to_place(), st.data())
def test_what_if_equals_counting_anew(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
) -> None:
    """Adding and removing pods in a cloned state gives the answers for the changed cluster."""
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
