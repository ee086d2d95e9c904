"""Faults are told in upstream's words, alone and together."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.field_fault import (
    FieldFault,
    aggregate,
    duplicate,
    each,
    failed,
    forbidden,
    go_quoted,
    invalid,
    invalid_status,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)

from .verdicts import resource_of


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        pytest.param(required("a"), "a: Required value", id="required"),
        pytest.param(required("a", "why"), "a: Required value: why", id="required with detail"),
        pytest.param(forbidden("a", "why"), "a: Forbidden: why", id="forbidden"),
        pytest.param(invalid("a", "x", "why"), 'a: Invalid value: "x": why', id="text"),
        pytest.param(invalid("a", 5, "why"), "a: Invalid value: 5: why", id="number"),
        pytest.param(invalid("a", None, "why"), "a: Invalid value: null: why", id="nothing"),
        pytest.param(invalid("a", False, "why"), "a: Invalid value: false: why", id="truth"),
        pytest.param(
            invalid("a", {"b": ["<"]}, "why"),
            'a: Invalid value: {"b":["\\u003c"]}: why',
            id="object",
        ),
        pytest.param(duplicate("a", "x"), 'a: Duplicate value: "x"', id="duplicate"),
        pytest.param(not_found("a", "x"), 'a: Not found: "x"', id="not found"),
        pytest.param(
            not_supported("a", "x", ("b", "c")),
            'a: Unsupported value: "x": supported values: "b", "c"',
            id="not supported",
        ),
        pytest.param(too_long("a", 5), "a: Too long: may not be more than 5 bytes", id="too long"),
        pytest.param(
            too_many("a", 6, 5), "a: Too many: 6: must have at most 5 items", id="too many"
        ),
    ],
)
def test_texts(fault: FieldFault, text: str) -> None:
    """Each kind of fault has its words."""
    assert text == str(fault)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param("a b", '"a b"', id="plain"),
        pytest.param('"\\', '"\\"\\\\"', id="quotes"),
        pytest.param("\n\t\x00\x7f", '"\\n\\t\\x00\\x7f"', id="control characters"),
        pytest.param("é😀", '"é😀"', id="printable"),
        pytest.param("\u200b", '"\\u200b"', id="not printable"),
    ],
)
def test_quotes(text: str, quoted: str) -> None:
    """Texts are quoted as Go does."""
    assert quoted == go_quoted(text)


def test_one_value_may_break_several_rules() -> None:
    """Each broken rule is a fault."""
    faults = each("a", "x", ("first", "second"))
    assert ['a: Invalid value: "x": first', 'a: Invalid value: "x": second'] == [
        str(fault) for fault in faults
    ]


@pytest.mark.parametrize(
    ("texts", "together"),
    [
        pytest.param(["a"], "a", id="one"),
        pytest.param(["a", "b"], "[a, b]", id="two"),
        pytest.param(["a", "b", "a"], "[a, b]", id="repeated"),
        pytest.param(["a", "a"], "a", id="the same twice"),
    ],
)
def test_messages_together(texts: list[str], together: str) -> None:
    """Several messages stand in brackets, each once."""
    assert together == aggregate(texts)


def test_status() -> None:
    """All faults are causes, and the message tells each once."""
    faults = [required("spec.a"), required("spec.a"), forbidden("spec.b", "no")]
    error = invalid_status(resource_of("ReplicaSet", "apps"), "web", faults)
    message = 'ReplicaSet.apps "web" is invalid: [spec.a: Required value, spec.b: Forbidden: no]'
    assert (422, "Invalid", message) == (error.code, error.reason, error.message)
    once: dict[str, Any] = {
        "reason": "FieldValueRequired",
        "message": "Required value",
        "field": "spec.a",
    }
    other = {"reason": "FieldValueForbidden", "message": "Forbidden: no", "field": "spec.b"}
    expected = {"name": "web", "group": "apps", "kind": "ReplicaSet", "causes": [once, once, other]}
    assert expected == error.details


def test_what_could_not_be_looked_at() -> None:
    """Upstream tells its own troubles as faults too, with a reason of their own."""
    fault = failed("a", "why")
    assert ("InternalError", "a: Internal error: why") == (fault.reason, str(fault))
