from __future__ import annotations

from typing import Any

import pytest

from kubesched.snapshot.affinity_terms import AffinityTerms, affinity_terms_of
from kubesched.testing.builders import make_pod

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
