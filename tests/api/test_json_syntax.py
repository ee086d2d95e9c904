"""Syntax errors of JSON streams, with Go's messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.json_syntax import json_stream_error

_JSON = json.JSONDecoder(parse_constant=pytest.fail)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "EOF", id="nothing"),
        pytest.param(" \n", "EOF", id="blanks"),
        pytest.param("{} rest", "", id="what-follows-a-value-does-not-matter"),
        pytest.param("01", "", id="a-number-ends-where-it-ends"),
        pytest.param("-0.5e-3]", "", id="number"),
        pytest.param('{"a": [1, {"b": "\\u00e4\\n"}, null]}', "", id="nested"),
        pytest.param(
            "not json", "invalid character 'o' in literal null (expecting 'u')", id="literal"
        ),
        pytest.param("<html>", "invalid character '<' looking for beginning of value", id="html"),
        pytest.param("[1,]", "invalid character ']' looking for beginning of value", id="comma"),
        pytest.param("[1 2]", "invalid character '2' after array element", id="array"),
        pytest.param(
            "{a: 1}", "invalid character 'a' looking for beginning of object key string", id="key"
        ),
        pytest.param(
            '{"a": 1,}',
            "invalid character '}' looking for beginning of object key string",
            id="comma-in-object",
        ),
        pytest.param('{"a" 1}', "invalid character '1' after object key", id="colon"),
        pytest.param(
            '{"a": 1 "b": 2}', "invalid character '\"' after object key:value pair", id="pair"
        ),
        pytest.param("{'a': 1}",
                     "invalid character '\\'' looking for beginning of object key string",
                     id="single-quotes"),
        pytest.param('"\n"', "invalid character '\\n' in string literal", id="line-in-string"),
        pytest.param('"\x01"', "invalid character '\\x01' in string literal", id="control"),
        pytest.param('"\\x"', "invalid character 'x' in string escape code", id="escape"),
        pytest.param(
            '"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape", id="unicode"
        ),
        pytest.param("-x", "invalid character 'x' in numeric literal", id="minus"),
        pytest.param(
            "1.x", "invalid character 'x' after decimal point in numeric literal", id="point"
        ),
        pytest.param("1ex", "invalid character 'x' in exponent of numeric literal", id="exponent"),
        pytest.param("ä", "invalid character 'Ã' looking for beginning of value", id="bytes"),
        pytest.param("tru", "unexpected EOF", id="literal-ends"),
        pytest.param('{"a": ', "unexpected EOF", id="object-ends"),
        pytest.param("1.", "unexpected EOF", id="number-ends"),
        pytest.param("[" * 10_001, "invalid character '[' exceeded max depth", id="depth"),
    ],
)  # fmt: skip
def test_stream_fault(text: str, expected: str) -> None:
    """The message is the one of Go's scanner."""
    assert expected == json_stream_error(text.encode())


@given(VALUES)
def test_values_are_no_error(value: object) -> None:
    """JSON written by Python is valid."""
    assert json_stream_error(json.dumps(value).encode()) == ""


@given(st.text(alphabet='{}[],:"\\u0a1.-+e tfn', max_size=12))
def test_same_values_as_python(text: str) -> None:
    """The scanner agrees with Python's parser."""
    try:
        end = _JSON.raw_decode(text.lstrip(" "))[1]
    except ValueError:
        assert json_stream_error(text.encode()) != ""
    else:
        # Of "0." Python takes the zero.
        if end == len(text.strip(" ")):
            assert json_stream_error(text.encode()) == ""
