"""Field errors read as upstream's field errors do."""

import pytest

from kubesched.api.field_errors import (
    ConfigError,
    FieldError,
    aggregate,
    camel_case,
    child,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)


@pytest.mark.parametrize(
    ("field_error", "text"),
    [
        pytest.param(
            invalid("a.b[0]", "x", "bad"), 'a.b[0]: Invalid value: "x": bad', id="invalid-text"
        ),
        pytest.param(invalid("a", -1, "bad"), "a: Invalid value: -1: bad", id="invalid-number"),
        pytest.param(invalid("a", True, ""), "a: Invalid value: true", id="invalid-boolean"),
        pytest.param(
            invalid("a", {"b": [1, None]}, "bad"),
            'a: Invalid value: {"b":[1,null]}: bad',
            id="invalid-structure",
        ),
        pytest.param(required("a"), "a: Required value", id="required"),
        pytest.param(required("a", "why"), "a: Required value: why", id="required-why"),
        pytest.param(duplicate("a", "x"), 'a: Duplicate value: "x"', id="duplicate"),
        pytest.param(
            not_supported("a", "x", ["A", "B"]),
            'a: Unsupported value: "x": supported values: "A", "B"',
            id="not-supported",
        ),
        pytest.param(not_supported("a", "x", []), 'a: Unsupported value: "x"', id="no-choices"),
        pytest.param(forbidden("a", "why"), "a: Forbidden: why", id="forbidden"),
        pytest.param(
            invalid("a", {"b": ["<"]}, "bad"),
            'a: Invalid value: {"b":["\\u003c"]}: bad',
            id="invalid-html",
        ),
        pytest.param(not_found("a", "x"), 'a: Not found: "x"', id="not-found"),
        pytest.param(too_long("a", 5), "a: Too long: may not be more than 5 bytes", id="too-long"),
        pytest.param(FieldError("", "no place"), "no place", id="no-path"),
    ],
)
def test_field_error_text(field_error: FieldError, text: str) -> None:
    """A field error prints as `path: kind: value: detail`."""
    assert text == str(field_error)


def test_child() -> None:
    """A path is extended by names and indices, also an empty one."""
    expected = "profiles[0].plugins"
    assert expected == child("", "profiles", 0, "plugins")


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
    """Several messages are in brackets, without duplicates."""
    assert together == aggregate(texts)


def test_config_error_has_a_line_per_field_error() -> None:
    """The error carries the field errors and prints one line for each."""
    error = ConfigError([required("a"), required("b")])
    expected = "a: Required value\nb: Required value"
    assert expected == str(error)
    assert len(error.errors) == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [("at", "at"), ("host_port", "hostPort"), ("p50_seconds", "p50Seconds")],
)
def test_names_of_fields_in_json(name: str, expected: str) -> None:
    """They are in camel case, as msgspec renames fields."""
    assert expected == camel_case(name)
