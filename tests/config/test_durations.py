"""Go durations, both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.go_duration import go_duration
from kubesched.config.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("0s", 0.0),
        ("15s", 15.0),
        ("1m30s", 90.0),
        ("10m0s", 600.0),
        ("1h", 3600.0),
        ("1.5h", 5400.0),
        ("-2s", -2.0),
        ("+5s", 5.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("100ms", 0.1),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("3ns", 3e-9),
        ("1s1s", 2.0),
    ],
)
def test_parse(text: str, seconds: float) -> None:
    """What Go accepts has Go's value."""
    assert seconds == parse_duration(text)


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
        ("9" * 5000 + "s", f'time: invalid duration "{"9" * 5000}s"'),
    ],
)
def test_parse_rejects(text: str, message: str) -> None:
    """What Go rejects is rejected with Go's words."""
    with pytest.raises(ValueError, match="time: ") as error:
        parse_duration(text)
    assert message == str(error.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (15.0, "15s"),
        (90.0, "1m30s"),
        (600.0, "10m0s"),
        (3600.0, "1h0m0s"),
        (3661.5, "1h1m1.5s"),
        (0.25, "250ms"),
        (0.0015, "1.5ms"),
        (2e-6, "2µs"),
        (3e-9, "3ns"),
        (-1.5, "-1.5s"),
    ],
)
def test_format(seconds: float, text: str) -> None:
    """Durations print as Go prints them."""
    assert text == go_duration(seconds)


@given(st.integers(-(10**15), 10**15))
def test_round_trip(nanoseconds: int) -> None:
    """Every duration a double holds to the nanosecond survives printing and parsing."""
    seconds = nanoseconds / 10**9
    assert seconds == parse_duration(go_duration(seconds))
