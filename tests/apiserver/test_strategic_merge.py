from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver import strategic_merge
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.schema import ObjectType, type_of
from kubesched.apiserver.status import StatusError

NAMES = st.sampled_from(("a", "b", "c", "d"))


def _pod(**spec: Any) -> Plain:
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


def _type(kind: str) -> ObjectType:
    versions = ("v1", "apps/v1", "policy/v1")
    return next(found for one in versions if (found := type_of(one, kind)) is not None)


def _merged(current: Plain, patch: Plain) -> Any:
    before = deep_copy((current, patch))
    merged = strategic_merge.apply(_type(current["kind"]), current, patch)
    assert before == (current, patch)
    return merged


def _containers(*entries: str) -> list[Plain]:
    return [{"name": name, "image": image} for name, image in (one.split("=") for one in entries)]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param(_containers("b=2"), _containers("a=1", "b=2", "c=1"), id="in place"),
        pytest.param(_containers("d=2"), _containers("d=2", "a=1", "b=1", "c=1"), id="new first"),
        pytest.param(
            _containers("c=2", "a=2"),
            _containers("b=1", "c=2", "a=2"),
            id="the patch's order, others before their successors",
        ),
        pytest.param(
            [{"$patch": "delete", "name": "b"}], _containers("a=1", "c=1"), id="delete an entry"
        ),
        pytest.param(
            [{"$patch": "delete", "name": "x"}],
            _containers("a=1", "b=1", "c=1"),
            id="delete an absent entry",
        ),
        pytest.param(
            [{"$patch": "replace"}, *_containers("z=1")], _containers("z=1"), id="replace the list"
        ),
        pytest.param([{"$patch": "replace"}], [], id="replace by nothing"),
        pytest.param([], _containers("a=1", "b=1", "c=1"), id="empty"),
        pytest.param(
            [{"name": "a", "image": None}],
            [{"name": "a"}, *_containers("b=1", "c=1")],
            id="null in an entry",
        ),
    ],
)
def test_lists_with_a_merge_key(patch: list[Plain], expected: list[Plain]) -> None:
    """Entries merge by their key; directives apply to entries and to the list."""
    current = _pod(containers=_containers("a=1", "b=1", "c=1"))
    assert _pod(containers=expected) == _merged(current, {"spec": {"containers": patch}})


def test_an_element_order_sorts_the_live_list() -> None:
    """$setElementOrder sorts without other changes; entries it does not name keep their place."""
    order = [{"name": "c"}, {"name": "a"}]
    current = _pod(containers=_containers("a=1", "b=1", "c=1"))
    patch = {"spec": {"$setElementOrder/containers": order}}
    assert _containers("b=1", "c=1", "a=1") == _merged(current, patch)["spec"]["containers"]


def test_an_element_order_with_new_and_deleted_entries() -> None:
    """A patch that kubectl sends for an edited list gives the order in the patch."""
    current = _pod(containers=_containers("a=1", "b=1", "live=1"))
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "new"}, {"name": "a"}],
            "containers": [
                {"name": "new", "image": "2"},
                {"name": "a", "image": "2"},
                {"name": "b", "$patch": "delete"},
            ],
        }
    }
    expected = _containers("new=2", "a=2", "live=1")
    assert expected == _merged(current, patch)["spec"]["containers"]


def test_an_element_order_for_a_list_that_is_new() -> None:
    """The list of the patch is taken, without its directives."""
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [
                {"name": "b"},
                {"name": "a"},
                {"name": "x", "$patch": "delete"},
            ],
        }
    }
    assert [{"name": "b"}, {"name": "a"}] == _merged(_pod(), patch)["spec"]["containers"]


def test_lists_of_text_merge_as_sets() -> None:
    """Finalizers of the patch come first; a directive deletes from the list."""
    current = {"kind": "Pod", "apiVersion": "v1", "metadata": {"finalizers": ["a", "b", "c"]}}
    added = _merged(current, {"metadata": {"finalizers": ["d", "b"]}})
    assert ["d", "a", "b", "c"] == added["metadata"]["finalizers"]
    left = _merged(current, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}})
    assert ["b", "c"] == left["metadata"]["finalizers"]
    sorted_anew = _merged(current, {"metadata": {"$setElementOrder/finalizers": ["c", "a"]}})
    assert ["b", "c", "a"] == sorted_anew["metadata"]["finalizers"]


def test_retained_keys() -> None:
    """Only the fields named survive; a volume changes its source this way."""
    current = _pod(volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}])
    entry = {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}
    expected = [{"name": "v", "configMap": {"name": "c"}}]
    assert expected == _merged(current, {"spec": {"volumes": [entry]}})["spec"]["volumes"]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"$patch": "replace", "b": "2"}, {"b": "2"}, id="replace"),
        pytest.param({"$patch": "delete"}, {}, id="delete"),
        pytest.param({"a": None, "b": "2"}, {"b": "2"}, id="null"),
        pytest.param({"x": None}, {"a": "1"}, id="null for nothing"),
    ],
)
def test_maps(patch: Plain, expected: Plain) -> None:
    """Maps merge by field; a directive replaces or empties them."""
    current = _pod(nodeSelector={"a": "1"})
    assert _pod(nodeSelector=expected) == _merged(current, {"spec": {"nodeSelector": patch}})


def test_a_selector_of_a_disruption_budget_is_replaced() -> None:
    """It is the only object with the patch strategy `replace`."""
    current = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": {"selector": {"matchLabels": {"a": "1"}}},
    }
    merged = _merged(current, {"spec": {"selector": {"matchLabels": {"b": "2"}}}})
    assert {"matchLabels": {"b": "2"}} == merged["spec"]["selector"]


def test_new_values_lose_nulls_and_directives() -> None:
    """Fields that the object lacks are taken from the patch without nulls and directives."""
    patch = {
        "spec": {
            "containers": [{"name": "a", "image": None}, {"name": "b", "$patch": "delete"}],
            "nodeSelector": {"$patch": "delete"},
        }
    }
    assert _pod(containers=[{"name": "a"}]) == _merged(_pod(), patch)


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        pytest.param([], 400, "json: cannot unmarshal array into Go value", id="no object"),
        pytest.param({"$patch": "x"}, 500, "unknown patch type: x", id="root"),
        pytest.param(
            {"spec": {"containers": [{"name": "a", "$patch": "merge"}]}},
            500,
            "merging lists cannot yet be specified in the patch",
            id="merge",
        ),
        pytest.param(
            {"spec": {"containers": [{"$patch": "delete"}]}},
            500,
            "map does not contain declared merge key: name",
            id="delete without a key",
        ),
        pytest.param(
            {"spec": {"$retainKeys": ["x"], "nodeName": "n"}},
            400,
            "invalid patch format of retainKeys",
            id="not retained",
        ),
        pytest.param(
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "b"}],
                    "containers": [{"name": "a"}],
                }
            },
            500,
            "The order in patch list doesn't match $setElementOrder list",
            id="order",
        ),
        pytest.param(
            {"spec": {"$deleteFromPrimitiveListX": []}},
            400,
            "invalid patch format of primitive list",
            id="no list named",
        ),
        pytest.param(
            {"spec": {"containers": [1]}},
            500,
            "list element types are not identical",
            id="mixed",
        ),
    ],
)
def test_invalid_patches(patch: Any, code: int, message: str) -> None:
    """Code and message are upstream's."""
    with pytest.raises(StatusError) as caught:
        strategic_merge.apply(_type("Pod"), _pod(containers=_containers("a=1")), patch)
    assert code == caught.value.code
    assert caught.value.message.startswith(message)


ENTRIES = st.lists(NAMES, unique=True, max_size=4).map(
    lambda names: [{"name": name, "image": name} for name in names]
)


def test_an_entry_that_is_null_beside_an_element_order_is_refused() -> None:
    """An entry that is not an object raises StatusError, not TypeError."""
    patch = {
        "spec": {
            "containers": [None],
            "$setElementOrder/containers": [{"name": "a"}],
        }
    }
    with pytest.raises(StatusError, match="expected a map"):
        strategic_merge.apply(
            _type("Pod"), {"apiVersion": "v1", "spec": {"containers": _containers("a=1")}}, patch
        )


@given(current=ENTRIES)
def test_an_empty_patch_changes_nothing(current: list[Plain]) -> None:
    """{} returns an equal object."""
    pod = _pod(containers=current)
    assert pod == _merged(pod, {})


@given(current=ENTRIES, patch=ENTRIES)
def test_merging_twice_is_merging_once(current: list[Plain], patch: list[Plain]) -> None:
    """Merging is idempotent; the result has all names, those of the patch in its order."""
    wanted = {"spec": {"containers": patch}}
    once = _merged(_pod(containers=current), wanted)
    assert once == _merged(once, wanted)
    names = [one["name"] for one in once["spec"]["containers"]]
    chosen = [one["name"] for one in patch]
    assert sorted({one["name"] for one in (*current, *patch)}) == sorted(names)
    assert chosen == [name for name in names if name in chosen]


@given(before=ENTRIES, after=ENTRIES)
def test_a_patch_of_differences_gives_the_list(before: list[Plain], after: list[Plain]) -> None:
    """The patch that kubectl computes from two lists turns the first into the second."""
    kept = [one["name"] for one in after]
    deleted = [
        {"name": one["name"], "$patch": "delete"} for one in before if one["name"] not in kept
    ]
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": name} for name in kept],
            "containers": [*after, *deleted],
        }
    }
    if before or after:
        merged = _merged(_pod(containers=before), patch)
        assert after == merged["spec"]["containers"]
