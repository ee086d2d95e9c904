"""Reading YAML and JSON as upstream reads them, and surviving hostile text."""

from typing import Any

import pytest

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.config.documents import read_document


def _read(text: str | bytes) -> Any:
    errors: list[FieldError] = []
    value = read_document(text, errors)
    assert not errors
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n---\n", None),
        ("a: yes", {"a": True}),
        ("a: Off", {"a": False}),
        ("a: 'yes'", {"a": "yes"}),
        ("a: !!str yes", {"a": "yes"}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: 010", {"a": 8}),
        ("a: 0o10", {"a": 8}),
        ("a: 0x1F", {"a": 31}),
        ("a: -1_000", {"a": -1000}),
        ("a: 16.0", {"a": 16}),
        ("a: 1e3", {"a": 1000}),
        ("a: 1.5", {"a": 1.5}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("1: x", {"1": "x"}),
        ("v: &v {a: 1, b: 2}\nw: {<<: *v, a: 3}", {"v": {"a": 1, "b": 2}, "w": {"a": 3, "b": 2}}),
        ('{"a":\t[1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("{a: b}", {"a": "b"}),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        ("a: 1\n---\n# empty\n", {"a": 1}),
    ],
)
def test_values(text: str | bytes, value: object) -> None:
    """Scalars have the values of go-yaml v2."""
    assert value == _read(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [{b: 1, b: 2, b: 3}]\na: [{b: 1, b: 2}]", id="yaml"),
        pytest.param('{"a": [{"b": 1, "b": 2}], "a": [{"b": 1, "b": 2}]}', id="json"),
    ],
)
def test_duplicate_keys(text: str) -> None:
    """A key that comes twice is a field error where it is; the last value counts."""
    errors: list[FieldError] = []
    assert read_document(text, errors) == {"a": [{"b": 2}]}
    assert [field_error.path for field_error in errors] == ["a", "a[0].b"]


_BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "cannot read YAML: line 2, column 1", id="syntax"),
        pytest.param("a: 1\n---\nb: 2", "expected one document, found 2", id="two-documents"),
        pytest.param(b"a: \xff", "not UTF-8 text: byte 3 is 0xff", id="not-utf-8"),
        pytest.param("a: \x00", "cannot read YAML: unacceptable character", id="nul"),
        pytest.param(_BOMB, "its aliases make it too large", id="alias-bomb"),
        pytest.param("a: &a [*a]", "nested", id="endless"),
        pytest.param(
            "[" * 5000, "nested deeper than 200 levels", id="deep-yaml", marks=pytest.mark.slow
        ),
        pytest.param('{"a":' * 200 + "1" + "}" * 200, "nested too deeply", id="deep-json"),
        pytest.param("{[a]: b}", "found unhashable key", id="key"),
        pytest.param("<<: 1", "map merge requires map", id="merge"),
        pytest.param("a: *b", "found undefined alias", id="alias"),
    ],
)
def test_unreadable(text: str | bytes, message: str) -> None:
    """Text that cannot be parsed has one error of one line."""
    with pytest.raises(ConfigError) as error:
        _read(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_enormous_number_is_text() -> None:
    """A number that is too large for any type is read as text."""
    assert _read("a: " + "9" * 9999) == {"a": "9" * 9999}
