from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.owned_values import compare, field_set, merge, remove, type_errors
from kubesched.apiserver.plain import Plain, deep_copy

from .verdicts import resource_of

NAMES = st.sampled_from(("a", "b", "c"))
TEXTS = st.sampled_from(("1", "2"))


POD = resource_of("Pod").type


def _pod(**spec: Any) -> Plain:
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"image": TEXTS, "tty": st.booleans()}),
    unique_by=lambda one: one["name"],
    min_size=1,
    max_size=3,
)
PODS = st.fixed_dictionaries(
    {"restartPolicy": TEXTS},
    optional={
        "containers": CONTAINERS,
        "nodeSelector": st.dictionaries(NAMES, TEXTS, min_size=1, max_size=2),
        "nodeName": TEXTS,
        "tolerations": st.lists(st.fixed_dictionaries({"key": NAMES}), max_size=2),
    },
).map(lambda spec: _pod(**spec))


@given(old=PODS, new=PODS)
def test_comparing_is_symmetric(old: Plain, new: Plain) -> None:
    """Swapping old and new swaps added and removed; equal objects have no differences."""
    there, back = compare(old, new, POD), compare(new, old, POD)
    assert back.removed <= there.changed
    assert there.removed <= back.changed
    assert there.changed - back.removed == back.changed - there.removed
    if old == new:
        assert not there.changed | there.removed


@pytest.mark.slow
@given(live=PODS, applied=PODS)
def test_merging(live: Plain, applied: Plain) -> None:
    """All applied fields are in the result, no live field is lost, and merging is idempotent."""
    before = deep_copy((live, applied))
    merged = merge(live, applied, POD)
    assert before == (live, applied)
    assert merged == merge(merged, applied, POD)
    changes = compare(live, merged, POD)
    assert not changes.removed
    assert field_set(applied, POD) <= field_set(merged, POD)
    names = [one["name"] for one in applied["spec"].get("containers", ())]
    order = [one["name"] for one in merged["spec"].get("containers", ()) if one["name"] in names]
    assert names == order


@given(live=PODS)
def test_merging_into_an_empty_object_gives_the_applied_one(live: Plain) -> None:
    """An empty live object has nothing to keep."""
    assert live == merge({}, live, POD)


@given(pod=PODS, other=PODS)
def test_removing(pod: Plain, other: Plain) -> None:
    """Exactly the given fields and their children are removed."""
    mine, others = field_set(pod, POD), field_set(other, POD)
    left = field_set(remove(pod, others, POD), POD)
    gone = {path for path in mine if any(path[: len(one)] == one for one in others)}
    # A map or list that loses all its entries stays as an empty field.
    emptied = {path[:length] for path in gone for length in range(1, len(path))}
    assert mine - gone == left - (emptied - mine)
    assert pod == remove(pod, frozenset(), POD)


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        pytest.param("abc", "b", "abc", id="in place"),
        pytest.param("abc", "cb", "acb", id="the applied order"),
        pytest.param("abc", "xb", "axbc", id="new before its successor"),
        pytest.param("abc", "bx", "abcx", id="new at the end"),
        pytest.param("", "ba", "ba", id="nothing live"),
        pytest.param("ab", "", "ab", id="nothing applied"),
        pytest.param("abcd", "da", "bcda", id="reversed"),
    ],
)
def test_order_of_merged_lists(live: str, applied: str, expected: str) -> None:
    """Both orders are kept where they agree; otherwise the applied order wins."""
    one, other = (_pod(containers=[{"name": name} for name in names]) for names in (live, applied))
    merged = merge(one, other, POD)["spec"]["containers"]
    assert expected == "".join(container["name"] for container in merged)


def test_fields_of_lists_maps_and_structs() -> None:
    """Scalars and the entries of maps and keyed lists are fields; an atomic value is one field."""
    pod = _pod(
        containers=[{"name": "a", "ports": [{"containerPort": 80}], "resources": {}}],
        nodeSelector={"x": "1"},
        tolerations=[{"key": "k"}],
        affinity={"nodeAffinity": {}},
    ) | {"metadata": {"finalizers": ["f"], "labels": {}}}
    container = ("f:spec", "f:containers", 'k:{"name":"a"}')
    port = (*container, "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}')
    expected = {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata", "f:finalizers", 'v:"f"'),
        ("f:metadata", "f:labels"),
        container,
        (*container, "f:name"),
        port,
        (*port, "f:containerPort"),
        (*container, "f:resources"),
        ("f:spec", "f:nodeSelector"),
        ("f:spec", "f:tolerations"),
        ("f:spec", "f:affinity", "f:nodeAffinity"),
    }
    assert expected == field_set(pod, POD)


def test_duplicates_are_owned_together() -> None:
    """Entries with equal keys are one field, which changes as a whole."""
    single = _pod(containers=[{"name": "a", "image": "1"}])
    double = _pod(containers=[{"name": "a", "image": "1"}, {"name": "a", "image": "2"}])
    element = ("f:spec", "f:containers", 'k:{"name":"a"}')
    assert element in field_set(double, POD)
    assert (*element, "f:image") not in field_set(double, POD)
    changes = compare(single, double, POD)
    assert element in changes.changed
    assert (*element, "f:image") in changes.removed


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            {"metadata": {"name": True}},
            ".metadata.name: expected string",
            id="text",
        ),
        pytest.param(
            _pod(priority="x"),
            ".spec.priority: expected numeric (int or float)",
            id="number",
        ),
        pytest.param(_pod(hostNetwork=1), ".spec.hostNetwork: expected boolean", id="boolean"),
        pytest.param(_pod(containers={}), ".spec.containers: expected list", id="list"),
        pytest.param({"spec": []}, ".spec: expected map", id="map"),
        pytest.param(_pod(x=1), ".spec.x: field not declared in schema", id="unknown"),
        pytest.param(
            _pod(containers=[{}, {}]),
            '.spec.containers: duplicate entries for key [name=""]',
            id="keys that have to be there",
        ),
        pytest.param(
            _pod(containers=[{"name": "a"}, {"name": "a"}]),
            '.spec.containers: duplicate entries for key [name="a"]',
            id="duplicates",
        ),
        pytest.param(
            {"metadata": {"finalizers": [{}]}},
            ".metadata.finalizers: element 0: associative list without keys has an element "
            "that is not a scalar",
            id="an object in a set",
        ),
        pytest.param(
            _pod(containers=[{"name": "a", "resources": {"limits": {"cpu": []}}}]),
            '.spec.containers[name="a"].resources.limits.cpu: expected any scalar',
            id="quantity",
        ),
    ],
)
def test_type_errors(value: Plain, expected: str) -> None:
    """Errors name the path of the value."""
    assert [expected] == list(type_errors(value, POD))


def test_entries_without_a_key() -> None:
    """A key that may be left out has no value where it is."""
    accounts = resource_of("ServiceAccount").type
    assert [
        (
            ".secrets: element 0: associative list with keys has an element that omits "
            'all key fields ["name"] (and doesn\'t have default values for any key fields)'
        )
    ] == list(type_errors({"secrets": [{}]}, accounts))
