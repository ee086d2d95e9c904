from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver import patching
from kubesched.apiserver.status import StatusError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from(("a", "b", "c/d", "e~f")), children, max_size=3)
    ),
    max_leaves=8,
)


def _pointer(path: tuple[str, ...]) -> str:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        pytest.param({}, {"op": "add", "path": "/a"}, {"a": None}, id="no value is null"),
        pytest.param({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}, id="add over"),
        pytest.param(
            {"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}, id="insert"
        ),
        pytest.param(
            {"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}, id="append"
        ),
        pytest.param(
            {"a": [1]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2]}, id="add at end"
        ),
        pytest.param(
            {"a": [1, 2]}, {"op": "add", "path": "/a/-1", "value": 3}, {"a": [1, 2, 3]}, id="add -1"
        ),
        pytest.param(
            {"a": [1, 2]}, {"op": "remove", "path": "/a/-1"}, {"a": [1]}, id="from the end"
        ),
        pytest.param({"a": [1, 2]}, {"op": "remove", "path": "/a/00"}, {"a": [2]}, id="zeros"),
        pytest.param({}, {"op": "replace", "path": "/a", "value": 1}, {"a": 1}, id="replace new"),
        pytest.param({"a": 1}, {"op": "replace", "path": "", "value": [2]}, [2], id="everything"),
        pytest.param(
            {"a": {"b": 1}},
            {"op": "move", "from": "/a/b", "path": "/c"},
            {"a": {}, "c": 1},
            id="move",
        ),
        pytest.param(
            {"a": {"b": 1}},
            {"op": "copy", "from": "/a", "path": "/c"},
            {"a": {"b": 1}, "c": {"b": 1}},
            id="copy",
        ),
        pytest.param(
            {"a": 1}, {"op": "remove", "path": "ignored/a"}, {}, id="before the first slash"
        ),
        pytest.param({}, {"op": "test", "path": "/a", "value": None}, {}, id="missing is null"),
        pytest.param({}, {"op": "test", "path": "/a"}, {}, id="missing is not a value"),
        pytest.param({"": 1}, {"op": "remove", "path": "/"}, {}, id="an empty name"),
    ],
)
def test_operations(document: Any, operation: dict[str, Any], expected: Any) -> None:
    """Operations follow RFC 6902, with upstream's deviations."""
    assert expected == patching.apply_json_patch(document, [operation])


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "add", "path": ""}, id="add everything"),
        pytest.param({"op": "add", "path": "/x/y", "value": 1}, id="add to nothing"),
        pytest.param({"op": "add", "path": "/n/y", "value": 1}, id="add to a number"),
        pytest.param({"op": "add", "path": "/l/3", "value": 1}, id="add beyond the end"),
        pytest.param({"op": "add", "path": "/l/x", "value": 1}, id="no index"),
        pytest.param({"op": "add"}, id="no path"),
        pytest.param({"op": "copy", "path": "/x"}, id="no from"),
        pytest.param({"op": "remove", "path": "/x"}, id="remove nothing"),
        pytest.param({"op": "remove", "path": "/l/2"}, id="remove beyond the end"),
        pytest.param({"op": "remove", "path": "/l/-3"}, id="remove before the start"),
        pytest.param({"op": "remove", "path": "/l/-"}, id="remove the next"),
        pytest.param({"op": "remove", "path": f"/l/{'1' * 5000}"}, id="an endless index"),
        pytest.param({"op": "replace", "path": "", "value": 1}, id="a number for everything"),
        pytest.param({"op": "replace", "path": "/l/2", "value": 1}, id="replace beyond the end"),
        pytest.param({"op": "test", "path": "/n", "value": 1.0}, id="test another number"),
        pytest.param({"op": "test", "path": "/n", "value": True}, id="test true"),
        pytest.param({"op": "test", "path": "/n"}, id="test no value"),
        pytest.param({"op": "Add", "path": "/x", "value": 1}, id="case matters"),
        pytest.param({}, id="empty"),
    ],
)
def test_operations_that_do_not_apply(operation: dict[str, Any]) -> None:
    """They are refused with 422, and the object does not change."""
    document = {"n": 1, "l": [1, 2]}
    with pytest.raises(StatusError) as caught:
        patching.apply_json_patch(document, [operation])
    assert (422, "Invalid", {}) == (
        caught.value.code,
        caught.value.reason,
        caught.value.details,
    )
    assert {"n": 1, "l": [1, 2]} == document


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param(1, "number into Go value of type []handlers.jsonPatchOp", id="number"),
        pytest.param(["x"], "string into Go value of type handlers.jsonPatchOp", id="entry"),
        pytest.param(
            [{"op": 1}], "number into Go struct field jsonPatchOp.op of type string", id="op"
        ),
    ],
)
def test_malformed_patches(operations: Any, expected: str) -> None:
    """They are refused with 400 and Go's messages."""
    with pytest.raises(StatusError) as caught:
        patching.apply_json_patch({}, operations)
    assert 400 == caught.value.code
    assert f"error decoding patch: json: cannot unmarshal {expected}" == caught.value.message


def test_too_many_operations() -> None:
    """Ten thousand operations are the most."""
    with pytest.raises(StatusError) as caught:
        patching.apply_json_patch({}, [{"op": "test", "path": "/a"}] * 10_001)
    assert (413, "RequestEntityTooLarge") == (caught.value.code, caught.value.reason)


def test_copies_that_grow_without_bounds() -> None:
    """They are refused before they fill the memory."""
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/{at}"} for at in range(100)]
    with pytest.raises(StatusError) as caught:
        patching.apply_json_patch({"a": {}}, doubling)
    assert 422 == caught.value.code


def test_null_changes_nothing() -> None:
    """Upstream reads null as an empty list of operations."""
    assert {"a": 1} == patching.apply_json_patch({"a": 1}, None)


@given(document=st.dictionaries(st.sampled_from(("a", "c/d", "e~f")), JSON, max_size=3), value=JSON)
def test_adding_testing_and_removing(document: Any, value: Any) -> None:
    """The three operations in a row give the same object again."""
    path = _pointer(("new/~1",))
    steps = [
        {"op": "add", "path": path, "value": value},
        {"op": "test", "path": path, "value": value},
        {"op": "remove", "path": path},
    ]
    assert document == patching.apply_json_patch(document, steps)
