"""Syntax errors of JSON text, with Go's messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.json_syntax import json_text_error

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"", "unexpected end of JSON input", id="nothing"),
        pytest.param(b"{", "unexpected end of JSON input", id="open"),
        pytest.param(
            b"{not json",
            "invalid character 'n' looking for beginning of object key string",
            id="key",
        ),
        pytest.param(
            b"garbage", "invalid character 'g' looking for beginning of value", id="value"
        ),
        pytest.param(
            b"\x81", "invalid character '\\u0081' looking for beginning of value", id="byte"
        ),
        pytest.param(
            b"'", "invalid character '\\'' looking for beginning of value", id="apostrophe"
        ),
        pytest.param(b'{"a" 1}', "invalid character '1' after object key", id="colon"),
        pytest.param(
            b'{"a":1 "b"}', "invalid character '\"' after object key:value pair", id="comma"
        ),
        pytest.param(b"[1 2]", "invalid character '2' after array element", id="element"),
        pytest.param(
            b"nul!", "invalid character '!' in literal null (expecting 'l')", id="literal"
        ),
        pytest.param(b"{} x", "invalid character 'x' after top-level value", id="more"),
        pytest.param(b"-x", "invalid character 'x' in numeric literal", id="number"),
        pytest.param(
            b"1.x", "invalid character 'x' after decimal point in numeric literal", id="fraction"
        ),
        pytest.param(b"1ex", "invalid character 'x' in exponent of numeric literal", id="exponent"),
        pytest.param(b"01", "invalid character '1' after top-level value", id="leading-zero"),
        pytest.param(b'"\n"', "invalid character '\\n' in string literal", id="newline"),
        pytest.param(b'"\\q"', "invalid character 'q' in string escape code", id="escape"),
        pytest.param(
            b'"\\u12g4"',
            "invalid character 'g' in \\u hexadecimal character escape",
            id="hexadecimal",
        ),
    ],
)
def test_fault(text: bytes, expected: str) -> None:
    """The message has the first unexpected character and what was expected."""
    assert expected == json_text_error(text)


@pytest.mark.slow
@given(VALUES, st.sampled_from((None, 1)), st.booleans())
def test_json_has_no_fault(value: object, indent: int | None, is_ascii: bool) -> None:
    """Valid JSON has no error."""
    assert json_text_error(json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()) == ""


@pytest.mark.slow
@given(VALUES, st.integers(min_value=0), st.binary(min_size=1, max_size=2))
def test_agrees_with_a_decoder(value: object, at: int, put: bytes) -> None:
    """A damaged text has an error if and only if a decoder rejects it."""
    text = json.dumps(value).encode()
    at %= len(text) + 1
    damaged = text[:at] + put + text[at + 1 :]
    try:
        shown = damaged.decode("latin-1")
        json.loads(shown, parse_constant=_refuse)
    except ValueError:
        assert json_text_error(damaged) != ""
    else:
        assert json_text_error(damaged) == ""


def _refuse(word: str) -> None:
    raise ValueError(word)
