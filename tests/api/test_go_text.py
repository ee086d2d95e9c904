from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.go_text import go_duration, go_float, go_quote, parse_go_duration


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes"),
        pytest.param("a\n\t\x00", r'"a\n\t\x00"', id="control"),
        pytest.param("größe", '"größe"', id="printable"),
        pytest.param("\u200b", r'"\u200b"', id="not-printable"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="astral"),
        pytest.param("\udcff", r'"\xff"', id="not-utf-8"),
    ],
)
def test_quote(text: str, quoted: str) -> None:
    """Text is quoted as Go quotes it."""
    assert quoted == go_quote(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0.0, "0", id="zero"),
        pytest.param(1.0, "1", id="one"),
        pytest.param(-0.0, "-0", id="negative-zero"),
        pytest.param(-2.5, "-2.5", id="negative"),
        pytest.param(0.0001, "0.0001", id="small"),
        pytest.param(0.00001, "1e-05", id="smaller"),
        pytest.param(1.5000000000000002e-05, "1.5000000000000002e-05", id="many-digits"),
        pytest.param(0.02216837820053101, "0.02216837820053101", id="fraction"),
        pytest.param(5242.88, "5242.88", id="mixed"),
        pytest.param(100000.0, "100000", id="last-plain"),
        pytest.param(1048576.0, "1.048576e+06", id="million"),
        pytest.param(16777216.0, "1.6777216e+07", id="sixteen-million"),
        pytest.param(1e100, "1e+100", id="huge"),
        pytest.param(math.inf, "+Inf", id="infinity"),
        pytest.param(-math.inf, "-Inf", id="minus-infinity"),
        pytest.param(math.nan, "NaN", id="nan"),
    ],
)
def test_numbers_as_go_writes_them(value: float, expected: str) -> None:
    """Numbers have Go's shortest form."""
    assert expected == go_float(value)


@given(st.floats(allow_nan=False))
def test_numbers_read_back(value: float) -> None:
    """A number is read back as itself."""
    assert value == float(go_float(value))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1.5, "-1.5s"),
        (0, "0s"),
        (3e-9, "3ns"),
        (1e-6, "1µs"),
        (2e-6, "2µs"),
        (0.0015, "1.5ms"),
        (0.25, "250ms"),
        (0.5, "500ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (5.0, "5s"),
        (15.0, "15s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (600.0, "10m0s"),
        (3600, "1h0m0s"),
        (3661.25, "1h1m1.25s"),
        (3661.5, "1h1m1.5s"),
    ],
)
def test_durations_as_go_writes_them(seconds: float, text: str) -> None:
    """A duration has hours, minutes and seconds, or one smaller unit."""
    assert text == go_duration(seconds)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("15s", 15_000_000_000),
        ("1m30s", 90_000_000_000),
        ("10m0s", 600_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("-2s", -2_000_000_000),
        ("+5s", 5_000_000_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("100ms", 100_000_000),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("3ns", 3),
        ("1s1s", 2_000_000_000),
        ("0" * 30 + "1s", 1_000_000_000),
        ("0.12345678987654321234s", 123_456_789),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_durations_that_go_reads(text: str, nanoseconds: int) -> None:
    """Durations that Go accepts have Go's value."""
    assert nanoseconds == parse_go_duration(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("-", 'time: invalid duration "-"'),
        ("15", 'time: missing unit in duration "15"'),
        ("1s5", 'time: missing unit in duration "1s5"'),
        ("15 s", 'time: unknown unit " s" in duration "15 s"'),
        ("15d", 'time: unknown unit "d" in duration "15d"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9" * 5000 + "s", f'time: invalid duration "{"9" * 5000}s"'),
    ],
)
def test_texts_that_are_no_duration(text: str, message: str) -> None:
    """Durations that Go rejects raise with Go's message."""
    with pytest.raises(ValueError, match="time: ") as error:
        parse_go_duration(text)
    assert message == str(error.value)


@given(st.integers(-(10**15), 10**15))
def test_durations_read_back(nanoseconds: int) -> None:
    """Durations that a double can represent exactly survive writing and reading."""
    assert nanoseconds == parse_go_duration(go_duration(nanoseconds / 10**9))
