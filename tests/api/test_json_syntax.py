"""Syntax errors of JSON texts and streams, with Go's messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.json_syntax import json_stream_error, json_text_error

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
        ("nul!", "'!' in literal null (expecting 'l')"),
        ("<html>", "'<' looking for beginning of value"),
        ("[1,]", "']' looking for beginning of value"),
        ("Ã¤", "'Ã' looking for beginning of value"),
        ("\x81", "'\\u0081' looking for beginning of value"),
        ("'", "'\\'' looking for beginning of value"),
        ("[1 2]", "'2' after array element"),
        ("{a: 1}", "'a' looking for beginning of object key string"),
        ("{'a': 1}", "'\\'' looking for beginning of object key string"),
        ('{"a": 1,}', "'}' looking for beginning of object key string"),
        ('{"a" 1}', "'1' after object key"),
        ('{"a": 1 "b": 2}', "'\"' after object key:value pair"),
        ('"\n"', "'\\n' in string literal"),
        ('"\x01"', "'\\x01' in string literal"),
        ('"\\x"', "'x' in string escape code"),
        ('"\\u12g4"', "'g' in \\u hexadecimal character escape"),
        ("-x", "'x' in numeric literal"),
        ("1.x", "'x' after decimal point in numeric literal"),
        ("1ex", "'x' in exponent of numeric literal"),
        ("[" * 10_001, "'[' exceeded max depth"),
    ],
)
def test_invalid_characters(text: str, expected: str) -> None:
    """The message has the first unexpected character and what was expected."""
    for error in (json_text_error, json_stream_error):
        # A byte is a character.
        assert f"invalid character {expected}" == error(text.encode("latin-1"))


@pytest.mark.parametrize("text", ["{", "tru", '{"a": ', "1."])
def test_texts_that_end_too_early(text: str) -> None:
    """A text ends, or the stream does."""
    assert "unexpected end of JSON input" == json_text_error(text.encode())
    assert "unexpected EOF" == json_stream_error(text.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "unexpected end of JSON input"),
        (" \n", "unexpected end of JSON input"),
        ("{} rest", "invalid character 'r' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-0.5e-3]", "invalid character ']' after top-level value"),
        ('{"a": [1, {"b": "\\u00e4\\n"}, null]}', ""),
    ],
)
def test_what_follows_a_value_does_not_matter_in_a_stream(text: str, expected: str) -> None:
    """An empty stream has an error of its own."""
    assert expected == json_text_error(text.encode())
    assert ("" if text.strip() else "EOF") == json_stream_error(text.encode())


@given(VALUES, st.sampled_from((None, 1)), st.booleans())
def test_values_are_no_error(value: object, indent: int | None, is_ascii: bool) -> None:
    """JSON written by Python is valid."""
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    assert ("", "") == (json_text_error(text), json_stream_error(text))


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


@pytest.mark.slow
@given(VALUES, st.integers(min_value=0), st.binary(min_size=1, max_size=2))
def test_agrees_with_a_decoder(value: object, at: int, put: bytes) -> None:
    """A damaged text has an error if and only if a decoder rejects it."""
    text = json.dumps(value).encode()
    at %= len(text) + 1
    damaged = text[:at] + put + text[at + 1 :]
    try:
        json.loads(damaged.decode("latin-1"), parse_constant=_refuse)
    except ValueError:
        assert json_text_error(damaged) != ""
    else:
        assert json_text_error(damaged) == ""


def _refuse(word: str) -> None:
    raise ValueError(word)
