from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.snapshot.affinity_terms import (
    AffinityTerms,
    OwnedTerms,
    TermKind,
    affinity_terms_of,
    owned_terms_of,
)
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_table

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM: dict[str, Any] = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "foo"}}}
WRONG: dict[str, Any] = {
    "topologyKey": "zone",
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near"}]},
}
REASON = '"Near" is not a valid pod selector operator'


def test_pods_without_terms() -> None:
    """Without pod affinity the result is None; an empty one has no terms."""
    assert affinity_terms_of(make_pod()) is None
    assert affinity_terms_of(make_pod(node_affinity={})) is None
    empty = affinity_terms_of(make_pod(pod_affinity={}))
    assert empty is not None
    assert AffinityTerms() == empty


@pytest.mark.parametrize(
    ("more", "namespaces"),
    [
        pytest.param({}, {"team"}, id="own-namespace"),
        pytest.param({"namespaces": ["a", "b"]}, {"a", "b"}, id="named"),
        pytest.param({"namespaceSelector": {}}, set(), id="selected"),
        pytest.param({"namespaces": ["a"], "namespaceSelector": {}}, {"a"}, id="both"),
    ],
)
def test_namespaces(more: dict[str, Any], namespaces: set[str]) -> None:
    """A term selects the owner's namespace unless it names or selects others."""
    pod = make_pod(namespace="team", pod_affinity={REQUIRED: [{**TERM, **more}]})
    terms = affinity_terms_of(pod)
    assert terms is not None
    (term,) = terms.required_affinity
    assert namespaces == term.namespaces
    assert ("namespaceSelector" in more) == term.matches("x", {"app": "foo"}, {})
    assert ("team" in namespaces or "namespaceSelector" in more) == term.matches(
        "team", {"app": "foo"}, {}
    )
    assert not term.matches("team", {"app": "bar"}, {})


def test_kinds_that_cannot_be_parsed() -> None:
    """A kind with an invalid term is left out and reported; other kinds are kept."""
    weighted = [{"weight": 7, "podAffinityTerm": TERM}]
    pod = make_pod(
        pod_affinity={REQUIRED: [TERM, WRONG], PREFERRED: weighted},
        pod_anti_affinity={REQUIRED: [TERM]},
    )
    terms = affinity_terms_of(pod)
    assert terms is not None
    assert f"requiredAffinityTerms: {REASON}" == terms.error
    assert () == terms.required_affinity
    assert 1 == len(terms.required_anti_affinity)
    assert [7] == [term.weight for term in terms.preferred_affinity]
    both = make_pod(pod_affinity={REQUIRED: [WRONG]}, pod_anti_affinity={REQUIRED: [WRONG]})
    terms = affinity_terms_of(both)
    assert terms is not None
    expected = f"[requiredAffinityTerms: {REASON}, requiredAntiAffinityTerms: {REASON}]"
    assert expected == terms.error


# The index of terms.


NAMESPACES = {"default": {"team": "x"}, "other": {"team": "y"}, "plain": {}}


# Strategies are made once: to make one takes longer than to draw from it.
SELECTORS = st.sampled_from(
    [
        {"matchLabels": {"app": "foo"}},
        {"matchLabels": {"app": "bar"}},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        *(
            {"matchExpressions": [{"key": key, "operator": "NotIn", "values": values}, *more]}
            for key, values in (("app", ["foo"]), ("app", ["bar", "baz"]), ("tier", ["db"]))
            for more in ([], [{"key": "app", "operator": "Exists"}])
        ),
    ]
)
NAMESPACE_LISTS = st.lists(st.sampled_from(sorted(NAMESPACES)), min_size=1)
NAMESPACE_SELECTORS = st.sampled_from(
    [{}, {}, {"matchLabels": {"team": "x"}}, {"matchLabels": {"team": "y"}}]
)


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    """A term that names namespaces, selects them, or uses the owner's."""
    term: dict[str, Any] = {"topologyKey": "zone", "labelSelector": draw(SELECTORS)}
    if draw(st.booleans()):
        term["namespaces"] = draw(NAMESPACE_LISTS)
    if draw(st.booleans()):
        term["namespaceSelector"] = draw(NAMESPACE_SELECTORS)
    return term


TERM_LISTS = st.lists(terms())
SHORT_TERM_LISTS = st.lists(terms(), max_size=2)
OWN_NAMESPACES = st.sampled_from(["default", "other"])


@st.composite
def owners(draw: st.DrawFn) -> PodInfo:
    """A pod with terms of every kind."""
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in draw(TERM_LISTS)]
    return PodInfo(
        make_pod(
            namespace=draw(OWN_NAMESPACES),
            pod_affinity={REQUIRED: draw(SHORT_TERM_LISTS), PREFERRED: weighted},
            pod_anti_affinity={REQUIRED: draw(SHORT_TERM_LISTS), PREFERRED: weighted},
        )
    )


def _affinity_of(pod: PodInfo) -> AffinityTerms:
    assert pod.template.affinity is not None
    return pod.template.affinity


@pytest.mark.slow
@given(st.lists(owners(), max_size=5), st.data())
def test_matching_equals_asking_every_owner(pods: list[PodInfo], data: st.DataObject) -> None:
    """The parts that the index finds add up, for each owner, to the number of matching terms."""
    terms = OwnedTerms()
    for pod in pods:
        terms.count(_affinity_of(pod), 1)
    gone = data.draw(st.lists(st.sampled_from(range(len(pods))), unique=True)) if pods else []
    versions = [bucket.version for bucket in terms.filtering.about("default")]
    for at in gone:
        terms.count(_affinity_of(pods[at]), -1)
    left = [pod for at, pod in enumerate(pods) if at not in gone]
    for namespace, labels in NAMESPACES.items():
        found = [
            owned
            for index in (terms.filtering, terms.scoring)
            for owned in index.matching(namespace, {"app": "foo"}, labels)
        ]
        assert len(set(found)) == len(found)
        own = {owned for pod in left for owned in owned_terms_of(_affinity_of(pod))}
        assert own >= set(found)
        for pod in left:
            affinity = _affinity_of(pod)
            for kind in TermKind:
                parts = [one for one in owned_terms_of(affinity) if one.kind is kind]
                whole = getattr(affinity, kind.value)
                matching = sum(term.matches(namespace, {"app": "foo"}, labels) for term in whole)
                total = sum(one.weight for one in parts if one in found)
                assert matching == (-total if kind is TermKind.PREFERRED_ANTI_AFFINITY else total)
    after = [bucket.version for bucket in terms.filtering.about("default")]
    assert gone or versions == after


def test_versions_move_with_the_set_of_terms() -> None:
    """Only the first and the last owner of a term change the version."""
    pod = PodInfo(make_pod(pod_anti_affinity={REQUIRED: [TERM]}))
    table = make_table([make_node()])
    index = table.groups.owned_terms.filtering
    empty = index.about("default")[0]
    table.add_pod(pod, 0)
    bucket = index.about("default")[0]
    assert bucket is not empty
    version = bucket.version
    other = PodInfo(make_pod("q", labels={"a": "b"}, pod_anti_affinity={REQUIRED: [TERM]}))
    table.add_pod(other, 0)
    assert version == bucket.version
    table.remove_pod(other, 0)
    assert version == bucket.version
    assert bucket is index.about("default")[0]
    table.remove_pod(pod, 0)
    assert version != bucket.version
    assert empty is index.about("default")[0]
