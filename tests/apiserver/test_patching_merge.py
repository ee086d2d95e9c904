from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.patching import merge
from kubesched.apiserver.plain import deep_copy
from kubesched.apiserver.status import StatusError

NAMES = st.sampled_from(("a", "b", "c"))
# Lists hold no objects here: there the RFC and upstream part.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.lists(st.none() | st.integers(), max_size=2),
    lambda children: st.dictionaries(NAMES, children, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)


def _rfc_7386(target: Any, patch: Any) -> Any:
    """Apply a merge patch with the algorithm in RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _rfc_7386(merged.get(name), value)
    return merged


@pytest.mark.slow
@given(current=OBJECTS, patch=OBJECTS)
def test_merge_equals_the_algorithm_in_the_rfc(current: Any, patch: Any) -> None:
    """Neither argument is changed."""
    before = deep_copy((current, patch))
    assert _rfc_7386(current, patch) == merge(current, patch)
    assert before == (current, patch)


@pytest.mark.slow
@given(current=OBJECTS, patch=OBJECTS)
def test_a_patch_applied_twice_is_applied_once(current: Any, patch: Any) -> None:
    """Merge patches are idempotent."""
    once = merge(current, patch)
    assert once == merge(once, patch)


@given(current=OBJECTS)
def test_an_empty_patch_changes_nothing(current: Any) -> None:
    """{} is the identity."""
    assert current == merge(current, {})


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        pytest.param({}, [{"b": 1}, None], id="new"),
        pytest.param({"a": [1]}, [{"b": 1}, None], id="instead of a list"),
        pytest.param({"a": {"b": 1}}, [{"b": 1, "c": None}, None], id="instead of an object"),
    ],
)
def test_nulls_in_lists_of_objects(current: Any, expected: Any) -> None:
    """Objects in lists lose their nulls unless the list takes an object's place."""
    patch = {"a": [{"b": 1, "c": None}, None]}
    assert {"a": expected} == merge(current, patch)


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param(None, "Invalid JSON Patch", id="null"),
        pytest.param(
            [1],
            "error decoding patch: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}",
            id="array",
        ),
        pytest.param(
            True,
            "error decoding patch: json: cannot unmarshal bool into Go value of type "
            "map[string]interface {}",
            id="bool",
        ),
    ],
)
def test_malformed_patches(patch: Any, expected: str) -> None:
    """They are refused with 400."""
    with pytest.raises(StatusError) as caught:
        merge({}, patch)
    assert (400, "BadRequest", expected) == (
        caught.value.code,
        caught.value.reason,
        caught.value.message,
    )
