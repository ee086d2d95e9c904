"""Field errors are worded as upstream's, alone and together."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.field_errors import FieldError
from kubesched.apiserver.status import FieldErrors, invalid_kind


def _one(kind: str, *arguments: Any) -> FieldError:
    errors = FieldErrors()
    getattr(errors, kind)(*arguments)
    (error,) = errors
    return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(_one("required", "a"), "a: Required value", id="required"),
        pytest.param(
            _one("required", "a", "why"), "a: Required value: why", id="required with detail"
        ),
        pytest.param(_one("forbidden", "a", "why"), "a: Forbidden: why", id="forbidden"),
        pytest.param(_one("invalid", "a", "x", "why"), 'a: Invalid value: "x": why', id="text"),
        pytest.param(_one("invalid", "a", 5, "why"), "a: Invalid value: 5: why", id="number"),
        pytest.param(
            _one("invalid", "a", None, "why"), "a: Invalid value: null: why", id="nothing"
        ),
        pytest.param(
            _one("invalid", "a", False, "why"), "a: Invalid value: false: why", id="truth"
        ),
        pytest.param(
            _one("invalid", "a", {"b": ["<"]}, "why"),
            'a: Invalid value: {"b":["\\u003c"]}: why',
            id="object",
        ),
        pytest.param(_one("duplicate", "a", "x"), 'a: Duplicate value: "x"', id="duplicate"),
        pytest.param(_one("not_found", "a", "x"), 'a: Not found: "x"', id="not found"),
        pytest.param(
            _one("not_supported", "a", "x", ("b", "c")),
            'a: Unsupported value: "x": supported values: "b", "c"',
            id="not supported",
        ),
        pytest.param(
            _one("too_long", "a", 5), "a: Too long: may not be more than 5 bytes", id="too long"
        ),
    ],
)
def test_texts(error: FieldError, text: str) -> None:
    """Each kind of error has its words."""
    assert text == str(error)


def test_one_value_may_break_several_rules() -> None:
    """Each broken rule is an error."""
    errors = FieldErrors()
    errors.each("a", "x", ("first", "second"))
    assert ['a: Invalid value: "x": first', 'a: Invalid value: "x": second'] == [
        str(error) for error in errors
    ]


def test_status() -> None:
    """All errors are causes, and the message has each once."""
    errors = [
        _one("required", "spec.a"),
        _one("required", "spec.a"),
        _one("forbidden", "spec.b", "no"),
    ]
    error = invalid_kind("apps", "ReplicaSet", "web", errors)
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


def test_internal_errors() -> None:
    """Upstream's internal errors have a reason of their own."""
    error = _one("failed", "a", "why")
    assert ("InternalError", "a: Internal error: why") == (error.reason, str(error))


def test_immutable_fields() -> None:
    """A changed value is an error, a change between empty values is not."""
    errors = FieldErrors()
    errors.changed("a", "x", "x")
    errors.changed("a", None, {})
    errors.changed("a", 1, 2)
    assert ["a: Invalid value: 1: field is immutable"] == [str(error) for error in errors]


def test_errors_that_another_makes_redundant_are_dropped() -> None:
    """Errors at a path and below it are dropped, those with only a common prefix are not."""
    errors = FieldErrors()
    for field in ("a", "a.b", "a[0].c", "ab"):
        errors.required(field)
    errors.drop("a")
    assert ["ab"] == [error.path for error in errors]
