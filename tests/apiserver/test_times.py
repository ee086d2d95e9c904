"""Times as they are read and written, identities and names."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.times import Clock, after, canonical_micro_time, canonical_time, moment_of

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def clock(seed: int = 1) -> Clock:
    """A clock that does not move."""
    return Clock(lambda: NOON, Random(seed))


@given(st.integers())
def test_uids_are_random_uuids(seed: int) -> None:
    """An identity is a UUID of version 4."""
    made = uuid.UUID(clock(seed).uid())
    assert (4, uuid.RFC_4122) == (made.version, made.variant)


def test_equal_seeds_give_equal_identities() -> None:
    """A run can be repeated from its seed."""
    assert clock().uid() == clock().uid()


@given(st.text(max_size=100))
def test_generated_names_are_short(prefix: str) -> None:
    """A generated name has the given prefix, five characters more, and at most 63 in all."""
    name = clock().name_after(prefix)
    assert len(name) <= 63
    assert name[:-5] == prefix[:58]


def test_timestamps_are_whole_seconds() -> None:
    """A time of an object reads back."""
    assert clock().timestamp(30) == "2024-05-01T12:00:30Z"
    assert moment_of(clock().timestamp()) == NOON


def test_overflowing_durations() -> None:
    """Seconds beyond Go's durations wrap around without an error."""
    assert after(NOON, 30).isoformat() == "2024-05-01T12:00:30+00:00"
    assert after(NOON, -30).isoformat() == "2024-05-01T11:59:30+00:00"
    assert after(NOON, 2**63 // 10**9 + 1) < NOON
    assert clock().timestamp(2**63 - 1) == "2024-05-01T11:59:59Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z", id="as it is"),
        pytest.param("2024-01-02T03:04:05.9Z", "2024-01-02T03:04:05Z", id="fraction"),
        pytest.param("2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05Z", id="zone"),
        pytest.param("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", id="leap year"),
    ],
)
def test_seconds(text: str, expected: str) -> None:
    """Times are written in UTC, to the second."""
    assert expected == canonical_time(text)


def test_microseconds() -> None:
    """Some times are written to the microsecond."""
    expected = "2024-01-02T01:04:05.000006Z"
    assert expected == canonical_micro_time("2024-01-02T03:04:05.000006+02:00")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("2024-01-02", id="a date and no time"),
        pytest.param("2024-13-02T00:00:00Z", id="month"),
        pytest.param("2023-02-29T00:00:00Z", id="day"),
        pytest.param("2024-01-02T25:00:00Z", id="hour"),
        pytest.param("2024-01-02T03:04:05Zx", id="more"),
        pytest.param("2024-01-02T03:04:05", id="no zone"),
        pytest.param("2024-01-02T03:04:05+25:00", id="zone"),
        pytest.param("20240102T030405Z", id="another form"),
        pytest.param("0001-01-01T00:00:00+01:00", id="before the first year"),
    ],
)
def test_invalid_times(text: str) -> None:
    """The message names the text."""
    with pytest.raises(ValueError, match=f'parsing time "{re.escape(text)}"'):
        canonical_time(text)


def test_microseconds_have_to_be_given() -> None:
    """A time to the second is none to the microsecond."""
    with pytest.raises(ValueError, match=r"such as 2006-01-02T15:04:05\.000000Z"):
        canonical_micro_time("2024-01-02T03:04:05Z")
