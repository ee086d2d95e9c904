"""How times are read and written."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubesched.apiserver.values import SCALARS, Reading, SchemaError


def _read(name: str, text: str) -> Any:
    return SCALARS[name].read(text, None, Reading())


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
    assert expected == _read("Time", text)


def test_microseconds() -> None:
    """Some times are written to the microsecond."""
    expected = "2024-01-02T01:04:05.000006Z"
    assert expected == _read("MicroTime", "2024-01-02T03:04:05.000006+02:00")


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
    with pytest.raises(SchemaError, match=f'parsing time "{re.escape(text)}"'):
        _read("Time", text)


def test_microseconds_have_to_be_given() -> None:
    """A time in whole seconds does not have the form of one with microseconds."""
    with pytest.raises(SchemaError, match=r"the form of 2006-01-02T15:04:05\.000000Z"):
        _read("MicroTime", "2024-01-02T03:04:05Z")
