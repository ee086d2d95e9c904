"""Times are read as Go reads them."""

from __future__ import annotations

import pytest

from kubesched.apiserver.go_time import TimeError, canonical_micro_time, canonical_time

_SECONDS = '"{}" as "2006-01-02T15:04:05Z07:00": cannot parse "{}" as "{}"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z", id="as it is"),
        pytest.param("2024-01-02T03:04:05.9Z", "2024-01-02T03:04:05Z", id="fraction"),
        pytest.param("2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05Z", id="zone"),
        pytest.param("2024-01-02T3:04:05Z", "2024-01-02T03:04:05Z", id="hour of one digit"),
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
    ("text", "message"),
    [
        pytest.param("", _SECONDS.format("", "", "2006"), id="nothing"),
        pytest.param("2024-01-02", _SECONDS.format("2024-01-02", "", "T"), id="a date and no time"),
        pytest.param("2024-13-02T", '"2024-13-02T": month out of range', id="month"),
        pytest.param("2023-02-29T00:00:00Z", '"2023-02-29T00:00:00Z": day out of range', id="day"),
        pytest.param("2024-01-02T24:", '"2024-01-02T24:": hour out of range', id="hour"),
        pytest.param(
            "2024-01-02T03:04:05Zx", '"2024-01-02T03:04:05Zx": extra text: "x"', id="more"
        ),
        pytest.param(
            "2024-01-02T03:04:05",
            _SECONDS.format("2024-01-02T03:04:05", "", "Z07:00"),
            id="no zone",
        ),
        pytest.param(
            "2024-01-02T03:04:05+25:00",
            '"2024-01-02T03:04:05+25:00": time zone offset hour out of range',
            id="zone",
        ),
    ],
)
def test_faults(text: str, message: str) -> None:
    """What is no time is told in Go's words."""
    with pytest.raises(TimeError) as caught:
        canonical_time(text)
    assert f"parsing time {message}" == str(caught.value)


def test_microseconds_have_to_be_given() -> None:
    """A time to the second is none to the microsecond."""
    with pytest.raises(TimeError, match=r'cannot parse "Z" as ".000000"'):
        canonical_micro_time("2024-01-02T03:04:05Z")
