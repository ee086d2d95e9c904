"""Times are parsed and written as RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.times import micro_time, moment_at, parse_time, second_time


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0, id="epoch"),
        pytest.param("1970-01-01T00:00:01.5Z", 1_500_000_000, id="fraction"),
        pytest.param("1970-01-01T00:00:00.123456Z", 123_456_000, id="micro"),
        pytest.param("1970-01-01T00:00:00.1234567899Z", 123_456_789, id="beyond nano is cut"),
        pytest.param("1970-01-01T02:00:00+02:00", 0, id="east"),
        pytest.param("1969-12-31T19:30:00-04:30", 0, id="west"),
        pytest.param("1969-12-31T23:59:59Z", -1_000_000_000, id="before the epoch"),
    ],
)
def test_a_time_is_nanoseconds_since_the_epoch(text: str, nanoseconds: int) -> None:
    """Offsets and fractions of seconds are considered."""
    assert nanoseconds == parse_time(text)


@given(
    st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)),  # noqa: DTZ001 - the zone is added below
    st.integers(-14 * 60, 14 * 60),
)
def test_a_time_equals_datetime(naive: datetime, offset_minutes: int) -> None:
    """The parser agrees with the standard library to the microsecond."""
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    difference = moment - datetime(1970, 1, 1, tzinfo=UTC)
    assert difference // timedelta(microseconds=1) * 1000 == parse_time(moment.isoformat())


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2024-01-01", "2024-01-01T00:00:00"),
        *("2024-13-01T00:00:00Z", "2024-01-01T25:00:00Z"),
        "2024-01-01T00:00:00+25:00",
        "\u0662024-01-01T00:00:00Z",
    ],
)
def test_invalid_times(text: str) -> None:
    """The message names the text."""
    with pytest.raises(ValueError, match="is not an RFC 3339 time"):
        parse_time(text)


@pytest.mark.parametrize(
    ("nanoseconds", "second", "micro"),
    [
        pytest.param(0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z", id="epoch"),
        pytest.param(
            1_999_999_999, "1970-01-01T00:00:01Z", "1970-01-01T00:00:01.999999Z", id="truncated"
        ),
        pytest.param(
            -1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z", id="before the epoch"
        ),
    ],
)
def test_moments_are_written(nanoseconds: int, second: str, micro: str) -> None:
    """Fractions are cut, not rounded."""
    moment = moment_at(nanoseconds)
    assert (second, micro) == (second_time(moment), micro_time(moment))


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),  # noqa: DTZ001 - the zone is added below
    st.integers(-14 * 60, 14 * 60),
)
def test_round_trip(naive: datetime, offset_minutes: int) -> None:
    """Times in any zone, also in years before 1000, are parsed as they were written."""
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    assert moment == moment_at(parse_time(micro_time(moment)))
