"""Differences between answers, by key path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.simulator.evaluate import ABSENT, Difference, differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy", max_size=2), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        pytest.param({"a": 1}, {"a": 2}, [("a", "1", "2")], id="value"),
        pytest.param({"a": 1}, {}, [("a", "1", ABSENT)], id="missing"),
        pytest.param({}, {"a": 1}, [("a", ABSENT, "1")], id="unexpected"),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, [("a[1]", "2", "3")], id="element"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, [("a", "[1,2]", "[1]")], id="length"),
        pytest.param(
            {"a": [1, 2]}, {"a": [2, 1]}, [("a[0]", "1", "2"), ("a[1]", "2", "1")], id="order"
        ),
        pytest.param({"a": {"b": True}}, {"a": {"b": 1}}, [("a.b", "true", "1")], id="type"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, [], id="order-of-keys"),
    ],
)
def test_a_difference_has_its_path_and_both_values(
    expected: Any, got: Any, found: list[tuple[str, str, str]]
) -> None:
    """One per key that differs."""
    assert [Difference(*parts) for parts in found] == list(differences(expected, got))


@given(JSON, JSON)
def test_no_difference_if_and_only_if_json_is_equal(left: Any, right: Any) -> None:
    """For any two values."""

    def typed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [typed(item) for item in value]
        return (type(value).__name__, value)

    assert (typed(left) == typed(right)) == (not list(differences(left, right)))
