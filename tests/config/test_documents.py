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
        ("v: &v {a: 1, b: 2}\nw: {<<: *v, a: 3}", {"v": {"a": 1, "b": 2}, "w": {"a": 3, "b": 2}}),
        ('{"a":\t[1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("{a: b}", {"a": "b"}),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        ("a: 1\n---\n# empty\n", {"a": 1}),
    ],
)
def test_values(text: str | bytes, value: object) -> None:
    """A text of YAML or JSON is read as its only document."""
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "cannot read YAML: line 2, column 1", id="syntax"),
        pytest.param("a: 1\n---\nb: 2", "expected one document, found 2", id="two-documents"),
        pytest.param(b"a: \xff", "not UTF-8 text: byte 3 is 0xff", id="not-utf-8"),
        pytest.param("a: \x00", "cannot read YAML: unacceptable character", id="nul"),
        pytest.param("a: &a [*a]", "nested", id="endless"),
        pytest.param(
            "[" * 5000, "nested deeper than 200 levels", id="deep-yaml", marks=pytest.mark.slow
        ),
        pytest.param('{"a":' * 200 + "1" + "}" * 200, "nested too deeply", id="deep-json"),
        pytest.param("{[a]: b}", "found unhashable key", id="key"),
    ],
)
def test_unreadable(text: str | bytes, message: str) -> None:
    """Text that cannot be parsed has one error of one line."""
    with pytest.raises(ConfigError) as error:
        _read(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
