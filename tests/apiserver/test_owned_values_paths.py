from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.owned_values import (
    FieldSetError,
    from_fields_v1,
    key_element,
    path_text,
    sorted_paths,
    to_fields_v1,
    without_below,
)

ELEMENTS = st.sampled_from(("f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'))
SETS = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=6)


@given(fields=SETS)
def test_written_sets_read_back(fields: frozenset[tuple[str, ...]]) -> None:
    """Writing and reading again gives the same set."""
    assert fields == from_fields_v1(to_fields_v1(fields))


@given(fields=SETS, roots=SETS)
def test_without_below_leaves_what_has_no_such_beginning(
    fields: frozenset[tuple[str, ...]], roots: frozenset[tuple[str, ...]]
) -> None:
    """A slow twin agrees."""
    slow = {path for path in fields if not any(path[: len(root)] == root for root in roots)}
    assert slow == without_below(fields, roots)


def test_members_with_fields_below() -> None:
    """A dot distinguishes an owned member from a mere prefix of owned fields."""
    entry = key_element({"protocol": "TCP", "containerPort": 80})
    fields = frozenset({("f:a",), ("f:a", entry), ("f:b", "f:c")})
    written = to_fields_v1(fields)
    assert 'k:{"containerPort":80,"protocol":"TCP"}' == entry
    assert {"f:a": {".": {}, entry: {}}, "f:b": {"f:c": {}}} == written


@pytest.mark.parametrize("written", [[], {"a": {}}, {"f:a": 1}, {"f:a": {"g:b": {}}}, {"k:x": 1}])
def test_invalid_sets(written: Any) -> None:
    """Malformed field sets are refused."""
    with pytest.raises(FieldSetError):
        from_fields_v1(written)


def test_paths_as_text() -> None:
    """Fields, entries with keys and entries of sets each have a form."""
    path = ("f:spec", 'k:{"containerPort":80,"protocol":"TCP"}', 'v:"x"', "i:3")
    assert '.spec[containerPort=80,protocol="TCP"][="x"][3]' == path_text(path)


def test_order_of_paths() -> None:
    """Paths that end at a level come before those that go on; fields come before entries."""
    paths = [("f:b", "f:a"), ("v:1",), ("f:c",), ("f:a", "f:z"), ("f:b",)]
    expected = [("f:b",), ("f:c",), ("v:1",), ("f:a", "f:z"), ("f:b", "f:a")]
    assert expected == sorted_paths(paths)
